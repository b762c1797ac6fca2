/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - The hash and the seal of a tree of packages.
 *
 * The hash is that of the sorted hashes of all entries. So it does not depend on the order of an
 * archive or a directory: a tree has the same hash while it is unpacked and on the disk later.
 *
 * The hash reads all content. The seal is the same sum over what the Linux kernel notes of each
 * entry: name, mode, size and times. A process that writes to a file, or puts another in its place,
 * changes the time of change and cannot set it. An equal seal therefore means that nobody wrote by
 * way of the file system. A different seal is a reason to compare the hash: a copy of the directory
 * has other times and the same content.
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

/* digest_hex() - Of all entries. */
void digest_hex(struct digest *d, char hex[65]);
void digest_free(struct digest *d);

/* digest_tree() - The hash (@contents) or the seal of the tree at @root on the disk. 0 or -errno. */
int digest_tree(int root, bool contents, char ret_hex[65], struct err *e);

#endif
