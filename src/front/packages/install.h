/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install.h - One request for packages, from its words to a tree that a sandbox can import from.
 *
 * Life: install_begin() -> (a tree is there already) | fetching -> judged -> installing -> packing
 * -> done. done is called exactly once, never from inside install_begin(), unless install_drop()
 * comes first: the work then goes on for later requests, or is given up when it has only begun.
 */
#ifndef CAISSON_FRONT_PACKAGES_INSTALL_H
#define CAISSON_FRONT_PACKAGES_INSTALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "front/cell/cell.h"
#include "front/cell/kernel_share.h"
#include "front/packages/package_store.h"
#include "front/packages/requirement.h"
#include "front/packages/trees.h"
#include "front/sandbox/command.h"
#include "front/sandbox/sandbox.h"
#include "front/support/name.h"
#include "net/loop.h"

struct image_use;
struct install;
struct json;
struct packages;

#define INSTALL_REQUIREMENTS_MAX 64u
#define INSTALL_FETCHES_MAX 4u

/* The step, and how far it is: total is 0 while it is unknown. */
struct install_progress {
	const char *text;
	unsigned int done, total;
};

struct install_request {
	enum ecosystem eco;
	const json_t *requirements; /* an array of strings */
	const char *version;        /* of the only one, or NULL */
	bool upgrade;               /* the newest version, also where the image has one */
};

struct install_ops {
	void (*progress)(struct install *in, const struct install_progress *p); /* may be NULL */
	void (*done)(struct install *in); /* the last; it is freed after it */
};

struct install {
	struct install *prev, *next;
	struct packages *packages;
	const struct install_ops *ops; /* NULL: nobody waits */
	void *arg;
	char owner[OWNER_MAX];
	char sandbox[SANDBOX_NAME_MAX + 1], sandbox_id[33]; /* empty: for all of the owner's */
	char id[33];
	struct image_use *image; /* the packages are made with it, and for it; held */
	enum ecosystem eco;
	char first[PACKAGE_NAME_MAX + 1]; /* the first package of the request */
	json_t *requirements, *constraints, *recalled;
	json_t *pins; /* versions by name, of which constraints are made */
	char *request;
	char context[HASH_HEX + 1]; /* of the packages that the sandbox has; empty: it has none */
	bool exact, upgrade;

	struct command command;        /* the fetcher's program; its entry keeps the sandbox */
	struct timer timer;            /* of all stages */
	struct buf line;               /* of the fetcher's output, not yet complete */
	struct kernel_share share;     /* the front's time that the output took */
	struct timer rest;             /* until then the output is not read */
	bool owing;                    /* it rests (kernel_share.h) */
	char installer[INSTALLER_MAX]; /* as the fetcher reports it */
	json_t *closure;
	bool reported_done;
	struct entry entry; /* of the stage that keeps the tree */
	struct cell *cell;
	struct cell_command pack;
	struct package_store_call call;
	bool ended;
	struct deferred later;
	uint64_t began_ns, ended_ns;

	/* The result, valid in done. */
	struct refusal refusal; /* kind REFUSAL_NONE: it is installed */
	struct tree *tree;
	bool cached;
};

/*
 * install_begin() - @s: the sandbox that wants it; NULL: @owner, for all sandboxes.
 * Return: the install, whose done will be called; or NULL with @why.
 */
struct install *install_begin(struct packages *packages, struct sandbox *s, const char *owner,
			      const struct install_request *q, const struct install_ops *ops,
			      void *arg, struct refusal *why);

/* install_drop() - The client is gone; done is not called any more. */
void install_drop(struct install *in);

/* install_sandbox() - The sandbox that it is for, if it still is there. */
struct sandbox *install_sandbox(const struct install *in);

/* install_message() - One line: the package and its sandboxes. */
#define INSTALL_MESSAGE_MAX 320
void install_message(const struct install *in, char *ret, size_t size);
/* install_json() - Members of an object: packages, cached, seconds, bytes, files. In done. */
void install_json(const struct install *in, struct json *j);

#endif
