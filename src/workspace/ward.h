/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ward.h - One workspace's directory: which trees are in it, which is the newest, how another is added.
 *
 * The newest generation is the one with the highest number, so one rename makes another: whoever looks before
 * it sees the old one, whoever looks after it the new one, and a crash leaves one of the two. What was being
 * made (new.*) has no meaning to anybody, and goes at the next sweep.
 */
#ifndef CAISSON_WORKSPACE_WARD_H
#define CAISSON_WORKSPACE_WARD_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/shelf.h"

struct err;

struct ward {
	int dir; /* locked: nobody else adds or removes trees */
	uint64_t newest;
};

bool ward_key_ok(const char *key);
/* ward_tree_ok() - "g" and a number, or "v", a number, "." and digits. Pure. */
bool ward_tree_ok(const char *tree);
void ward_generation(char ret[SHELF_TREE_MAX], uint64_t n);

/* ward_make() - A directory for a workspace below @shelf; its key. 0 or -errno. */
int ward_make(int shelf, char ret_key[SHELF_KEY_LEN + 1], struct err *e);
/* ward_fill() - Its first generation, empty; on failure nothing is left of it. 0 or -errno. */
int ward_fill(int shelf, const char *key, struct err *e);
/* ward_open() - Open and lock; waits for whoever has it. 0 or -errno. */
int ward_open(int shelf, const char *key, struct ward *ret, struct err *e);
void ward_close(struct ward *w);

/*
 * ward_unlock() - Let others at it: for work that takes as long as somebody else likes. What we opened may go meanwhile.
 * ward_has() - Whether @fd still is its tree @tree, and nothing in that was removed: a tree loses its name first.
 */
void ward_unlock(const struct ward *w);
bool ward_has(const struct ward *w, int shelf, const char *key, const char *tree, int fd);

/* ward_tree() - Open a tree of it; @tree empty: the newest. Descriptor or -errno. */
int ward_tree(const struct ward *w, const char *tree, struct err *e);

/* ward_begin() - A directory for a tree that is being made. Descriptor or -errno; @ret_name is its name so far. */
int ward_begin(const struct ward *w, char ret_name[SHELF_TREE_MAX], struct err *e);
/* ward_finish() - To the disk; then it is @tree. 0 or -errno, and nothing is left of it. */
int ward_finish(const struct ward *w, const char *name, const char *tree, struct err *e);
void ward_abandon(const struct ward *w, const char *name);

/* ward_drop() - Remove a tree that is not the newest. 0 or -errno. */
int ward_drop(const struct ward *w, const char *tree, struct err *e);
int ward_remove(int shelf, const char *key, struct err *e);

/*
 * ward_sweep() - Remove trees that nobody uses. @known: lines, a key and the trees of it that are used. What
 * is in a workspace that nobody knows stays. One that is locked is left alone: somebody is at work there.
 */
int ward_sweep(int shelf, const char *known, struct err *e);

#endif
