/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - A pipe, read to its end. */
#include "workspace_store/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "archive/reader.h"
#include "base/err.h"
#include "base/fd.h"
#include "client/files_client.h"
#include "wire/workspace_store.h"
#include "workspace_store/merge.h"

#define READ_BYTES (256u << 10)

/*
 * The tree of a workspace. Symbolic links may lead anywhere: only code in a cell follows them.
 * Paths and the targets of hard links stay in the tree (archive/path.c), and the merge bounds
 * bytes.
 */
static const struct tar_rules rules = { .path_max = 1024,
					.meta_max = 64u << 10,
					.depth_max = 48,
					.max_bytes = UINT64_MAX / 2,
					.max_files = WORKSPACE_STORE_FILES_MAX,
					.kinds = "01256" };

struct stream {
	struct merge *m;
	struct tar_reader reader;
	struct files_parser parser;
	bool ended;
	struct err *e;
};

static int on_data(void *arg, const char *data, size_t len)
{
	struct stream *s = arg;

	return tar_feed(&s->reader, &merge_sink, s->m, data, len, s->e);
}

static int on_stat(void *arg, const struct files_stat *st, struct files_text a, struct files_text b)
{
	(void)arg, (void)st, (void)a, (void)b;
	return -EPROTO;
}

static int on_event(void *arg, const struct files_event *ev, struct files_text a,
		    struct files_text b)
{
	(void)arg, (void)ev, (void)a, (void)b;
	return -EPROTO;
}

/*
 * A file that shrank while it was packed has zeros in it that nobody wrote: that is no state to
 * keep.
 */
static int on_end(void *arg, const struct files_end *end, struct files_text where)
{
	struct stream *s = arg;

	s->ended = true;
	if (end->error)
		return err_set(s->e, -end->error, "pack '%.*s' in the cell",
			       where.len < 150 ? (int)where.len : 150, where.data);
	if (end->flags & FILES_CHANGED)
		return err_say(
			s->e, -EAGAIN,
			"a file shrank while the workspace was read; try again when nothing writes");
	return 0;
}

/*
 * It may be non-blocking or not, and change: others have it too. Return: bytes, 0 at the end, or
 * -errno.
 */
static ssize_t read_some(int fd, char *chunk, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while ((n = read(fd, chunk, READ_BYTES)) < 0 && (errno == EINTR || errno == EAGAIN))
		(void)poll(&p, 1, -1);
	return n < 0 ? err_set(e, -errno, "read the archive") : n;
}

static int finish(struct stream *s, int r)
{
	if (r == 0 && !tar_ended(&s->reader))
		r = err_say(s->e, -EBADMSG, "the archive has no end");
	tar_reader_free(&s->reader);
	files_parser_free(&s->parser);
	return r;
}

int stream_cell(int fd, struct merge *m, struct err *e)
{
	static char chunk[READ_BYTES];
	static const struct files_sink sink = { on_stat, on_data, on_event, on_end };
	struct stream s = { .m = m, .e = e, .reader.rules = &rules };
	ssize_t n = 0;
	int r = 0;

	while (r == 0 && !s.ended && (n = read_some(fd, chunk, e)) > 0) {
		r = files_feed(&s.parser, &sink, &s, chunk, (size_t)n);
		if (r < 0 && !e->code)
			(void)err_say(e, r, "the cell said what makes no sense");
	}
	if (r == 0 && n < 0)
		r = (int)n;
	if (r == 0 && !s.ended)
		r = err_say(e, -EPIPE, "the cell ended before its workspace was read");
	return finish(&s, r);
}

int stream_plain(int fd, struct merge *m, struct err *e)
{
	static char chunk[READ_BYTES];
	struct stream s = { .m = m, .e = e, .reader.rules = &rules };
	ssize_t n = 0;
	int r = 0;

	while (r == 0 && (n = read_some(fd, chunk, e)) > 0)
		r = tar_feed(&s.reader, &merge_sink, m, chunk, (size_t)n, e);
	return finish(&s, r == 0 && n < 0 ? (int)n : r);
}
