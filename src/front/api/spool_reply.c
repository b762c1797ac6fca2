/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_reply.c - Answers from a spool.
 *
 * A search looks at a few megabytes per round of the loop, so that a long one does not delay other
 * requests. The spool may be removed in between; so the search keeps no pointer to it, and looks it
 * up again each time.
 */
#include "front/api/spool_reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/operations.h"
#include "front/support/daemon.h"
#include "net/http.h"

#define SLICE_BYTES (4u << 20)
#define GLOB_SLICE_BYTES (256u << 10) /* each byte may be compared as often as a part is long */
#define ANSWER_MAX (32u << 20)

static void disk_failed(struct http_exchange *x)
{
	reply_error(x, 500, "spool_failed", NULL, "see the daemon's log and its disk",
		    "what was written could not be read back");
}

/* ---- by offset ----------------------------------------------------------------------------- */

static void add_number(struct http_exchange *x, const char *name, uint64_t v)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	http_add_header(x, name, text);
}

bool output_is_stderr(const struct http_exchange *x)
{
	const char *stream = context_text(x, "stream");

	return stream && strcmp(stream, "stderr") == 0;
}

void output_reply(struct http_exchange *x, const struct spool *s, bool ended)
{
	_buf_ struct buf b = BUF_INIT(OUTPUT_LIMIT_MAX);
	uint64_t offset = context_number(x, "offset", 0);
	uint64_t limit = context_number(x, "limit", OUTPUT_LIMIT);
	uint64_t left = offset < s->kept ? s->kept - offset : 0;
	size_t len = (size_t)(left < limit ? left : limit);
	char *to = len > 0 ? buf_reserve(&b, len) : NULL;
	int64_t n = 0;

	if (len > 0 && !to) {
		reply_no_memory(x);
		return;
	}
	if (len > 0)
		n = spool_read(s, offset, to, len);
	if (n < 0) {
		disk_failed(x);
		return;
	}
	reply_headers(x);
	add_number(x, "X-Output-Offset", offset);
	add_number(x, "X-Output-Bytes", s->bytes);
	add_number(x, "X-Output-Kept", s->kept);
	http_add_header(x, "X-Output-Complete", ended ? "true" : "false");
	if (spool_loss_name(s->loss))
		http_add_header(x, "X-Output-Lost", spool_loss_name(s->loss));
	http_reply(x, 200, "application/octet-stream", to ? to : "", (size_t)n);
}

/* ---- by pattern ---------------------------------------------------------------------------- */

struct search {
	struct http_exchange *x;
	struct loop *loop;
	struct deferred slice;
	const struct spool *(*find)(struct http_exchange *x);
	struct spool_search at;
	struct spool_pattern pattern;
	uint64_t slice_bytes;
	uint64_t left; /* lines that may still be found */
	struct buf out;
	struct json j;
};

static void free_search(struct search *s)
{
	loop_undefer(s->loop, &s->slice);
	buf_free(&s->out);
	free(s);
}

static void on_gone(struct request_context *v)
{
	free_search(v->work);
}

static void on_match(void *arg, uint64_t offset, uint64_t line, const char *text, size_t len)
{
	struct search *s = arg;

	s->left--;
	json_object_begin(&s->j);
	json_member_uint(&s->j, "offset", offset);
	json_member_uint(&s->j, "line", line);
	json_key(&s->j, "text");
	(void)json_strn(&s->j, text, utf8_fit(text, len, SPOOL_LINE_MAX));
	json_object_end(&s->j);
}

static void finish(struct search *s, const struct spool *spool, bool more)
{
	struct http_exchange *x = s->x;

	json_array_end(&s->j);
	/* Bytes that are not kept cannot be searched. */
	json_member_bool(&s->j, "truncated", more || spool->kept < spool->bytes);
	if (more)
		json_member_uint(&s->j, "next_offset", s->at.offset);
	json_member_uint(&s->j, "bytes", spool->bytes);
	json_member_uint(&s->j, "kept_bytes", spool->kept);
	json_object_end(&s->j);
	(void)context_done(x);
	reply_written(x, 200, &s->j);
	free_search(s);
}

static void on_slice(struct deferred *d)
{
	struct search *s = d->arg;
	struct http_exchange *x = s->x;
	const struct spool *spool = s->find(x);

	if (!spool) {
		(void)context_done(x);
		free_search(s);
		reply_error(x, 410, "execution_gone", NULL, NULL, "the output is no longer kept");
		return;
	}
	int r = spool_search(spool, &s->at, &s->pattern, (size_t)s->left, s->slice_bytes, on_match,
			     s);

	if (r < 0) {
		(void)context_done(x);
		free_search(s);
		disk_failed(x);
	} else if (r == 0 || (s->left == 0 && !s->at.matched)) {
		finish(s, spool, r > 0);
	} else {
		loop_defer(s->loop, &s->slice);
	}
}

void output_search(struct http_exchange *x, const struct spool *(*find)(struct http_exchange *x))
{
	const char *pattern = context_text(x, "pattern");
	bool glob = json_is_true(json_object_get(context_of(x)->fields, "glob"));
	struct search *s = calloc(1, sizeof(*s));

	if (!s) {
		reply_no_memory(x);
		return;
	}
	if (!spool_pattern_make(&s->pattern, pattern, strlen(pattern), glob)) {
		free(s);
		reply_error(x, 422, "invalid_value", "pattern",
			    "name something beside the `*`, which is any text",
			    "every line fits this pattern");
		return;
	}
	s->slice_bytes = glob ? GLOB_SLICE_BYTES : SLICE_BYTES;
	s->at.from = context_number(x, "offset", 0);
	s->x = x;
	s->loop = context_of(x)->server->loop;
	s->find = find;
	s->left = context_number(x, "limit", SEARCH_LIMIT);
	s->slice.fn = on_slice;
	s->slice.arg = s;
	buf_init(&s->out, ANSWER_MAX);
	json_init(&s->j, &s->out);
	json_object_begin(&s->j);
	json_member_array(&s->j, "matches");
	context_wait(s->x, s, on_gone);
	on_slice(&s->slice);
}
