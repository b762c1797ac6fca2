/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trees.h - Installed packages: trees, their users, and how long they are kept.
 *
 * A tree is the result of one request: its closure, unpacked by the package store, read-only for
 * everybody. It is found again by the request (names, versions, constraints), never by the
 * fetcher's report, which a stranger may have written; and only for the image that it was made
 * with, whose interpreter and libc it fits. Users are sandboxes and owners; an owner's trees are in
 * every sandbox of theirs that has this image. The store has everything too, so that it outlives
 * the front.
 */
#ifndef CAISSON_FRONT_PACKAGES_TREES_H
#define CAISSON_FRONT_PACKAGES_TREES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/packages/requirement.h"
#include "hash/hash.h"
#include "wire/image_opener.h"
#include "wire/package_store.h"

struct err;
struct install;
struct packages;
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
	char *request;              /* the request, in one line */
	char context[HASH_HEX + 1]; /* what it was resolved beside (install_recall()) */
	bool exact;                 /* the request names every version: it does not become old */
	json_t *packages;
	uint64_t bytes, files;
	uint64_t created_ms, used_ms;
	size_t users;
	bool touched; /* used since it was written to the store */
};

struct tree_use {
	struct tree_use *next;
	char holder[TREE_HOLDER_MAX]; /* "s:" and a sandbox's id, "o:" and an owner */
	struct tree *tree;
};

struct trees {
	struct tree *all;
	struct tree_use *uses; /* the newest first */
	uint64_t changes;      /* counts changes, so that kernels learn of them */
	uint64_t bytes;
};

/* trees_load() - From the store; the package store checks each tree, and removes all others. */
int trees_load(struct packages *packages, struct err *e);

/* trees_add() - The result of @in, which the package store has; an equal tree that is there already
 * is used instead. NULL without memory. */
struct tree *trees_add(struct packages *packages, const struct install *in,
		       const struct package_store_reply *r);

/* trees_find() - A tree for this request and image, young enough, that agrees with the packages of
 * @s. NULL: fetch it. */
struct tree *trees_find(const struct install *in, const struct sandbox *s);
/* trees_fit() - Whether @s can use it: it was made with the image that @s has. */
bool trees_fit(const struct tree *t, const struct sandbox *s);

/* trees_use() - @s, or every sandbox of @owner, uses it from now on, before its other trees.
 * Return: whether it did not use it before. */
bool trees_use(struct packages *packages, const struct sandbox *s, const char *owner,
	       struct tree *t);
/* trees_touch() - Something runs in @s that can import from its trees. */
void trees_touch(const struct sandbox *s);
/* trees_leave() - The sandbox with this id is gone for good. Return: whether it had any. */
bool trees_leave(struct packages *packages, const char *id);

/* trees_next() - The next tree that @s has, the newest first; @at: begin with NULL. */
const struct tree *trees_next(const struct packages *packages, const struct sandbox *s,
			      const struct tree_use **at);

/* trees_tidy() - Remove unused trees that are too old, or too many bytes. */
void trees_tidy(struct packages *packages);

#endif
