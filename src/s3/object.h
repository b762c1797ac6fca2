/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.h - List, put, remove and link to objects. All calls block; see s3_client.h.
 *
 * A key is a whole one, with the place's prefix.
 */
#ifndef CAISSON_S3_OBJECT_H
#define CAISSON_S3_OBJECT_H

#include <stdint.h>

#include "s3/s3_client.h"

/* s3_page() - The objects of @place, 1000 at a time. @token: NULL for the first; then the page's.
 */
int s3_page(struct s3_client *c, const struct s3_place *place, const char *token,
	    struct s3_page *ret, struct err *e);

/* A new object, and the version of it that it replaces. */
struct s3_new {
	const char *bucket, *key;
	const char *type;  /* Content-Type; NULL: application/octet-stream */
	const char *match; /* ETag of the version that is there; "": none may be; NULL: any */
	uint64_t size;
	char etag[S3_ETAG_MAX]; /* filled: of the new version */
};

/* Content: exactly @len bytes; negative: there is no more. */
typedef int s3_source(void *arg, char *data, size_t len);

/*
 * s3_put() - Of exactly n->size bytes, in one request or in parts, with one part in memory at a
 * time. With a server that does not know conditions, the version is looked up before. A failure
 * leaves nothing behind.
 * @progress: called with the bytes that are there; may be NULL.
 * Return: 0, -ESTALE when @match does not hold, or another negative errno, with a message.
 */
int s3_put(struct s3_client *c, struct s3_new *n, s3_source *source, void *arg,
	   void (*progress)(void *arg, uint64_t bytes), struct err *e);

/* s3_remove() - 0 also when there is no such object. */
int s3_remove(struct s3_client *c, const char *bucket, const char *key, struct err *e);

/* s3_link() - An address at which anybody may get the object, for @expires seconds. */
int s3_link(const struct s3_client *c, const char *bucket, const char *key, unsigned int expires,
	    struct buf *out);

#endif
