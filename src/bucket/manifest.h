/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - The content of a place in a bucket when it and its workspace were the same: path,
 * size, ETag and hash of each object.
 *
 * A file per workspace in the program's own directory, replaced as a whole, so it is the old one or
 * the new one.
 */
#ifndef CAISSON_BUCKET_MANIFEST_H
#define CAISSON_BUCKET_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bucket/bucket.h"
#include "s3/sign.h"
#include "s3/xml.h"

struct err;

struct manifest_line {
	char *path; /* one that ends with '/' marks a directory */
	uint64_t size;
	char etag[S3_ETAG_MAX];       /* empty: not known */
	char sha256[S3_HASH_HEX + 1]; /* of the content */
	bool seen;                    /* for the caller's use */
};

/* Sorted by path. */
struct manifest {
	struct manifest_line *list;
	size_t n, cap;
};

void manifest_free(struct manifest *m);
#define _manifest_ __attribute__((cleanup(manifest_free)))

struct manifest_line *manifest_find(const struct manifest *m, const char *path);
/* manifest_set() - In its place; one that is there is replaced. 0 or -ENOMEM. */
int manifest_set(struct manifest *m, const char *path, uint64_t size, const char *etag,
		 const char *sha256);
void manifest_drop(struct manifest *m, struct manifest_line *line);

/* manifest_parse() - The content of a file. Pure. 0, -EBADMSG or -ENOMEM. */
int manifest_parse(const char *text, size_t len, struct manifest *ret);

/* manifest_read() - Of the job's workspace. -ENOENT: there is none. */
int manifest_read(const struct job *j, struct manifest *ret, struct err *e);
/* manifest_write() - @kept: it counts; otherwise BUCKET_KEEP has to follow. */
int manifest_write(const struct job *j, bool kept, const struct manifest *m, struct err *e);

/* BUCKET_KEEP and BUCKET_FORGET. */
int manifest_keep(struct job *j, struct err *e);
int manifest_forget(struct job *j, struct err *e);

#endif
