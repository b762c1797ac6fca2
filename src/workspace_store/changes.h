/* SPDX-License-Identifier: Apache-2.0 */
/* changes.h - The changes between two trees as lines of JSON, and a set of paths. */
#ifndef CAISSON_WORKSPACE_CHANGES_H
#define CAISSON_WORKSPACE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"

#define CHANGES_BYTES (8u << 20)

enum change { CHANGE_ADDED, CHANGE_MODIFIED, CHANGE_REMOVED, CHANGE_TYPE, CHANGE_MODE };

struct changes {
	struct buf lines;
	uint64_t n;
	bool cut; /* there are more changes than lines */
};

void changes_init(struct changes *c);
void changes_free(struct changes *c);

/* changes_add() - @was, @is: the entry before and after; NULL: there was, or is, none. */
void changes_add(struct changes *c, enum change what, const char *path, const struct stat *was,
		 const struct stat *is);

/* changes_memfd() - All lines, sealed. Descriptor or -errno. */
int changes_memfd(const struct changes *c);

/* ---- paths --------------------------------------------------------------------------------- */

enum path_mark { PATH_NONE, PATH_SAME, PATH_CHANGED };

/* paths_put() - Remember @text in the set, which begins as NULL; a second time sets its mark. 0 or
 * -ENOMEM. */
int paths_put(void **paths, const char *text, enum path_mark mark);
enum path_mark paths_get(void *const *paths, const char *text);
void paths_free(void **paths);

#endif
