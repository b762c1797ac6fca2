/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - Trees of files by descriptors: list, find, link, walk and remove below a directory.
 *
 * Code in a cell made the content of a tree. So no function here follows a link or resolves a path
 * in one step. A directory that its owner may not read gets the owner's rights back: the stores own
 * every directory of their trees.
 */
#ifndef CAISSON_TREE_STORE_TREE_H
#define CAISSON_TREE_STORE_TREE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct err;

#define TREE_PATH_MAX 4096u
#define TREE_DEPTH_MAX 130u
#define TREE_KEY_LEN 32u /* hexadecimal digits: the random name of a tree or a workspace */

/* tree_key_ok() - Whether @key has the form of a key. Pure. */
bool tree_key_ok(const char *key);
/* tree_random() - An even number of random hexadecimal digits, at most TREE_KEY_LEN, and a NUL. */
int tree_random(char *ret, size_t digits, struct err *e);

/* tree_can_mend() - Whether the Linux kernel (6.6 and later) changes modes by a descriptor alone;
 * otherwise that needs /proc. */
bool tree_can_mend(void);

/* tree_open_dir() - Open the directory @name in @dir for reading, with the owner's rights restored.
 * Descriptor or -errno. */
int tree_open_dir(int dir, const char *name);

/* tree_list() - The entries of the directory @name in @dir. NULL with errno. */
DIR *tree_list(int dir, const char *name);

/*
 * tree_parent() - The directory of @root that holds @path, and the last part of the path.
 * @make: make missing directories
 * Return: descriptor (the caller closes it), -ENOENT, -ENOTDIR or -errno.
 */
int tree_parent(int root, const char *path, bool make, const char **ret_name);

/* tree_stat() - Of @path below @root. 0; -ENOENT also when a part of the path is no directory. */
int tree_stat(int root, const char *path, struct stat *ret);
/* tree_open() - A regular file for reading. Descriptor or -errno. */
int tree_open(int root, const char *path);

/* tree_link() - Give @path of @from the same path in @to, with the directories above it: a file
 * gets a second name, a directory is made anew. 0 or -errno. */
int tree_link(int from, const char *path, const struct stat *st, int to);

/* tree_remove() - Remove @name and everything below it. 0 or -errno; -ENOENT is 0. */
int tree_remove(int dir, const char *name);

/* tree_walk() - Call @fn for everything below @root, parents first. Anything but 0 ends the walk
 * and is its result, as is a negative errno; @where then has the path. */
typedef int tree_fn(void *arg, int dir, const char *name, const char *path, const struct stat *st);
int tree_walk(int root, tree_fn *fn, void *arg, char where[TREE_PATH_MAX]);

/* tree_same_xattrs() - Whether a file or directory has exactly these attributes (user.*), as pax
 * records (archive/tar.h). */
bool tree_same_xattrs(int fd, const char *records, size_t len);
/* tree_set_xattrs() - Set them. 0 or -errno. */
int tree_set_xattrs(int fd, const char *records, size_t len);

#endif
