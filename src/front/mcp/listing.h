/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h - Entries of a directory on their way from a file call to a model. */
#ifndef CAISSON_FRONT_MCP_LISTING_H
#define CAISSON_FRONT_MCP_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/files.h"

struct buf;
struct file_job;
struct files_text;

#define LISTING_MAX 1000u

struct listing_file {
	char *name; /* UTF-8: others are left out, since nobody could ask for them */
	struct files_stat stat;
};

struct listing {
	struct listing_file files[LISTING_MAX];
	size_t n;
	bool truncated;
};

struct listing *listing_new(void); /* memory failure aborts */
void listing_free(void *arg);      /* for file_job.free_arg */

/* listing_entry() - For file_job.entry; the job's arg is the listing. */
void listing_entry(struct file_job *j, const struct files_stat *st, struct files_text name);

void listing_sort(struct listing *l);
/* listing_text() - A line per entry: size and name, directories with a slash. */
void listing_text(const struct listing *l, struct buf *out);
/* listing_json() - {path, files: [{name, type, size, ...}], truncated}: listing_schema. */
void listing_json(const struct listing *l, const char *path, struct buf *out);
extern const char listing_schema[];

#endif
