/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_dir.h - The directory of trees: what is being made in it, what is there, and how it goes.
 *
 * A tree is a directory with a random name of PACKAGE_STORE_KEY_LEN hexadecimal digits; one that is
 * being made has ".new" behind it, and gets its name when it is whole and on the disk. Code in a
 * cell can enter the directory and cannot list it, so it finds only trees whose name it was told.
 */
#ifndef CAISSON_PACKAGE_STORE_PACKAGE_DIR_H
#define CAISSON_PACKAGE_STORE_PACKAGE_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/package_store.h"

struct err;

#define PACKAGE_DIR_MODE 0311 /* as an ordinary user the cell's user is ours, too */

/* Bounds of the paths in a tree. */
#define PACKAGE_PATH_MAX 1024u
#define PACKAGE_DEPTH_MAX 48u

/* package_dir_key_ok() - Whether this is the name of a tree. Pure. */
bool package_dir_key_ok(const char *key);

/* package_dir_new() - A directory for a tree; its key, and a descriptor or -errno. */
int package_dir_new(int store_dir, char ret_key[PACKAGE_STORE_KEY_LEN + 1], struct err *e);
/* package_dir_finish() - It is whole: to the disk, then its name. 0 or -errno. */
int package_dir_finish(int store_dir, const char *key, struct err *e);

/* package_dir_drop() - Remove a tree, or what was begun of one. 0, -ENOENT or -errno. */
int package_dir_drop(int store_dir, const char *key, bool unfinished, struct err *e);

/* package_dir_sweep() - Remove all but those that @keep says to keep. Return: how many were
 * removed, or -errno. */
int package_dir_sweep(int store_dir, bool (*keep)(const char *key, void *arg), void *arg,
		      struct err *e);

#endif
