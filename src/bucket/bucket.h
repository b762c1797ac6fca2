/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket.h - One job of caisson-bucket; the content of a place in a bucket; the archive of a
 * workspace.
 */
#ifndef CAISSON_BUCKET_BUCKET_H
#define CAISSON_BUCKET_BUCKET_H

#include <stddef.h>

#include "archive/tar_reader.h"
#include "s3/s3_client.h"
#include "wire/bucket.h"

struct err;

struct job {
	const struct bucket_req *q;
	const struct s3_place *place;
	struct s3_client client;
	int answer; /* pipe */
	int fds[2]; /* as the op says; -1 */
	int dir;    /* of manifests */
	struct bucket_reply r;
	uint64_t told_ns; /* when progress was told last */
};

/* job_moved() - Tells how far it is, not more often than a few times a second. */
void job_moved(struct job *j);

/* The ops: job_pull.c, job_push.c. */
int job_put(struct job *j, struct err *e);
int job_look(struct job *j, struct err *e);
int job_pull(struct job *j, struct err *e);
int job_push(struct job *j, struct err *e);

/*
 * ---- place.c: the content of a place ----------------------------------------------------------
 *
 * As it is: a listing of all objects as files, sorted and each checked. As it was when it and its
 * workspace were the same: a manifest, with path, size, ETag and hash of each object. A manifest is
 * a file per workspace in the program's own directory, replaced as a whole, so it is the old one or
 * the new one.
 */

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

/* ---- manifests ----------------------------------------------------------------------------- */

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

/* manifest_read() - Of the job's workspace. -ENOENT: it has no manifest. */
int manifest_read(const struct job *j, struct manifest *ret, struct err *e);
/* manifest_write() - @kept: it counts; otherwise BUCKET_KEEP has to follow. */
int manifest_write(const struct job *j, bool kept, const struct manifest *m, struct err *e);

/* BUCKET_KEEP and BUCKET_FORGET. */
int manifest_keep(struct job *j, struct err *e);
int manifest_forget(struct job *j, struct err *e);

/*
 * ---- archive.c: the archive of a workspace on a pipe, read entry by entry ----------------------
 *
 * Blocking, and never reads further than it has to: the caller decides when content is read. Only
 * names, types and sizes matter: a bucket keeps nothing else.
 */

struct archive_in {
	int fd;
	struct tar_reader reader;
	struct tar_entry entry;
	bool found;
};

/* archive_open() - @fd is borrowed. Ends with archive_free(). */
void archive_open(struct archive_in *in, int fd);

/*
 * archive_next() - The next entry, after all that is left of the one before. 1, 0 at the end, or a
 * negative errno with a message. The strings of @ret stay valid until the next call.
 */
int archive_next(struct archive_in *in, struct tar_entry *ret, struct err *e);

/*
 * archive_read() - Exactly @len bytes of the content of the entry at hand, which has as many.
 * Return: 0, -ENODATA when the archive ends before, or a negative errno.
 */
int archive_read(struct archive_in *in, void *data, size_t len);

void archive_free(struct archive_in *in);

#endif
