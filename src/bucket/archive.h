/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.h - The archive of a workspace on a pipe, read entry by entry.
 *
 * Blocking, and never reads further than it has to: the caller decides when content is read. Only
 * names, types and sizes matter: a bucket keeps nothing else.
 */
#ifndef CAISSON_BUCKET_ARCHIVE_H
#define CAISSON_BUCKET_ARCHIVE_H

#include "archive/tar_reader.h"

struct archive_in {
	int fd;
	struct tar_reader reader;
	struct tar_entry entry;
	bool found;
};

/* archive_open() - @fd is borrowed. Ends with archive_free(). */
void archive_open(struct archive_in *in, int fd);

/*
 * archive_next() - The next entry, after all that is left of the one before. 1, 0 at the end, or a
 * negative errno with a message. The strings of @ret stay valid until the next call.
 */
int archive_next(struct archive_in *in, struct tar_entry *ret, struct err *e);

/*
 * archive_read() - Exactly @len bytes of the content of the entry at hand, which has as many.
 * Return: 0, -ENODATA when the archive ends before, or a negative errno.
 */
int archive_read(struct archive_in *in, void *data, size_t len);

void archive_free(struct archive_in *in);

#endif
