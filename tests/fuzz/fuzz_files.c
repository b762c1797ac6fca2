/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_files.c - Messages of a worker to the host: any bytes.
 *
 * Checked: pieces of any size give the same result, every text lies inside the input, the reader
 * hands up no more content than the input has, and nothing after the end.
 */
#include "client/files_client.h"
#include "fuzz.h"

struct seen {
	uint64_t hash;
	size_t bytes;
	bool ended;
};

static void mix(struct seen *s, const void *data, size_t len)
{
	const unsigned char *p = data;

	require(!s->ended);
	for (size_t i = 0; i < len; i++)
		s->hash = (s->hash ^ p[i]) * 0x100000001b3;
}

static void text(struct seen *s, struct files_text t)
{
	require(t.len <= FILES_TEXT_MAX && !memchr(t.data, '\0', t.len));
	mix(s, t.data, t.len);
}

static int on_stat(void *arg, const struct files_stat *st, struct files_text name,
		   struct files_text target)
{
	require(st->type < FILES_T_MAX_ && name.len == st->name_len &&
		target.len == st->target_len);
	mix(arg, st, sizeof(*st));
	text(arg, name);
	text(arg, target);
	return 0;
}

static int on_data(void *arg, const char *data, size_t len)
{
	struct seen *s = arg;

	require(len > 0);
	s->bytes += len;
	mix(s, data, len);
	return 0;
}

static int on_event(void *arg, const struct files_event *ev, struct files_text name,
		    struct files_text from)
{
	require(ev->kind > 0 && ev->kind < FILES_E_MAX_);
	mix(arg, ev, sizeof(*ev));
	text(arg, name);
	text(arg, from);
	return 0;
}

static int on_end(void *arg, const struct files_end *end, struct files_text where)
{
	struct seen *s = arg;

	require(end->error >= 0);
	mix(s, end, sizeof(*end));
	text(s, where);
	s->ended = true;
	return 0;
}

static int feed(const uint8_t *data, size_t size, size_t piece, struct seen *ret)
{
	static const struct files_sink sink = { on_stat, on_data, on_event, on_end };
	struct files_parser p = { 0 };
	int r = 0;

	*ret = (struct seen){ .hash = 1 };
	for (size_t at = 0, n; r == 0 && at < size; at += n) {
		n = size - at < piece ? size - at : piece;
		r = files_feed(&p, &sink, ret, data + at, n);
	}
	files_parser_free(&p);
	require(ret->bytes <= size);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole, pieces;

	if (size == 0)
		return 0;
	int r = feed(data, size, size, &whole);
	int s = feed(data, size, 1 + data[0] % 13, &pieces);

	require(r == s && whole.hash == pieces.hash && whole.bytes == pieces.bytes);
	return 0;
}
