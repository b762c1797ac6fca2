/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - The archive of a layer is read; entries of it become files in unpack_entry.c.
 *
 * libarchive twice: one reader takes the compression off, another takes what that gives for a tar archive.
 * Between the two is the hash that the image's configuration knows (diff_id). Why not tar code of our own:
 * archives come from every tool there is, with pax, GNU and sparse forms, and nothing that a reader gets
 * wrong can reach further than the directory.
 */
#include "image/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>

#include "base/err.h"
#include "image/digest.h"
#include "image/unpack_entry.h"

#define READ_BYTES (256u << 10)

/* What the inner reader reads: the next piece of what the outer one gives. */
static la_ssize_t on_read(struct archive *a, void *arg, const void **ret)
{
	struct unpack *u = arg;
	int64_t offset;
	size_t len;
	int r = archive_read_data_block(u->outer, ret, &len, &offset);

	if (r == ARCHIVE_EOF) {
		u->eof = true;
		return 0;
	}
	if (r != ARCHIVE_OK || digest_add(u->digest, *ret, len) < 0) {
		archive_set_error(a, EBADMSG, "%.200s", archive_error_string(u->outer));
		return -1;
	}
	u->stream += len;
	if (u->stream > u->limits->bytes) {
		u->over = true;
		archive_set_error(a, EFBIG, "too large");
		return -1;
	}
	return (la_ssize_t)len;
}

static int open_readers(struct unpack *u, int archive, struct err *e)
{
	struct archive_entry *en;

	u->outer = archive_read_new();
	u->inner = archive_read_new();
	u->digest = digest_new();
	if (!u->outer || !u->inner || !u->digest)
		return err_set(e, -ENOMEM, "unpack");
	(void)archive_read_support_filter_gzip(u->outer);
	(void)archive_read_support_filter_zstd(u->outer);
	(void)archive_read_support_format_raw(u->outer);
	(void)archive_read_support_format_tar(u->inner);
	if (archive_read_open_fd(u->outer, archive, READ_BYTES) != ARCHIVE_OK ||
	    archive_read_next_header(u->outer, &en) != ARCHIVE_OK)
		return err_say(e, -EBADMSG, "the layer can not be read: %.150s",
			       archive_error_string(u->outer) ? archive_error_string(u->outer) :
								"empty");
	if (archive_read_open(u->inner, u, NULL, on_read, NULL) != ARCHIVE_OK)
		return err_say(e, -EBADMSG, "the layer is no tar archive: %.150s",
			       archive_error_string(u->inner));
	return 0;
}

static int read_entries(struct unpack *u, struct err *e)
{
	struct archive_entry *en;
	int r;

	for (;;) {
		r = archive_read_next_header(u->inner, &en);
		if (r == ARCHIVE_EOF)
			return 0;
		if (u->over)
			return unpack_too_large(u, e);
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return err_say(e, -EBADMSG, "the layer is damaged: %.200s",
				       archive_error_string(u->inner));
		r = unpack_entry(u, en, e);
		if (r < 0)
			return u->over ? unpack_too_large(u, e) : r;
		if (u->cut)
			return 0;
	}
}

/* What follows the archive's end belongs to the hash. */
static int drain(struct unpack *u, struct err *e)
{
	const void *data;
	la_ssize_t n;

	while ((n = on_read(u->inner, u, &data)) > 0)
		;
	if (u->over)
		return unpack_too_large(u, e);
	return n < 0 ? err_say(e, -EBADMSG, "the layer is damaged at its end: %.200s",
			       archive_error_string(u->inner)) :
		       0;
}

int unpack(int archive, int root, const struct unpack_limits *limits, struct unpack_report *ret,
	   struct err *e)
{
	struct unpack u = { .limits = limits, .ret = ret, .dirs = { .root = root, .parent = -1 } };
	int r = open_readers(&u, archive, e);

	if (r == 0)
		r = read_entries(&u, e);
	if (r == 0)
		r = drain(&u, e);
	if (r == 0 && (r = layer_set_times(&u.dirs)) < 0)
		r = err_set(e, r, "set times of directories");
	if (r == 0 && (r = digest_end(u.digest, ret->diff_id)) < 0)
		r = err_set(e, r, "hash the layer");
	else if (r < 0)
		digest_free(u.digest);
	layer_dirs_free(&u.dirs);
	(void)archive_read_free(u.inner);
	(void)archive_read_free(u.outer);
	return r;
}
