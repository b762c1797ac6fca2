/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h - SHA-256 of a stream, in the form that manifests have: "sha256:" and 64 digits. */
#ifndef CAISSON_IMAGE_DIGEST_H
#define CAISSON_IMAGE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "image/open.h"

struct digest; /* one under way; NULL is none */

struct digest *digest_new(void);                                /* NULL: no memory */
int digest_add(struct digest *d, const void *data, size_t len); /* 0 or -EIO */
/* digest_end() - The text; @d is gone. 0 or -EIO. */
int digest_end(struct digest *d, char ret[IMAGE_DIGEST_MAX]);
void digest_free(struct digest *d); /* one that is not wanted any more */

/* digest_is() - Whether @data has this digest. */
bool digest_is(const char *want, const void *data, size_t len);
int digest_of(const void *data, size_t len, char ret[IMAGE_DIGEST_MAX]);

/* digest_hex() - The digits of one that is known to be well-formed. */
static inline const char *digest_hex(const char *digest)
{
	return digest + 7;
}

#endif
