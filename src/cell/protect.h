/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protect.h - Names in a mounted directory that programs outside of the cell believe: what they say
 * is run.
 *
 * A directory of the host that a cell may write to is one that somebody works in, with an editor, a
 * shell and version control, and each of those runs what it finds under some names. So these names
 * can not be written to, made, removed, replaced or moved from a cell: each is a mount point,
 * read-only, upon itself. One that is missing is made first, empty, on the host: a mount needs
 * something to lie upon. They are looked for in the directory that is mounted, not in those below
 * it: what could be covered there (repositories that exist) would leave open what does the same
 * (one that is made in the next directory), and a mount point's parents can be renamed, so that
 * each of these would have to be a mount of its own, which nothing is moved or linked across.
 * `.git` is one of them as a whole: not only its hooks and its configuration are run, a file in it
 * can also say that both are elsewhere.
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
 * protect_prepare() - For whoever opens the directory for a cell, with rights to it: every name is
 * there, and none is a link, which nothing can be laid upon. 0 or -errno with a message that names
 * it.
 */
int protect_prepare(int dir, struct err *e);

/* protect_cover() - In the child (stage.h), by system calls only: lay them upon themselves, below
 * @root/@dst. 0, or -1 with errno. */
int protect_cover(int root, const char *dst);

#endif
