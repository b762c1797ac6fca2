/* SPDX-License-Identifier: Apache-2.0 */
/* artifact.h - One file that an execution left, as it is told to a client. */
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

/* What became of it in the operator's bucket; both NULL: nothing was tried. */
struct artifact_copy {
	const char *link;
	uint64_t seconds; /* that the link is good */
	const char *why;  /* there is none */
};

/* artifact_is() - Whether a file of this name is anybody's product: not hidden, and not what python
 * compiles. */
bool artifact_is(const char *path, size_t len);

/* artifact_is_image() - By its name, as all of its type is. */
bool artifact_is_image(const struct artifact *a);

/*
 * artifact_json() - The object. @hash: in hexadecimal, empty when it could not be had. @image: its
 * content, or NULL.
 */
void artifact_json(const struct artifact *a, const char *sandbox, const char *hash,
		   const struct buf *image, const struct artifact_copy *copy, struct json *j);

/* artifact_escape() - A path for a query: its bytes, percent-encoded. */
void artifact_escape(const char *path, struct buf *out);

#endif
