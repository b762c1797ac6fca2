/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h - All objects of a place as files: sorted, and each checked. */
#ifndef CAISSON_BUCKET_LISTING_H
#define CAISSON_BUCKET_LISTING_H

#include "bucket/bucket.h"
#include "s3/xml.h"

/* Keys are paths here: without the place's prefix. */
struct listing {
	struct s3_object *list;
	size_t n, cap;
	uint64_t bytes;
};

void listing_free(struct listing *l);
#define _listing_ __attribute__((cleanup(listing_free)))

/* listing_add() - Takes the objects of a page. 0, or a negative errno with a message. */
int listing_add(struct listing *l, struct s3_page *page, const char *prefix, struct err *e);

/*
 * listing_check() - Sorts the keys, and refuses those that cannot be a tree: unsafe names, a file
 * that is a directory too. The message names up to three. Pure.
 */
int listing_check(struct listing *l, struct err *e);

const struct s3_object *listing_find(const struct listing *l, const char *path);

/* listing_read() - Of the job's place. @max_files, @max_bytes: 0 for no limit but memory's. */
int listing_read(struct job *j, uint64_t max_files, uint64_t max_bytes, struct listing *ret,
		 struct err *e);

#endif
