/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_use.h - How a sandbox uses a workspace: the field `workspace` of a SandboxSpec, its
 * mounts, and the request that opens its tree.
 *
 * "name", "name:ro", "name:rw", "name:cow", or an object: {"name", "mode", "allow", "deny",
 * "write"}.
 */
#ifndef CAISSON_FRONT_WORKSPACES_USE_H
#define CAISSON_FRONT_WORKSPACES_USE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "front/support/service_link.h"
#include "wire/workspace_store.h"

struct cell_spec;
struct json;
struct refusal;

#define WORKSPACE_NAME_MAX 64
#define WORKSPACE_PARTS_MAX 8u
#define WORKSPACE_PATH "/workspace" /* in a cell */

enum workspace_mode { WORKSPACE_COW, WORKSPACE_RO, WORKSPACE_RW };

struct workspace_use {
	char name[WORKSPACE_NAME_MAX + 1]; /* empty: none */
	enum workspace_mode mode;
	json_t *allow, *deny, *write; /* lists of strings; NULL: none */
	/* While it runs. */
	char key[WORKSPACE_STORE_KEY_LEN + 1];
	char tree[WORKSPACE_STORE_TREE_MAX]; /* that is mounted; empty: none yet */
	char base[WORKSPACE_STORE_TREE_MAX]; /* to compare with: the same, until it commits */
	int fd;                              /* of the tree plus 1; 0: not open */
};

/* A request to the workspace store (workspaces/workspace_store.h). A sandbox has one for its tree.
 */
struct workspace_store_call {
	struct service_call call;
	/* @fd: the descriptor that came with the reply, or -1; what is kept is set to -1. */
	void (*fn)(struct workspace_store_call *c, const struct workspace_store_reply *r, int *fd);
	void *arg;
};

/* workspace_use_parse() - @value: of the field, or NULL. 0, or -1 with @ret_why. */
int workspace_use_parse(const json_t *value, struct workspace_use *ret, struct refusal *ret_why);
void workspace_use_free(struct workspace_use *u);
bool workspace_use_equal(const struct workspace_use *a, const struct workspace_use *b);
/* workspace_use_recall() - The trees of a stored one. They are removed from @value, because no
 * client may name them. */
struct workspace_use workspace_use_recall(json_t *value);
/* workspace_use_json() - As a member `workspace`, if there is a workspace. */
void workspace_use_json(const struct workspace_use *u, struct json *j);
const char *workspace_mode_name(enum workspace_mode mode);

/* workspace_use_mounts() - Add its mounts. Return: how many descriptors were put into @fds: 0 or 1.
 */
size_t workspace_use_mounts(const struct workspace_use *u, struct cell_spec *spec, int *fds);

/* workspace_use_rules() - Patterns as the workspace store takes them: *@ret_fd is a memfd, or -1
 * without patterns. 0 or -errno: then the tree must not be opened, because it would be shown
 * whole. */
int workspace_use_rules(const struct workspace_use *u, int *ret_fd);
/* workspace_use_parts() - Writable directories, a line each, likewise. */
int workspace_use_parts(const struct workspace_use *u, int *ret_fd);

#endif
