/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_dir.h - The directory of one workspace: its trees, the newest of them, the next.
 *
 * The newest generation is the one with the highest number, so one rename makes the next: a reader
 * finds the old one before it and the new one after it, and a crash leaves one of the two. A tree
 * that is being made (new.*) has no meaning, and the next sweep removes it.
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

/* workspace_dir_tree_ok() - "g" and a number, or "v", a number, "." and digits. Pure. */
bool workspace_dir_tree_ok(const char *tree);
void workspace_dir_generation(char ret[WORKSPACE_STORE_TREE_MAX], uint64_t n);

/* workspace_dir_make() - Make the directory of a workspace below @store_dir. 0 or -errno. */
int workspace_dir_make(int store_dir, char ret_key[WORKSPACE_STORE_KEY_LEN + 1], struct err *e);
/* workspace_dir_fill() - Make its first generation, empty; a failure removes the workspace. 0 or
 * -errno. */
int workspace_dir_fill(int store_dir, const char *key, struct err *e);
/* workspace_dir_open() - Open and lock it; waits for another job. 0 or -errno. */
int workspace_dir_open(int store_dir, const char *key, struct workspace_dir *ret, struct err *e);
void workspace_dir_close(struct workspace_dir *w);

/*
 * workspace_dir_unlock() - Let other jobs in, who may remove trees that are open here.
 * workspace_dir_has() - Whether @fd still is the tree @tree, complete: a tree that is removed loses
 * its name first.
 */
void workspace_dir_unlock(const struct workspace_dir *w);
bool workspace_dir_has(const struct workspace_dir *w, int store_dir, const char *key,
		       const char *tree, int fd);

/* workspace_dir_tree() - Open a tree of it; @tree empty: the newest. Descriptor or -errno. */
int workspace_dir_tree(const struct workspace_dir *w, const char *tree, struct err *e);

/* workspace_dir_begin() - Make a directory for a new tree. Descriptor or -errno; @ret_name is its
 * name so far. */
int workspace_dir_begin(const struct workspace_dir *w, char ret_name[WORKSPACE_STORE_TREE_MAX],
			struct err *e);
/* workspace_dir_finish() - Bring it to the disk and name it @tree. A failure removes it. */
int workspace_dir_finish(const struct workspace_dir *w, const char *name, const char *tree,
			 struct err *e);
void workspace_dir_abandon(const struct workspace_dir *w, const char *name);

/* workspace_dir_drop() - Remove a tree that is not the newest. 0 or -errno. */
int workspace_dir_drop(const struct workspace_dir *w, const char *tree, struct err *e);
int workspace_dir_remove(int store_dir, const char *key, struct err *e);

/*
 * workspace_dir_sweep() - Remove trees that nobody uses.
 * @known: lines with a key and the trees of it that are in use
 *
 * A workspace that is not in the list keeps its content. One that is locked is left alone: a job is
 * at work there.
 */
int workspace_dir_sweep(int store_dir, const char *known, struct err *e);

#endif
