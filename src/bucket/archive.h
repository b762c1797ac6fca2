/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.h - Tar on a pipe, as workspaces travel: ustar, with pax records for what does not fit.
 *
 * Blocking. Of what comes in only names, types and sizes matter here: a bucket keeps nothing else.
 */
#ifndef CAISSON_BUCKET_ARCHIVE_H
#define CAISSON_BUCKET_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "s3/site.h"

struct err;

/* ---- out ---- */

/* archive_head() - Of a file, or (@dir) of a directory. The content follows by archive_data(), then archive_pad(). */
int archive_head(int fd, const char *path, bool dir, uint64_t size, int64_t mtime);
int archive_data(int fd, const void *data, size_t len);
int archive_pad(int fd, uint64_t size);
int archive_end(int fd);

/* ---- in ---- */

struct archive_entry {
	char path[S3_KEY_MAX + 2]; /* without "./" and a slash at its end */
	char type;                 /* as in init/tar.h: '0' file, '5' directory, others */
	uint64_t size;             /* of what follows */
};

/* archive_next() - 1, 0 at the end, or a negative errno with a message. What an entry holds is read by then. */
int archive_next(int fd, struct archive_entry *ret, struct err *e);
/* archive_read() - Exactly @len bytes. 0, -ENODATA when it ends before, or a negative errno. */
int archive_read(int fd, void *data, size_t len);
/* archive_skip() - Content and padding, or (@padding_only) what fills the last block. */
int archive_skip(int fd, uint64_t size, bool padding_only);

#endif
