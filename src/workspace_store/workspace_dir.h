/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_dir.h - One workspace's directory: which trees are in it, which is the newest, how
 * another is added.
 *
 * The newest generation is the one with the highest number, so one rename makes another: whoever
 * looks before it sees the old one, whoever looks after it the new one, and a crash leaves one of
 * the two. What was being made (new.*) has no meaning to anybody, and goes at the next sweep.
 */
#ifndef CAISSON_WORKSPACE_WORKSPACE_DIR_H
#define CAISSON_WORKSPACE_WORKSPACE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/workspace_store.h"

struct err;

struct workspace_dir {
	int dir; /* locked: nobody else adds or removes trees */
	uint64_t newest;
};

bool workspace_dir_key_ok(const char *key);
/* workspace_dir_tree_ok() - "g" and a number, or "v", a number, "." and digits. Pure. */
bool workspace_dir_tree_ok(const char *tree);
void workspace_dir_generation(char ret[WORKSPACE_STORE_TREE_MAX], uint64_t n);

/* workspace_dir_make() - A directory for a workspace below @store_dir; its key. 0 or -errno. */
int workspace_dir_make(int store_dir, char ret_key[WORKSPACE_STORE_KEY_LEN + 1], struct err *e);
/* workspace_dir_fill() - Its first generation, empty; on failure nothing is left of it. 0 or
 * -errno. */
int workspace_dir_fill(int store_dir, const char *key, struct err *e);
/* workspace_dir_open() - Open and lock; waits for whoever has it. 0 or -errno. */
int workspace_dir_open(int store_dir, const char *key, struct workspace_dir *ret, struct err *e);
void workspace_dir_close(struct workspace_dir *w);

/*
 * workspace_dir_unlock() - Let others at it: for work that takes as long as somebody else likes.
 * What we opened may go meanwhile. workspace_dir_has() - Whether @fd still is its tree @tree, and
 * nothing in that was removed: a tree loses its name first.
 */
void workspace_dir_unlock(const struct workspace_dir *w);
bool workspace_dir_has(const struct workspace_dir *w, int store_dir, const char *key,
		       const char *tree, int fd);

/* workspace_dir_tree() - Open a tree of it; @tree empty: the newest. Descriptor or -errno. */
int workspace_dir_tree(const struct workspace_dir *w, const char *tree, struct err *e);

/* workspace_dir_begin() - A directory for a tree that is being made. Descriptor or -errno;
 * @ret_name is its name so far. */
int workspace_dir_begin(const struct workspace_dir *w, char ret_name[WORKSPACE_STORE_TREE_MAX],
			struct err *e);
/* workspace_dir_finish() - To the disk; then it is @tree. 0 or -errno, and nothing is left of it.
 */
int workspace_dir_finish(const struct workspace_dir *w, const char *name, const char *tree,
			 struct err *e);
void workspace_dir_abandon(const struct workspace_dir *w, const char *name);

/* workspace_dir_drop() - Remove a tree that is not the newest. 0 or -errno. */
int workspace_dir_drop(const struct workspace_dir *w, const char *tree, struct err *e);
int workspace_dir_remove(int store_dir, const char *key, struct err *e);

/*
 * workspace_dir_sweep() - Remove trees that nobody uses. @known: lines, a key and the trees of it
 * that are used. What is in a workspace that nobody knows stays. One that is locked is left alone:
 * somebody is at work there.
 */
int workspace_dir_sweep(int store_dir, const char *known, struct err *e);

#endif
