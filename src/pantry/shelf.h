/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf.h - The directory of trees: what is being made in it, what is there, and how it goes.
 *
 * A tree is a directory with a random name of PANTRY_KEY_LEN hexadecimal digits; one that is being made has
 * ".new" behind it, and gets its name when it is whole and on the disk. The directory itself can be entered
 * but not listed by those who look at it from a cell, so that a tree is found by whoever was told its name.
 */
#ifndef CAISSON_PANTRY_SHELF_H
#define CAISSON_PANTRY_SHELF_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/pantry.h"

struct err;

#define SHELF_MODE 0311 /* as an ordinary user the cell's user is ours, too */

/* shelf_key_ok() - Whether this is the name of a tree. Pure. */
bool shelf_key_ok(const char *key);

/* shelf_new() - A directory for a tree; its key, and a descriptor or -errno. */
int shelf_new(int shelf, char ret_key[PANTRY_KEY_LEN + 1], struct err *e);
/* shelf_finish() - It is whole: to the disk, then its name. 0 or -errno. */
int shelf_finish(int shelf, const char *key, struct err *e);

/* shelf_drop() - Remove a tree, or what was begun of one. 0, -ENOENT or -errno. */
int shelf_drop(int shelf, const char *key, bool unfinished, struct err *e);

/* shelf_sweep() - Remove all but those that @keep says to keep. Return: how many were removed, or -errno. */
int shelf_sweep(int shelf, bool (*keep)(const char *key, void *arg), void *arg, struct err *e);

#endif
