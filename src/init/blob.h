/* SPDX-License-Identifier: Apache-2.0 */
/* blob.h - The strings of a request, in a sealed memfd. */
#ifndef CAISSON_INIT_BLOB_H
#define CAISSON_INIT_BLOB_H

#include <stddef.h>
#include <stdint.h>

struct blob {
	void *map; /* NULL: not mapped */
	size_t len;
};

/*
 * blob_map() - Map @fd, which must be sealed, of exactly @len bytes and end with a NUL.
 * Return: 0 or a positive errno. blob_unmap() in either case.
 */
int blob_map(struct blob *b, int fd, uint32_t len);
void blob_unmap(struct blob *b);

/* blob_next() - The next NUL-terminated string, or NULL at the end. @at: begin with 0. */
char *blob_next(const struct blob *b, size_t *at);

#endif
