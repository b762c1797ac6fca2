/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_archive.c - The two halves of unpacking: decompress, and make files of a tar archive
 * (unpack_entry.c).
 *
 * libarchive does both, in a process each; a third process between them hashes (layer.c). The
 * reader of src/archive is not used here: it is strict, because it reads archives of our own, and
 * layers come from every tool there is, with pax, GNU and sparse forms. Nothing that libarchive
 * gets wrong can reach further than the directory.
 */
#include "image/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/unpack_files.h"

#define READ_BYTES (256u << 10)

/* ---- the compression ----------------------------------------------------------------------- */

static int inflate_to(struct archive *a, int to, struct err *e)
{
	const void *data;
	int64_t offset;
	size_t len;
	int r;

	while ((r = archive_read_data_block(a, &data, &len, &offset)) == ARCHIVE_OK) {
		r = fd_write_all(to, data, len);
		if (r < 0)
			return err_set(e, r, "pass the layer on");
	}
	return r == ARCHIVE_EOF ? 0 :
				  err_say(e, -EBADMSG, "the layer is damaged: %.200s",
					  archive_error_string(a));
}

int unpack_inflate(int archive, int to, struct err *e)
{
	struct archive *a = archive_read_new();
	struct archive_entry *en;
	int r;

	if (!a)
		return err_set(e, -ENOMEM, "unpack");
	(void)archive_read_support_filter_gzip(a);
	(void)archive_read_support_filter_zstd(a);
	(void)archive_read_support_format_raw(a);
	if (archive_read_open_fd(a, archive, READ_BYTES) != ARCHIVE_OK ||
	    archive_read_next_header(a, &en) != ARCHIVE_OK)
		r = err_say(e, -EBADMSG, "the layer cannot be read: %.150s",
			    archive_error_string(a) ? archive_error_string(a) : "empty");
	else
		r = inflate_to(a, to, e);
	(void)archive_read_free(a);
	return r;
}

/* ---- the archive --------------------------------------------------------------------------- */

static la_ssize_t on_read(struct archive *a, void *arg, const void **ret)
{
	static char piece[READ_BYTES];
	struct unpack *u = arg;
	ssize_t n = TEMP_FAILURE_RETRY(read(u->from, piece, sizeof(piece)));

	if (n < 0) {
		archive_set_error(a, errno, "read");
		return -1;
	}
	u->eof = n == 0;
	u->stream += (uint64_t)n;
	if (u->stream > u->limits->bytes) {
		u->over = true;
		archive_set_error(a, EFBIG, "too large");
		return -1;
	}
	*ret = piece;
	return n;
}

static int open_reader(struct unpack *u, struct err *e)
{
	u->archive = archive_read_new();
	if (!u->archive)
		return err_set(e, -ENOMEM, "unpack");
	(void)archive_read_support_format_tar(u->archive);
	if (archive_read_open(u->archive, u, NULL, on_read, NULL) != ARCHIVE_OK)
		return err_say(e, -EBADMSG, "the layer is not a tar archive: %.150s",
			       archive_error_string(u->archive));
	return 0;
}

static int read_entries(struct unpack *u, struct err *e)
{
	struct archive_entry *en;
	int r;

	for (;;) {
		r = archive_read_next_header(u->archive, &en);
		if (r == ARCHIVE_EOF)
			return 0;
		if (u->over)
			return unpack_too_large(u, e);
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return err_say(e, -EBADMSG, "the layer is damaged: %.200s",
				       archive_error_string(u->archive));
		r = unpack_entry(u, en, e);
		if (r < 0)
			return u->over ? unpack_too_large(u, e) : r;
		if (u->cut)
			return 0;
	}
}

/* Bytes after the archive's end are part of the hash, and the process that hashes waits for us. */
static int drain(struct unpack *u, struct err *e)
{
	const void *data;
	la_ssize_t n;

	while ((n = on_read(u->archive, u, &data)) > 0)
		;
	if (u->over)
		return unpack_too_large(u, e);
	return n < 0 ? err_say(e, -EBADMSG, "the layer is damaged at its end: %.200s",
			       archive_error_string(u->archive)) :
		       0;
}

int unpack(int tar, int root, const struct unpack_limits *limits, struct unpack_report *ret,
	   struct err *e)
{
	struct unpack u = {
		.limits = limits, .ret = ret, .from = tar, .dirs = { .root = root, .parent = -1 }
	};
	int r;

	if ((r = open_reader(&u, e)) == 0 && (r = read_entries(&u, e)) == 0 &&
	    (r = drain(&u, e)) == 0 && (r = layer_set_times(&u.dirs)) < 0)
		(void)err_set(e, r, "set times of directories");
	layer_dirs_free(&u.dirs);
	(void)archive_read_free(u.archive);
	return r;
}
