/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_dirs.h - The directories of a layer that is being unpacked: for unpack.c and
 * unpack_entry.c alone.
 *
 * Names are resolved below the root (RESOLVE_IN_ROOT): a link in the archive is followed as a
 * program in the image would follow it, and never leads out. The last component is never followed.
 */
#ifndef CAISSON_IMAGE_UNPACK_DIRS_H
#define CAISSON_IMAGE_UNPACK_DIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "image/unpack.h"

struct stat;
struct dir_time;

struct layer_dirs {
	int root;
	int parent; /* the directory of the last entry: the next is likely to be there too. -1: none
		     */
	char parent_path[UNPACK_PATH_MAX];
	struct dir_time *times;
	size_t n_times, cap_times;
};

/* layer_open() - @path below @root; "" is @root. A descriptor or a negative errno. */
int layer_open(int root, const char *path, int flags);
/* layer_make_dirs() - Every directory of @path, those that are missing too. The last one (O_PATH),
 * or a negative errno. */
int layer_make_dirs(int root, char *path);
/* layer_parent() - The directory that holds @path, which is cut into it and the last component.
 * Borrowed from @d. */
int layer_parent(struct layer_dirs *d, char *path, char **ret_name);
/* layer_forget_parent() - The next entry looks its directory up again: a link on the way to it may
 * be another now. */
void layer_forget_parent(struct layer_dirs *d);

/* What hides a name of the layers below, and a directory that begins anew. */
bool layer_is_whiteout(const struct stat *st);
int layer_opaque(int parent, const char *name);

/* layer_note_time(), layer_set_times() - Directories get their times last: what is made in them
 * changes those. */
int layer_note_time(struct layer_dirs *d, const char *path, struct timespec time);
int layer_set_times(struct layer_dirs *d);

void layer_dirs_free(struct layer_dirs *d);

#endif
