/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h - Entries of a directory on their way from a file call to a model. */
#ifndef CAISSON_FRONT_MCP_LISTING_H
#define CAISSON_FRONT_MCP_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/operations/operations.h"
#include "wire/files.h"

struct buf;
struct file_job;
struct files_text;
struct json;

#define LISTING_LOOKED_AT 100000u /* entries of a directory, at most */

struct listing_file {
	char *name; /* UTF-8: others are left out, since nobody could ask for them */
	struct files_stat stat;
};

/* Those that follow a name, in the order of names, whatever order they come in. */
struct listing {
	struct listing_file files[2 * LISTING_MAX]; /* when it is full the later half goes */
	size_t n, max;                              /* max: that are wanted */
	char *after;                                /* NULL: from the first one */
	size_t left_out;                            /* names that are not UTF-8 */
	bool truncated;
};

/* listing_new() - At most @max that come after @after, which may be NULL. Memory failure aborts. */
struct listing *listing_new(const char *after, size_t max);
void listing_free(void *arg); /* for file_job.free_arg */

/* listing_entry() - For file_job.entry; the job's arg is the listing. */
void listing_entry(struct file_job *j, const struct files_stat *st, struct files_text name);

void listing_sort(struct listing *l);
/*
 * listing_write() - The object {path, files: [{name, type, size, ...}], truncated, next_cursor}:
 * listing_schema; and, when @text is not NULL, a line per entry: size and name, directories with a
 * slash. @max: bytes of either.
 */
void listing_write(struct listing *l, const char *path, size_t max, struct json *j,
		   struct buf *text);
extern const char listing_schema[];

#endif
