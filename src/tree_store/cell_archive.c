/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_archive.c - Frames of a file call to the entries of an archive.
 *
 * Every byte may come from hostile code: the parser of frames (client/files_client.h) and the
 * reader of archives (archive/reader.h) check what they pass on. This call has frames of content
 * and one end; any other frame is malformed.
 */
#include "tree_store/cell_archive.h"

#include <errno.h>

#include "base/err.h"

static int on_data(void *arg, const char *data, size_t len)
{
	struct cell_archive *a = arg;

	return tar_feed(&a->reader, a->sink, a->arg, data, len, a->e);
}

static int on_end(void *arg, const struct files_end *end, struct files_text where)
{
	struct cell_archive *a = arg;

	if (end->error)
		return err_set(a->e, -end->error, "pack '%.*s' in the cell",
			       where.len < 150 ? (int)where.len : 150, where.data);
	if (!tar_ended(&a->reader))
		return err_say(a->e, -EBADMSG, "the archive has no end");
	a->changed = end->flags & FILES_CHANGED;
	a->ended = true;
	return 0;
}

int cell_archive_feed(struct cell_archive *a, const void *data, size_t len)
{
	static const struct files_sink sink = { .data = on_data, .end = on_end };
	int r = files_feed(&a->parser, &sink, a, data, len);

	if (r < 0 && !a->e->code)
		(void)err_say(a->e, r, "the cell sent malformed frames");
	return r;
}

void cell_archive_free(struct cell_archive *a)
{
	tar_reader_free(&a->reader);
	files_parser_free(&a->parser);
}
