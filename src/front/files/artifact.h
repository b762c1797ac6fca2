/* SPDX-License-Identifier: Apache-2.0 */
/* artifact.h - One file that an execution left, as a client gets it. */
#ifndef CAISSON_FRONT_ARTIFACT_H
#define CAISSON_FRONT_ARTIFACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json;

struct artifact {
	char *path; /* bytes, mostly UTF-8 */
	uint64_t size;
};

/* The copy in the operator's bucket; both texts are NULL if there is no bucket. */
struct artifact_copy {
	const char *link;
	uint64_t seconds; /* how long the link is valid */
	const char *why;  /* there is no copy */
};

/* mime_of() - The media type of a file, by its name; static. Pure. */
const char *mime_of(const char *path);

/* artifact_is() - Whether a file of this name is a result: not hidden, and not compiled python. */
bool artifact_is(const char *path, size_t len);

/* artifact_is_image() - By its media type. */
bool artifact_is_image(const struct artifact *a);

/*
 * artifact_json() - The object. @hash: in hexadecimal, or empty. @image: its content, or NULL.
 */
void artifact_json(const struct artifact *a, const char *sandbox, const char *hash,
		   const struct buf *image, const struct artifact_copy *copy, struct json *j);

/* artifact_escape() - A path for a query: its bytes, percent-encoded. */
void artifact_escape(const char *path, struct buf *out);

#endif
