/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - SHA-256 by OpenSSL, whose failure has to be read.
 *
 * OpenSSL allocates for every hash, and SHA256() tells of a failure by a result that is easily left
 * unread: the place of the hash then holds the same bytes for all texts, and two tokens that differ
 * compare as equal.
 */
#ifndef CAISSON_HASH_HASH_H
#define CAISSON_HASH_HASH_H

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

/* hash_hex() - @n bytes as 2 * @n digits and a NUL. */
void hash_hex(const unsigned char *bytes, size_t n, char *ret);

/* Content that comes in pieces. Zero is one that is not open. */
struct hash {
	void *md, *ctx;
	bool failed;
};

/* hash_open() - Gets everything that a hash needs, also in a jail later. 0 or -EIO. */
int hash_open(struct hash *h);
void hash_close(struct hash *h);
/* hash_begin() - Again and again; opens it where that was not done. A failure shows at the end. */
void hash_begin(struct hash *h);
void hash_add(struct hash *h, const void *data, size_t len);
/* hash_end() - In letters, with a NUL. False: something failed since the beginning. */
__attribute__((warn_unused_result)) bool hash_end(struct hash *h, char ret[HASH_HEX + 1]);

#endif
