/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c - GET .../processes/{process_id}/attach: a process over a WebSocket.
 *
 * Out: binary messages are bytes of its stdout, or of its terminal (of stderr with ?stream=stderr),
 * from ?offset= on; {"type":"gap","bytes":N} where some are not kept; {"type":"exit", ...Process}
 * at the end, then the socket closes with 1000. In: binary messages are its input;
 * {"type":"resize","rows":R,"cols":C}, {"type":"eof"}.
 *
 * Every attached client has an offset in the stream. A client at its end gets each new piece at
 * once; any other reads from the spool as fast as its connection allows. A client that was at the
 * end and then falls behind by more than 4 MiB is closed with 1013, and can come back with the
 * offset that it has reached. Leaving does nothing to the process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/api/spool_reply.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/sandbox/process.h"
#include "front/support/refusal.h"
#include "front/support/schema.h"
#include "net/http.h"
#include "net/ws.h"

#define BEHIND_MAX (UINT64_C(4) << 20)
#define CHUNK 65536u
#define MESSAGE_MAX (256u << 10)
#define INPUT_WAITS                                                                                \
	(256u << 10)   /* more than this waits for the process: nothing is read any more */
#define SIZE_MAX_ 4096 /* rows and columns */
#define GOING_AWAY 1001
#define TRY_AGAIN 1013

struct attach {
	struct ws *ws;
	struct process_listener listener;
	enum command_stream stream;
	uint64_t at;  /* offset of the next byte for it */
	bool current; /* was up to date once */
	bool paused;  /* its input waits */
	bool closing;
};

/* ---- out ----------------------------------------------------------------------------------- */

static void send_json(struct attach *a, struct json *j, const struct buf *b)
{
	(void)json_finish(j); /* b->err */
	(void)ws_send_buf(a->ws, true, b);
}

static void close_ws(struct attach *a, int code, const char *reason)
{
	a->closing = true;
	process_unlisten(&a->listener);
	ws_close(a->ws, code, reason);
}

static void send_gap(struct attach *a, uint64_t bytes)
{
	_buf_ struct buf b = BUF_INIT(128);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "type", "gap");
	json_member_uint(&j, "bytes", bytes);
	json_object_end(&j);
	send_json(a, &j, &b);
}

static void send_exit(struct attach *a, const struct process *p)
{
	_buf_ struct buf b = BUF_INIT(8u << 20), object = BUF_INIT(8u << 20);
	struct json j;

	json_init(&j, &object);
	process_json(p, &j);
	b.err = json_finish(&j);
	(void)buf_puts(&b, "{\"type\":\"exit\",");
	if (!b.err)
		(void)buf_append(&b, buf_str(&object) + 1, object.len - 1);
	(void)ws_send_buf(a->ws, true, &b);
}

static void send_error(struct attach *a, const char *code, const char *message)
{
	_buf_ struct buf b = BUF_INIT(4096), object = BUF_INIT(4096);

	error_json(&object, code, message, NULL, NULL);
	b.err = object.err;
	(void)buf_puts(&b, "{\"type\":\"error\",");
	if (!b.err)
		(void)buf_append(&b, buf_str(&object) + 1, object.len - 1);
	(void)ws_send_buf(a->ws, true, &b);
}

/* From the spool, until its connection has enough. */
static void pump(struct attach *a)
{
	static char chunk[CHUNK];
	struct process *p = a->listener.process;
	const struct spool *s = p ? &p->spool[a->stream] : NULL;

	while (p && !a->closing && a->at < s->bytes && !ws_congested(a->ws)) {
		int64_t n = a->at < s->kept ? spool_read(s, a->at, chunk, sizeof(chunk)) : 0;

		if (n > 0 && ws_send(a->ws, false, chunk, (size_t)n) < 0)
			return;
		if (n <= 0) {
			send_gap(a, s->bytes - a->at);
			a->at = s->bytes;
			break;
		}
		a->at += (uint64_t)n;
	}
	if (!p || a->closing || a->at < s->bytes)
		return;
	a->current = true;
	if (p->exited) {
		send_exit(a, p);
		close_ws(a, 1000, NULL);
	}
}

static void on_output(struct process_listener *l, enum command_stream stream, const char *data,
		      size_t len)
{
	struct attach *a = l->arg;
	const struct spool *s = &l->process->spool[stream];

	if (stream != a->stream)
		return;
	if (a->at == s->bytes - len && !ws_congested(a->ws)) {
		a->at += ws_send(a->ws, false, data, len) == 0 ? len : 0;
		a->current = true;
	} else if (a->current && s->bytes - a->at > BEHIND_MAX) {
		close_ws(a, TRY_AGAIN, "too far behind; come back with the offset you have");
	}
}

static void on_exited(struct process_listener *l)
{
	pump(l->arg);
}

static void on_forgotten(struct process_listener *l)
{
	close_ws(l->arg, GOING_AWAY, "the process was removed");
}

static bool is_congested(struct process_listener *l)
{
	const struct attach *a = l->arg;

	return ws_congested(a->ws);
}

static void on_drain(struct ws *w)
{
	struct attach *a = ws_user(w);
	struct process *p = a->listener.process;

	pump(a);
	if (p && a->listener.process)
		process_resume(p);
}

/* ---- in ------------------------------------------------------------------------------------ */

static void on_input_ready(struct process_listener *l)
{
	struct attach *a = l->arg;

	if (a->paused)
		ws_pause(a->ws, false);
	a->paused = false;
}

static void on_bytes(struct attach *a, struct process *p, const char *data, size_t len)
{
	int r = len ? command_input(&p->command, data, len) : 0;

	if (r == -EPIPE)
		send_error(a, "stdin_closed", "its stdin is closed");
	else if (r < 0)
		send_error(a, "stdin_full", "too much waits for the process to read it");
	else if (p->command.input.len > INPUT_WAITS) {
		a->paused = true;
		ws_pause(a->ws, true);
	}
}

static void on_text(struct attach *a, struct process *p, const json_t *m)
{
	const char *type = json_string_value(json_object_get(m, "type"));
	json_int_t rows = json_integer_value(json_object_get(m, "rows"));
	json_int_t cols = json_integer_value(json_object_get(m, "cols"));

	if (type && strcmp(type, "eof") == 0)
		command_input_end(&p->command);
	else if (!type || strcmp(type, "resize") != 0)
		send_error(a, "unknown_type", "types are resize and eof");
	else if (!p->command.pty)
		send_error(a, "no_terminal", "the process has no terminal");
	else if (rows < 1 || cols < 1 || rows > SIZE_MAX_ || cols > SIZE_MAX_)
		send_error(a, "out_of_range", "rows and cols are from 1 to 4096");
	else
		command_resize(&p->command, (uint16_t)rows, (uint16_t)cols);
}

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
	struct attach *a = ws_user(w);
	struct process *p = a->listener.process;
	struct schema_error bad = { 0 };

	if (!p || p->exited)
		return;
	if (!text) {
		on_bytes(a, p, data, len);
		return;
	}
	json_t *m = schema_load(data, len, &bad);

	if (m)
		on_text(a, p, m);
	else
		send_error(a, bad.code, bad.message);
	json_decref(m);
}

static void on_close(struct ws *w, int code)
{
	struct attach *a = ws_user(w);

	(void)code;
	process_unlisten(&a->listener);
	free(a);
}

static const struct ws_ops ops = { .on_message = on_message,
				   .on_drain = on_drain,
				   .on_close = on_close };

/* ---- the route ----------------------------------------------------------------------------- */

static void set_up(struct attach *a, struct process *p, const struct http_exchange *x)
{
	a->stream = output_is_stderr(x) ? COMMAND_STDERR : COMMAND_STDOUT;
	const struct spool *s = &p->spool[a->stream];

	a->at = context_number(x, "offset", p->command.pty ? s->bytes : 0);
	if (a->at > s->bytes)
		a->at = s->bytes;
	a->listener = (struct process_listener){ .output = on_output,
						 .input_ready = on_input_ready,
						 .exited = on_exited,
						 .forgotten = on_forgotten,
						 .congested = is_congested,
						 .arg = a };
}

void handle_process_attach(struct sandbox *s, struct http_exchange *x)
{
	struct process *found = own_process(s, x);

	if (!found || !reply_is_ws(x, "connect with a WebSocket client"))
		return;
	struct attach *a = calloc(1, sizeof(*a));

	if (!a) {
		reply_no_memory(x);
		return;
	}
	set_up(a, found, x);
	a->ws = http_upgrade_ws(x, &ops, a, MESSAGE_MAX);
	if (a->ws) {
		process_listen(found, &a->listener);
		pump(a);
	} else {
		free(a);
	}
}
