/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protect.h - Names in a mounted directory that programs outside of the cell trust: they run what
 * the files say.
 *
 * A directory of the host that a cell may write to is one that a person works in, with an editor, a
 * shell and version control, and each of those runs what it finds under some names. So these names
 * cannot be written to, made, removed, replaced or moved from a cell: each is a mount point,
 * read-only, upon itself. A missing one is made first, empty, on the host: a mount needs something
 * to lie upon. They are protected in the directory that is mounted, not in those below it:
 * repositories below it that exist could be covered, but not those that are made later in the next
 * directory; and a mount point's parents can be renamed, so each of these would have to be a mount
 * of its own, and nothing can be moved or linked across mounts. `.git` is protected as a whole: its
 * hooks and its configuration are run, and a file in it can also name other places for both.
 */
#ifndef CAISSON_CELL_PROTECT_H
#define CAISSON_CELL_PROTECT_H

#include <stdbool.h>
#include <stddef.h>

struct err;

struct protect_name {
	const char *path;
	bool dir; /* what is made when it is missing */
};

extern const struct protect_name protect_names[];
extern const size_t protect_names_n;

/*
 * protect_prepare() - For the process that opens the directory for a cell: make every missing name,
 * and refuse a link, upon which nothing can be mounted. 0 or -errno with a message that names it.
 */
int protect_prepare(int dir, struct err *e);

/* protect_cover() - In the child (stage.h), by system calls only: lay them upon themselves, below
 * @root/@dst. 0, or -1 with errno. */
int protect_cover(int root, const char *dst);

#endif
