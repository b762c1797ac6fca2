/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_dir.h - The directory of package trees: adding, removing, sweeping.
 *
 * A tree is a directory with a random key as its name; while it is unpacked, ".new" follows the
 * key. It gets its name when it is whole and on the disk. Code in a cell can enter the directory
 * and cannot list it, so it finds the trees whose keys it was told.
 */
#ifndef CAISSON_PACKAGE_STORE_PACKAGE_DIR_H
#define CAISSON_PACKAGE_STORE_PACKAGE_DIR_H

#include <stdbool.h>

#include "wire/package_store.h"

struct err;

#define PACKAGE_DIR_MODE 0311 /* for an ordinary user the cell's user is the owner, too */

/* Bounds of the paths in a tree. */
#define PACKAGE_PATH_MAX 1024u
#define PACKAGE_DEPTH_MAX 48u

/* package_dir_new() - A directory for a tree; its key, and a descriptor or -errno. */
int package_dir_new(int store_dir, char ret_key[PACKAGE_STORE_KEY_LEN + 1], struct err *e);
/* package_dir_finish() - The tree is whole: bring it to the disk, then name it. 0 or -errno. */
int package_dir_finish(int store_dir, const char *key, struct err *e);

/* package_dir_drop() - Remove a tree, finished or not. 0, -ENOENT or -errno. */
int package_dir_drop(int store_dir, const char *key, bool unfinished, struct err *e);

/* package_dir_sweep() - Remove every tree that @keep does not name, and everything unfinished.
 * Return: how many were removed, or -errno. */
int package_dir_sweep(int store_dir, bool (*keep)(const char *key), struct err *e);

#endif
