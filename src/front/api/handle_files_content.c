/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_files_content.c - The content of files: reading, writing, archives.
 *
 * Bytes are passed on as they come, both ways: a slow client makes the worker in the cell wait, a
 * slow worker makes the client wait, and the daemon's memory does not depend on the size of a file.
 * Content-Length is the size of the file when it was opened; if the file becomes shorter meanwhile,
 * the answer is broken off.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/num.h"
#include "front/api/file_exchange.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "net/http.h"

#define ONE_MAX (256u << 10)

/* ---- headers of an answer ------------------------------------------------------------------ */

static void add_etag(struct http_exchange *x, const struct files_stat *st, char etag[64])
{
	(void)snprintf(etag, 64, "\"%llx-%llx-%llx\"", (unsigned long long)st->ino,
		       (unsigned long long)st->size, (unsigned long long)st->mtime_ns);
	http_add_header(x, "ETag", etag);
}

static void add_modified(struct http_exchange *x, const struct files_stat *st)
{
	time_t at = (time_t)(st->mtime_ns / 1000000000);
	char text[64];
	struct tm tm;

	/* Names of days and months are English: the front never sets another locale. */
	if (at >= 0 && gmtime_r(&at, &tm) && tm.tm_year <= 8000 &&
	    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0)
		http_add_header(x, "Last-Modified", text);
}

/* Untrusted code made the content: a browser must not show it as a page of this server. */
static void add_download(struct http_exchange *x, const char *path, const char *suffix)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
	_buf_ struct buf b = BUF_INIT(2048);
	size_t end = strlen(path);

	while (end > 0 && path[end - 1] == '/')
		end--;
	size_t at = end;

	while (at > 0 && path[at - 1] != '/' && end - at < 255)
		at--;
	(void)buf_puts(&b, "attachment; filename*=UTF-8''");
	for (; at < end; at++)
		if (strchr(plain, path[at]))
			(void)buf_append(&b, path + at, 1);
		else
			(void)buf_printf(&b, "%%%02X", (unsigned char)path[at]);
	(void)buf_puts(&b, suffix);
	if (!b.err)
		http_add_header(x, "Content-Disposition", buf_str(&b));
	http_add_header(x, "Content-Security-Policy", "sandbox");
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool digits(const char **at, uint64_t *ret)
{
	size_t n = strspn(*at, "0123456789");
	char text[24];

	if (n == 0 || n >= sizeof(text))
		return false;
	memcpy(text, *at, n);
	text[n] = '\0';
	*at += n;
	return num_parse_u64(text, 0, INT64_MAX, ret, NULL) == 0;
}

/* One range of bytes. Other forms are ignored, which HTTP allows: the answer is the whole file. */
static void parse_range(struct file_exchange *v, const char *header)
{
	const char *at = header;

	if (strncmp(at, "bytes=", 6) != 0)
		return;
	at += 6;
	if (*at == '-') {
		at++;
		v->from_end = true;
		v->ranged = digits(&at, &v->first) && *at == '\0';
		return;
	}
	if (!digits(&at, &v->first) || *at++ != '-')
		return;
	v->to_end = *at == '\0';
	v->ranged = v->to_end || (digits(&at, &v->last) && *at == '\0' && v->last >= v->first);
}

/* The range within a file of @size bytes. False: no byte of the file is in it. */
static bool settle_range(struct file_exchange *v, uint64_t size)
{
	if (v->from_end) {
		uint64_t n = v->first < size ? v->first : size;

		v->first = size - n;
		v->last = size - 1;
		return n > 0;
	}
	if (v->to_end || v->last >= size)
		v->last = size - 1;
	return v->first < size;
}

/* Answer without content: the call has nothing more to do. */
static void settle_early(struct file_exchange *v, int status)
{
	struct http_exchange *x = file_exchange_part(v);
	char range[64];

	reply_headers(x);
	if (status == 416) {
		(void)snprintf(range, sizeof(range), "bytes */%llu",
			       (unsigned long long)v->stat.size);
		http_add_header(x, "Content-Range", range);
	}
	http_reply(x, status, NULL, "", 0);
	file_exchange_end(v);
}

static void begin_sized(struct file_exchange *v)
{
	uint64_t size = v->stat.size;
	char range[96];

	reply_headers(v->x);
	if (v->ranged) {
		(void)snprintf(range, sizeof(range), "bytes %llu-%llu/%llu",
			       (unsigned long long)v->first, (unsigned long long)v->last,
			       (unsigned long long)size);
		http_add_header(v->x, "Content-Range", range);
		size = v->last - v->first + 1;
	}
	v->streaming = v->sized = true;
	v->left = size;
	http_stream_sized(v->x, v->ranged ? 206 : 200, "application/octet-stream", size);
	http_stream_on_drain(v->x, file_exchange_drained);
}

static void on_file(struct file_call *c, const struct files_stat *st, struct files_text name,
		    struct files_text target)
{
	struct file_exchange *v = file_exchange_of(c);
	char etag[64];

	if (v->has_stat || !v->x)
		return;
	file_exchange_keep(c, st, name, target);
	const char *known = http_header(v->x, "if-none-match");

	http_add_header(v->x, "Accept-Ranges", "bytes");
	add_etag(v->x, st, etag);
	add_modified(v->x, st);
	if (known && (strcmp(known, "*") == 0 || strstr(known, etag))) {
		settle_early(v, 304);
		return;
	}
	add_download(v->x, c->path, "");
	if (v->ranged && !settle_range(v, st->size)) {
		settle_early(v, 416);
		return;
	}
	if (st->size == 0)
		return; /* empty, or its size is not known: the first byte tells */
	bool head = strcmp(http_request(v->x)->method, "HEAD") == 0;

	begin_sized(v);
	if (head && v->x) {
		struct http_exchange *x = file_exchange_part(v);

		http_stream_end(x);
		file_exchange_end(v);
	}
}

static void on_content(struct file_call *c, const char *data, size_t len)
{
	struct file_exchange *v = file_exchange_of(c);

	if (!v->x)
		return;
	if (!v->streaming)
		file_exchange_stream(v, c->q.op == FILES_TAR_OUT ? "application/x-tar" :
								   "application/octet-stream");
	/* Never more than Content-Length, whatever the worker sends. */
	if (v->sized && len > v->left)
		len = (size_t)v->left;
	v->left -= v->sized ? len : 0;
	file_note_data(&v->note, data, len);
	(void)http_stream_write(v->x, data, len);
}

static void done_content(struct file_call *c)
{
	struct file_exchange *v = file_exchange_of(c);

	if (c->refusal.kind && !v->streaming) {
		file_exchange_refuse(v);
		return;
	}
	struct http_exchange *x = file_exchange_part(v);

	if (!x) {
		file_exchange_end(v);
		return;
	}
	if (!v->streaming) {
		reply_headers(x);
		http_reply(x, 200, "application/octet-stream", "", 0);
	} else if (c->refusal.kind || (c->q.op == FILES_READ && c->end.flags & FILES_CHANGED)) {
		http_stream_abort(x);
	} else {
		http_stream_end(x);
	}
	file_exchange_end(v);
}

static const struct file_call_ops read_ops = {
	.stat = on_file,
	.data = on_content,
	.congested = file_exchange_congested,
	.done = done_content,
};

void handle_file_read(struct sandbox *s, struct http_exchange *x)
{
	struct file_exchange *v = file_exchange_new(s, x, "path", NULL);

	if (!v)
		return; /* answered: there is no exchange any more */
	const char *range = http_header(x, "range");

	/* If-Range needs to know whether the file has changed: then the answer is the whole file.
	 */
	if (range && !http_header(x, "if-range"))
		parse_range(v, range);
	v->call.q.length = FILES_TO_END;
	if (v->ranged) {
		v->call.q.offset = v->first;
		v->call.q.flags = v->from_end ? FILES_FROM_END : 0;
		if (!v->from_end && !v->to_end)
			v->call.q.length = v->last - v->first + 1;
	}
	file_exchange_run(v, FILES_READ, &read_ops);
}

/* ---- archives out -------------------------------------------------------------------------- */

static const struct file_call_ops tar_out_ops = {
	.data = on_content,
	.congested = file_exchange_congested,
	.done = done_content,
};

void handle_file_tar_out(struct sandbox *s, struct http_exchange *x)
{
	struct file_exchange *v = file_exchange_new(s, x, "path", NULL);

	if (!v)
		return;
	add_download(x, strcmp(v->call.path, ".") == 0 ? "workspace" : v->call.path, ".tar");
	v->call.q.depth = FILES_DEPTH_MAX;
	file_exchange_run(v, FILES_TAR_OUT, &tar_out_ops);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* The worker takes more: let the client send it, or tell the worker that it has all. */
static void feed(struct file_call *c)
{
	struct file_exchange *v = file_exchange_of(c);

	if (v->body_ended)
		file_call_finish(c);
	else if (v->x)
		http_pause_body(v->x, false);
}

static void on_body(struct request_context *context, const char *data, size_t len)
{
	struct file_exchange *v = context->work;

	file_note_data(&v->note, data, len);
	file_call_give(&v->call, data, len);
	if (v->x && !file_call_wants(&v->call))
		http_pause_body(v->x, true);
}

static void on_body_end(struct request_context *context)
{
	struct file_exchange *v = context->work;

	v->body_ended = true;
	if (file_call_wants(&v->call))
		file_call_finish(&v->call);
}

static void done_write(struct file_call *c)
{
	struct reply answer;
	struct file_exchange *v = file_exchange_of(c);
	struct http_exchange *x = file_exchange_done(v);

	if (!x)
		return;
	struct json *j = reply_object(&answer, ONE_MAX);

	if (c->q.op == FILES_TAR_IN) {
		json_member_str(j, "path", c->path);
		json_member_uint(j, "entries", c->end.count);
	} else {
		file_json(j, "path", file_text(c->path), &v->stat, file_text(NULL));
	}
	reply_end(&answer, x, c->end.flags & FILES_MADE ? 201 : 200);
	file_exchange_end(v);
}

static const struct file_call_ops write_ops = {
	.stat = file_exchange_keep,
	.feed = feed,
	.done = done_write,
};

static void receive(struct sandbox *s, struct http_exchange *x, enum files_op op)
{
	struct file_exchange *v = file_exchange_new(s, x, "path", NULL);

	if (!v)
		return;
	const char *length = http_header(x, "content-length");

	v->call.q.flags = file_exchange_flag(v, "parents", FILES_PARENTS);
	if (!length || num_parse_u64(length, 0, INT64_MAX, &v->call.q.length, NULL) < 0)
		v->call.q.length = FILES_TO_END;
	file_exchange_take_mode(v);
	context_of(x)->body = on_body;
	context_of(x)->body_end = on_body_end;
	http_pause_body(x, true); /* until the worker is there */
	file_exchange_run(v, op, &write_ops);
}

void handle_file_write(struct sandbox *s, struct http_exchange *x)
{
	receive(s, x, FILES_WRITE);
}

void handle_file_tar_in(struct sandbox *s, struct http_exchange *x)
{
	receive(s, x, FILES_TAR_IN);
}
