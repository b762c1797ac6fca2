/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.c - The reader, driven by the reading side.
 *
 * S3 requests pull the content of an object, so the archive is pulled too: the reader gets the
 * bytes that it wants and not one more, until it has found an entry.
 */
#include "bucket/bucket.h"

#include <errno.h>

#include "base/err.h"
#include "base/fd.h"
#include "s3/site.h"

/* The workspace store wrote it: all kinds that a workspace has. */
static const struct tar_rules rules = { .path_max = S3_KEY_MAX + 2,
					.meta_max = 64u << 10,
					.depth_max = SIZE_MAX,
					.max_bytes = UINT64_MAX,
					.max_files = UINT64_MAX,
					.kinds = "01256" };

static int on_entry(void *arg, const struct tar_entry *en, struct err *e)
{
	struct archive_in *in = arg;

	(void)e;
	in->entry = *en;
	in->found = true;
	return 0;
}

void archive_open(struct archive_in *in, int fd)
{
	*in = (struct archive_in){ .fd = fd, .reader.rules = &rules };
}

int archive_read(struct archive_in *in, void *data, size_t len)
{
	/* The content of files is in @data already. */
	static const struct tar_sink sink = { .entry = on_entry };
	ssize_t n = fd_read_full(in->fd, data, len);

	if (n < 0)
		return (int)n;
	return (size_t)n < len ? -ENODATA : tar_feed(&in->reader, &sink, in, data, len, NULL);
}

int archive_next(struct archive_in *in, struct tar_entry *ret, struct err *e)
{
	char room[16u << 10];
	int r = 0;

	in->found = false;
	while (r == 0 && !in->found && !tar_ended(&in->reader)) {
		size_t wants = tar_wants(&in->reader);

		r = archive_read(in, room, wants < sizeof(room) ? wants : sizeof(room));
	}
	if (r < 0)
		return err_set(e, r, "the archive of what changed");
	*ret = in->entry;
	return in->found;
}

void archive_free(struct archive_in *in)
{
	tar_reader_free(&in->reader);
}
