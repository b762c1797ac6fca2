/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_files.h - The files of a layer that is being unpacked: for unpack_archive.c,
 * unpack_entry.c and unpack_dirs.c alone.
 *
 * Names are resolved below the root (RESOLVE_IN_ROOT): a link in the archive is followed as a
 * program in the image would follow it, and never leads out. The last component is never followed.
 */
#ifndef CAISSON_IMAGE_UNPACK_FILES_H
#define CAISSON_IMAGE_UNPACK_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "image/unpack.h"

struct stat;
struct dir_time;

struct layer_dirs {
	int root;
	int parent; /* the directory of the last entry, often also that of the next; or -1 */
	char parent_path[UNPACK_PATH_MAX];
	struct dir_time *times;
	size_t n_times, cap_times;
};

/* layer_open() - @path below @root; "" is @root. A descriptor or a negative errno. */
int layer_open(int root, const char *path, int flags);
/* layer_make_dirs() - @path and every directory above it, made where missing. A descriptor
 * (O_PATH), or a negative errno. */
int layer_make_dirs(int root, char *path);
/* layer_parent() - The directory that holds @path, which loses its last part. Borrowed from @d. */
int layer_parent(struct layer_dirs *d, char *path, char **ret_name);
/* layer_forget_parent() - Look the directory up again: a link on the way may have changed. */
void layer_forget_parent(struct layer_dirs *d);

/* A whiteout hides a name of lower layers; an opaque directory hides all their names in it. */
bool layer_is_whiteout(const struct stat *st);
int layer_opaque(int parent, const char *name);

/* layer_note_time(), layer_set_times() - Directories get their times last, after their files. */
int layer_note_time(struct layer_dirs *d, const char *path, struct timespec time);
int layer_set_times(struct layer_dirs *d);

void layer_dirs_free(struct layer_dirs *d);

/* ---- one entry of the archive (unpack_entry.c) ---------------------------------------------- */

struct archive;
struct archive_entry;

struct unpack {
	const struct unpack_limits *limits;
	struct unpack_report *ret;
	int from; /* the tar archive */
	struct archive *archive;
	uint64_t stream; /* bytes of it */
	bool over;       /* more of them than allowed */
	bool eof;        /* there are no more */
	bool cut;        /* the last entry is complete, but its padding is missing */
	struct layer_dirs dirs;
};

/* unpack_entry() - @en with its content, which u->archive reads next. 0 or -errno. */
int unpack_entry(struct unpack *u, struct archive_entry *en, struct err *e);

/* unpack_too_large() - The error of a layer beyond its limit. */
int unpack_too_large(const struct unpack *u, struct err *e);

#endif
