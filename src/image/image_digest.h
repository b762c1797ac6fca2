/* SPDX-License-Identifier: Apache-2.0 */
/* image_digest.h - SHA-256 in the form that manifests have: "sha256:" and 64 digits. */
#ifndef CAISSON_IMAGE_IMAGE_DIGEST_H
#define CAISSON_IMAGE_IMAGE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "hash/hash.h"
#include "image/open.h"

/* A hash of content that comes in pieces, closed at the end of its scope. */
#define _hash_ __attribute__((cleanup(hash_close)))

/* digest_end() - The digest of everything that was added to @h. 0 or -EIO. */
int digest_end(struct hash *h, char ret[IMAGE_DIGEST_MAX]);

int digest_of(const void *data, size_t len, char ret[IMAGE_DIGEST_MAX]); /* 0 or -EIO */

/*
 * digest_fd() - The digest of everything up to the end of @fd. Not reentrant.
 * @copy: what was read is also written there; -1: nowhere
 * Return: 0 or -errno.
 */
int digest_fd(int fd, int copy, char ret[IMAGE_DIGEST_MAX]);

/* digest_is() - Whether @data has this digest. */
bool digest_is(const char *want, const void *data, size_t len);

/* digest_hex() - The digits of a digest that is known to be well-formed. */
static inline const char *digest_hex(const char *digest)
{
	return digest + 7;
}

#endif
