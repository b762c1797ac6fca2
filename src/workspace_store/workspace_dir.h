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
#include <sys/types.h>

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

/* ---- notes for the next worker -------------------------------------------------------------- */

/*
 * When a worker dies, two acts can be done and not reported: a workspace was made, or a tree got
 * its name. The next worker removes the workspace, which has no owner yet. The tree is a sandbox's
 * commit, and its client must get the report: a second commit would find the first one as a change
 * by somebody else. So a job notes its answer in shared memory before it gives a tree its name.
 */

/* Only the job writes it. */
struct promise {
	struct workspace_store_reply reply; /* seq 0: none */
	ino_t inode;                        /* of the tree that gets its name */
};

struct handover {
	char made[WORKSPACE_STORE_KEY_LEN + 1]; /* the workspace that was made last, or empty */
	struct promise promises[WORKSPACE_STORE_JOBS_MAX];
};

/* handover_new() - Before the first worker is forked. NULL with errno. */
struct handover *handover_new(void);

/* promise_make() - If @tree, a descriptor, gets the name of this generation of @key, @r is the
 * answer. */
void promise_make(struct promise *p, const struct workspace_store_reply *r, const char *key,
		  uint64_t generation, int tree);
void promise_drop(struct promise *p);

/* promise_is_kept() - Whether the tree has that name. */
bool promise_is_kept(const struct promise *p, int store_dir);

#endif
