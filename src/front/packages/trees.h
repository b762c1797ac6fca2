/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trees.h - What is installed: trees of packages, who uses them, and for how long they are kept.
 *
 * A tree is what one request led to: its closure, unpacked by the package store, read-only for
 * everybody. It is found again by the request (names, versions, constraints), never by what the
 * fetcher said it contains: that may be a stranger's word; and only for the image that it was made
 * with, whose interpreter and libc it fits. Users are sandboxes and owners; an owner's trees are in
 * every sandbox of theirs that has this image. Everything is in the store too, so that it outlives
 * the front.
 */
#ifndef CAISSON_FRONT_PACKAGES_TREES_H
#define CAISSON_FRONT_PACKAGES_TREES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/packages/requirement.h"
#include "wire/image_opener.h"
#include "wire/package_store.h"

struct err;
struct front;
struct install;
struct sandbox;

#define TREE_HOLDER_MAX 80
#define INSTALLER_MAX 32

struct tree {
	struct tree *next;
	char key[PACKAGE_STORE_KEY_LEN + 1];
	char sha256[65], seal[65];
	char image[IMAGE_OPENER_REF_MAX]; /* image_key() of what it was made with */
	char installer[INSTALLER_MAX];    /* pip, uv or npm, with its version */
	enum ecosystem eco;
	char *request; /* the request, in one line */
	bool exact;    /* every version in it was named: it does not become old */
	json_t *packages;
	uint64_t bytes, files;
	uint64_t created_ms, used_ms;
	size_t users;
	bool touched; /* used since the store was told */
};

struct tree_use {
	struct tree_use *next;
	char holder[TREE_HOLDER_MAX]; /* "s:" and a sandbox's id, "o:" and an owner */
	struct tree *tree;
};

struct trees {
	struct tree *all;
	struct tree_use *uses; /* the newest first */
	uint64_t changes;      /* counts: what a kernel was told may be old */
	uint64_t bytes;
};

/* trees_load() - From the store; the package store looks whether each is what it was, and removes
 * the rest. */
int trees_load(struct front *f, struct err *e);

/* trees_add() - What @in led to, and the package store has. What is there with the same content is
 * used instead. NULL without memory. */
struct tree *trees_add(struct front *f, const struct install *in,
		       const struct package_store_reply *r);

/* trees_find() - For this request and image, young enough, and not in contradiction to what @s has.
 * NULL: fetch it. */
struct tree *trees_find(const struct install *in, const struct sandbox *s);
/* trees_fit() - Whether @s can use it: it was made with the image that @s has. */
bool trees_fit(const struct tree *t, const struct sandbox *s);

void trees_use(struct front *f, const struct sandbox *s, const char *owner, struct tree *t);
/* trees_touch() - Something runs in @s that can import from its trees. */
void trees_touch(const struct sandbox *s);
/* trees_leave() - The sandbox is gone for good. Return: whether it had any. */
bool trees_leave(struct front *f, const struct sandbox *s);

/* trees_next() - The next tree that @s has, the newest first; @at: begin with NULL. */
const struct tree *trees_next(const struct front *f, const struct sandbox *s,
			      const struct tree_use **at);

/* trees_tidy() - Remove what nobody uses and is too old, or too much. */
void trees_tidy(struct front *f);

#endif
