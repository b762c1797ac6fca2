/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - SHA-256, whose failure has to be read.
 *
 * OpenSSL allocates for every hash, and SHA256() tells of a failure by a result that is easily left
 * unread: what is in the place of the hash then is equal for all texts, and two tokens that are not
 * the same are.
 */
#ifndef CAISSON_FRONT_HASH_H
#define CAISSON_FRONT_HASH_H

#include <stdbool.h>
#include <stddef.h>

#define HASH_BYTES 32
#define HASH_HEX (2 * HASH_BYTES)

/* hash_sha256() - False: no memory; there is no hash, and @ret is as it was. */
__attribute__((warn_unused_result)) bool hash_sha256(const void *data, size_t len,
						     unsigned char ret[HASH_BYTES]);

/* hash_sha256_hex() - The same in letters, with a NUL. */
__attribute__((warn_unused_result)) bool hash_sha256_hex(const void *data, size_t len,
							 char ret[HASH_HEX + 1]);

#endif
