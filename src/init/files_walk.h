/* SPDX-License-Identifier: Apache-2.0 */
/* files_walk.h - Everything below a directory, parents first, by descriptors and without following
 * links. */
#ifndef CAISSON_INIT_FILES_WALK_H
#define CAISSON_INIT_FILES_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "wire/files.h"

#define WALK_STOP (-1) /* what visit() returns when it has seen enough */

struct walk {
	/* 0, WALK_STOP, or a positive errno. @path: from the first directory on. */
	int (*visit)(struct walk *w, int dirfd, const char *name, const char *path,
		     const struct stat *st);
	void *arg;
	unsigned int depth; /* levels below the first; at most FILES_DEPTH_MAX */
	bool strict;        /* a directory that can not be entered is an error, not a cut */
	bool cut;           /* out: some directory was not entered */
	char path[(FILES_DEPTH_MAX + 1) * 256]; /* where we are; at an error: where it was */
};

/* walk_dir() - @fd: the first directory; closed. 0 (also for WALK_STOP) or a positive errno. */
int walk_dir(struct walk *w, int fd);

#endif
