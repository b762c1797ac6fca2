/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_http.c - Whole connections: bytes in, requests and answers out.
 *
 * The first byte is a mode (answer at once or later, whole or as a stream, client reads or stalls),
 * the second chooses how the rest is cut. Every input runs twice, in one piece and cut. For every
 * input, the handlers' view obeys http.h, each exchange ends exactly once, and both runs see the
 * same requests and give the same answers in the same order. So the result does not depend on cuts.
 */
#include "base/utf8.h"
#include "fake_conn.h"
#include "fuzz.h"
#include "net/http.h"
#include "net/ws.h"

#define MODE_LATER 1
#define MODE_STREAM 2
#define MODE_STALL 4
#define MODE_EOF 8

struct run {
	unsigned int mode;
	struct buf log;
	struct http_exchange *pending;
	size_t begun, done, ws_open;
};

static struct run *run;

static void check_request(const struct http_exchange *x)
{
	const struct http_request *q = http_request(x);

	require(q->method[0] && q->target[0] && q->path[0] && q->query && q->host && q->body);
	require(q->path[0] == '/' || strcmp(q->path, "*") == 0);
	require(utf8_valid(q->path, strlen(q->path)) && !strstr(q->path, "/../"));
	require(q->body_len <= http_config_of(x)->body_max && q->body[q->body_len] == '\0');
	require(q->http10 || q->host[0]);
	require(q->n_headers <= HTTP_HEADERS_MAX);
	for (size_t i = 0; i < q->n_headers; i++) {
		const struct http_header *h = &q->headers[i];

		require(h->name[0] && strlen(h->value) == h->value_len);
		require(http_header(x, h->name) == h->value); /* names are unique */
		for (const char *c = h->name; *c; c++)
			require(*c > ' ' && *c != ':' && (*c < 'A' || *c > 'Z'));
		for (const char *c = h->value; *c; c++)
			require((unsigned char)*c >= ' ' || *c == '\t');
	}
}

static void answer(struct http_exchange *x)
{
	if (run->mode & MODE_STREAM) {
		http_stream(x, 200, "text/event-stream");
		(void)sse_event(x, "1", NULL, http_request(x)->body, http_request(x)->body_len);
		(void)sse_comment(x, http_request(x)->path);
		http_stream_end(x);
	} else {
		http_add_header(x, "X-Test", "1");
		http_reply(x, 200, "text/plain", http_request(x)->body, http_request(x)->body_len);
	}
}

static int on_head(struct http_exchange *x)
{
	run->begun++;
	check_request(x);
	if (strcmp(http_request(x)->path, "/refuse") == 0) {
		http_reply(x, 403, NULL, "no", 2);
		return 403;
	}
	return 0;
}

static void on_gone(struct http_exchange *x)
{
	require(run->pending == x);
	run->pending = NULL;
}

static void on_ws_message(struct ws *w, bool text, const char *data, size_t len)
{
	(void)ws_send(w, text, data, len);
}

static void on_ws_close(struct ws *w, int code)
{
	(void)w;
	require(code >= 1000 && code < 5000);
	run->ws_open--;
}

static const struct ws_ops ws_ops = { .on_message = on_ws_message, .on_close = on_ws_close };

static void on_request(struct http_exchange *x)
{
	const struct http_request *q = http_request(x);

	check_request(x);
	(void)buf_printf(&run->log, "%s %s %s %zu\n", q->method, q->path, q->query, q->body_len);
	(void)buf_append(&run->log, q->body, q->body_len);
	if (http_is_ws(x)) {
		require(http_upgrade_ws(x, &ws_ops, NULL, 1000));
		run->ws_open++;
	} else if (run->mode & MODE_LATER) {
		require(!run->pending);
		run->pending = x;
		http_set_user(x, run, on_gone);
	} else {
		answer(x);
	}
}

static void on_error(struct http_exchange *x, int status, const char *message)
{
	require(status >= 400 && status <= 505 && message && *message);
	(void)buf_printf(&run->log, "error %d %s\n", status, message);
	http_reply(x, status, "text/plain", message, strlen(message));
}

static void on_done(struct http_exchange *x)
{
	require(http_status(x) == 0 || http_bytes_out(x) > 0);
	run->done++;
}

static const struct http_config config = {
	.head_max = 2048,
	.target_max = 256,
	.body_max = 4096,
	.head_ns = 10,
	.body_ns = 10,
	.idle_ns = 10,
	.write_ns = 10,
	.on_head = on_head,
	.on_request = on_request,
	.on_error = on_error,
	.on_done = on_done,
};

static void settle(struct conn *c)
{
	while (run->pending && fake_open(c)) {
		struct http_exchange *x = run->pending;

		run->pending = NULL;
		http_set_user(x, NULL, NULL);
		answer(x);
		fake_deferred(c);
	}
}

/* Answers without what depends on time and cutting: Date, and whether a client was told to go
 * on. */
static void put_output(struct buf *to, const char *s, size_t len)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

	for (size_t i = 0; i < len;) {
		if (len - i >= sizeof(go_on) - 1 && memcmp(s + i, go_on, sizeof(go_on) - 1) == 0) {
			i += sizeof(go_on) - 1;
		} else if (len - i >= 37 && memcmp(s + i, "Date: ", 6) == 0) {
			i += 37;
		} else {
			(void)buf_append(to, s + i, 1);
			i++;
		}
	}
}

static void run_once(struct run *r, const uint8_t *data, size_t size, size_t step)
{
	struct conn c;

	run = r;
	buf_init(&r->log, SIZE_MAX / 2);
	fake_init(&c);
	c.stalled = r->mode & MODE_STALL;
	http_serve(&c, &config);
	require(http_live(&config) == 1);
	for (size_t at = 0; at < size; at += step) {
		size_t n = size - at < step ? size - at : step;

		/* Paused: it has to go on as soon as what it waits for has happened. */
		for (int tries = 0; !fake_deliver(&c, data + at, n); tries++) {
			require(tries < 1000);
			settle(&c);
			fake_read(&c, 4096);
		}
		settle(&c);
	}
	while (fake_open(&c) && (run->pending || conn_queued(&c) > 0)) {
		settle(&c);
		fake_read(&c, 4096);
	}
	if (r->mode & MODE_EOF)
		fake_eof(&c);
	put_output(&r->log, c.out.data, c.out.len);
	require(c.paused == false || !fake_open(&c));
	fake_end(&c);
	require(!r->pending && r->ws_open == 0 && http_live(&config) == 0 && !r->log.err);
	require(r->done >= r->begun);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;

	struct run whole = { .mode = data[0] }, cut = { .mode = data[0] };

	run_once(&whole, data + 2, size - 2, size);
	run_once(&cut, data + 2, size - 2, data[1] ? data[1] : 1);
	require(whole.log.len == cut.log.len &&
		memcmp(buf_str(&whole.log), buf_str(&cut.log), cut.log.len) == 0);
	require(whole.done == cut.done && whole.begun == cut.begun);
	buf_free(&whole.log);
	buf_free(&cut.log);
	return 0;
}
