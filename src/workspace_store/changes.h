/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changes.h - What differs between two trees, path by path, as lines of JSON; and the set of paths
 * that were seen.
 */
#ifndef CAISSON_WORKSPACE_CHANGES_H
#define CAISSON_WORKSPACE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"

#define CHANGES_BYTES (8u << 20)

enum change { CHANGE_ADDED, CHANGE_MODIFIED, CHANGE_REMOVED, CHANGE_TYPE, CHANGE_MODE };

struct changes {
	struct buf lines;
	uint64_t n;
	bool cut; /* some found no room */
};

void changes_init(struct changes *c);
void changes_free(struct changes *c);

/* changes_add() - @was, @is: before and after; NULL: there was, or is, none. */
void changes_add(struct changes *c, enum change what, const char *path, const struct stat *was,
		 const struct stat *is);

/* changes_memfd() - All lines, sealed. Descriptor or -errno. */
int changes_memfd(const struct changes *c);

/* ---- paths --------------------------------------------------------------------------------- */

enum path_mark { PATH_NONE, PATH_SAME, PATH_CHANGED };

struct paths {
	struct path_slot {
		char *path;
		enum path_mark mark;
	} * table;
	size_t n, size; /* of the table: a power of two */
};

/* paths_put() - Remember @path; a second time sets its mark. 0 or -ENOMEM. */
int paths_put(struct paths *p, const char *path, enum path_mark mark);
enum path_mark paths_get(const struct paths *p, const char *path);
void paths_free(struct paths *p);

#endif
