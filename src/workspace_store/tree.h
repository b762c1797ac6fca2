/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - Directories of a workspace, by descriptors: finding, making, linking and removing below
 * one.
 *
 * What is in a tree was made by code in a cell. No link is followed, no path is resolved in one
 * step, and a directory whose owner has taken the rights from itself gets them back: we are its
 * owner.
 */
#ifndef CAISSON_WORKSPACE_TREE_H
#define CAISSON_WORKSPACE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct err;

#define TREE_PATH_MAX 4096u
#define TREE_DEPTH_MAX 130u

/* tree_can_mend() - Whether this kernel (6.6 and later) mends rights by a descriptor alone;
 * otherwise it takes /proc. */
bool tree_can_mend(void);

/* tree_open_dir() - A directory in @dir, for reading; its rights are mended. Descriptor or -errno.
 */
int tree_open_dir(int dir, const char *name);

/*
 * tree_parent() - The directory of @root that holds @path, and the last part of the path.
 * @make: make what is missing, and what is in the way is an error
 * Return: descriptor (the caller closes it), -ENOENT, -ENOTDIR or -errno.
 */
int tree_parent(int root, const char *path, bool make, const char **ret_name);

/* tree_stat() - Of @path below @root. 0; -ENOENT also when something on the way is no directory. */
int tree_stat(int root, const char *path, struct stat *ret);
/* tree_open() - A regular file for reading. Descriptor or -errno. */
int tree_open(int root, const char *path);

/* tree_link() - @path of @from under the same name in @to, with the directories above it: a second
 * name, of a directory one of its own. 0 or -errno. */
int tree_link(int from, const char *path, const struct stat *st, int to);

/* tree_remove() - Name and all below it. 0 or -errno; -ENOENT is 0. */
int tree_remove(int dir, const char *name);

/* Everything below @root, parents first. Non-zero ends it and is returned; so is an errno,
 * negative. */
typedef int tree_fn(void *arg, int dir, const char *name, const char *path, const struct stat *st);
int tree_walk(int root, tree_fn *fn, void *arg, char where[TREE_PATH_MAX]);

/* tree_same_xattrs() - Whether a file or directory has these attributes: pax records
 * (archive/tar.h), and no others. */
bool tree_same_xattrs(int fd, const char *records, size_t len);
/* tree_set_xattrs() - Give it those. 0 or -errno. */
int tree_set_xattrs(int fd, const char *records, size_t len);

/* tree_kind() - "file", "dir", "symlink", "fifo", "socket", "other". */
const char *tree_kind(mode_t mode);

#endif
