/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - The hash of a tree: that of the sorted hashes of its entries.
 *
 * So it does not depend on the order in which a directory was read, and what is unpacked has the
 * same as what is found on the disk later.
 *
 * Life: zeroed -> digest_begin(), digest_add()..., digest_end() for each entry -> digest_hex() ->
 * digest_free().
 */
#ifndef CAISSON_PACKAGE_STORE_DIGEST_H
#define CAISSON_PACKAGE_STORE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

struct err;

struct digest {
	struct sha256 one;  /* of the entry at hand */
	uint8_t (*all)[32]; /* of those before it */
	size_t n, cap;
};

/* digest_begin() - An entry: '0' a file (its content is added next), '2' a link to @link, '5' a
 * directory. 0 or -ENOMEM. */
int digest_begin(struct digest *d, char type, bool executable, const char *path, const char *link,
		 struct err *e);
void digest_add(struct digest *d, const void *data, size_t len);
void digest_end(struct digest *d);

/* digest_hex() - Of all of them. */
void digest_hex(struct digest *d, char hex[65]);
void digest_free(struct digest *d);

#endif
