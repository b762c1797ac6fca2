/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - SHA-256 of content that comes in pieces, by libcrypto. */
#ifndef CAISSON_S3_HASH_H
#define CAISSON_S3_HASH_H

#include <stddef.h>

#include "s3/sign.h"

struct s3_hasher {
	void *ctx; /* NULL: not begun, or it failed */
};

/* s3_hash_begin() - Again and again; s3_hash_free() at last. 0 or -ENOMEM. */
int s3_hash_begin(struct s3_hasher *h);
void s3_hash_add(struct s3_hasher *h, const void *data, size_t len);
/* s3_hash_end() - In hexadecimal. 0 or -EIO. */
int s3_hash_end(struct s3_hasher *h, char out[S3_HASH_HEX + 1]);
void s3_hash_free(struct s3_hasher *h);

#endif
