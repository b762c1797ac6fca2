/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_events.c - The events of an execution, made from messages and text of its kernel.
 *
 * Text comes over descriptors 1 and 2. It is read up to a message before that message is handled,
 * so text that was printed before a picture stays before it. A listener that does not keep up stops
 * the kernels of its cell until it does, or until the execution has to end. Then the kernels are
 * read again, so that the interrupt can reach them, and events that such a listener has no room for
 * are only in the result. The content of a message belongs to the code: it is passed on as JSON
 * that was parsed and written again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h" /* ARRAY_SIZE */
#include "base/json.h"
#include "base/utf8.h"
#include "front/cell/cell.h"
#include "front/cell/kernel.h"
#include "front/output/stream_log.h"
#include "front/sandbox/event.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/metrics.h"

#define ERROR_NAME_MAX 256u
#define ERROR_LINES_MAX 100u
#define TRACEBACK_LINES_MAX 400u /* printed; the drivers send no more */
#define ERROR_LINE_CHARS 1000u
#define ERROR_VALUE_CHARS 10000u
#define MESSAGE_BYTES (20u << 20)
#define HELD_MAX 4096u                /* bytes of a line that waits for its end */
#define HELD_NS (1 * CLOCK_NS_PER_MS) /* how long it waits */
/* Bytes for a listener that does not keep up, while the execution ends. */
#define LATE_MAX (1u << 20)

/* ---- an event as JSON ---------------------------------------------------------------------- */

const char *event_name(enum event_kind kind)
{
	static const char *const names[EVENT_KINDS_] = {
		[EVENT_STDOUT] = "stdout",
		[EVENT_STDERR] = "stderr",
		[EVENT_DISPLAY] = "display",
		[EVENT_RESULT] = "result",
		[EVENT_ERROR] = "error",
		[EVENT_INPUT_REQUEST] = "input_request",
		[EVENT_CLEAR_OUTPUT] = "clear_output",
	};

	return names[kind];
}

void event_json(const struct event *ev, struct buf *out)
{
	struct json j;

	if (ev->members) {
		json_alloc_dump(out, ev->members);
		return;
	}
	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "data");
	if (json_strn(&j, ev->text, ev->len)) {
		json_key(&j, "data_base64");
		json_base64(&j, ev->text, ev->len);
	}
	json_object_end(&j);
	if (json_finish(&j) < 0 && !out->err)
		out->err = -EMSGSIZE;
}

/* ---- to the listeners ---------------------------------------------------------------------- */

/*
 * Pause or resume all kernels of the cell: output of the other languages goes to the same listener.
 */
static void pause_kernels(const struct execution *x, bool pause)
{
	struct cell *r = x->sandbox ? x->sandbox->cell : NULL;

	for (size_t i = 0; r && i < LANG_MAX_; i++)
		if (r->kernels[i].attached)
			kernel_pipes_pause(&r->kernels[i].pipes, pause);
}

void execution_resume(struct execution *x)
{
	pause_kernels(x, false);
}

static bool congested(struct execution *x)
{
	return !x->cancelled && x->sink->congested && x->sink->congested(x);
}

static bool has_log(const struct execution *x)
{
	return x->record && x->record->log;
}

static bool has_listener(const struct execution *x)
{
	return x->sink->event && !x->cancelled;
}

/* @size: about how much of the listener's memory the event takes. */
static void send_event(struct execution *x, const struct event *ev, size_t size)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_BYTES);

	if (!has_log(x) && !has_listener(x))
		return;
	/* After the first event that is left out all others are, too: a stream has an early end,
	 * but no gaps. */
	if (x->phase != X_RUNNING && (x->late > LATE_MAX || congested(x)))
		x->late += size;
	if (x->late <= LATE_MAX && has_log(x))
		event_json(ev, &b);
	if (b.err)
		x->late = LATE_MAX + 1; /* no memory for it: an early end, too */
	if (x->late > LATE_MAX)
		return;
	if (has_log(x))
		stream_log_take(x->record->log, event_name(ev->kind), &b);
	if (has_listener(x))
		x->sink->event(x, ev);
	if (x->phase == X_RUNNING && congested(x))
		pause_kernels(x, true);
}

static void send_text(struct execution *x, enum kernel_stream stream, const char *data, size_t len,
		      bool end)
{
	_buf_ struct buf room = BUF_INIT(MESSAGE_BYTES);
	struct event ev = { .kind = stream == STREAM_STDOUT ? EVENT_STDOUT : EVENT_STDERR };

	ev.text = text_join(&x->joiners[stream], data, len, end, &room, &ev.len);
	if (room.err)
		x->late = LATE_MAX + 1;
	else if (ev.len > 0)
		send_event(x, &ev, ev.len);
}

/* ---- text: print() writes a line and its newline separately; they become one event --------- */

static void let_go(struct execution *x)
{
	_buf_ struct buf b = x->held;

	buf_init(&x->held, HELD_MAX);
	timer_cancel(&x->hold);
	if (b.len > 0)
		send_text(x, x->held_stream, buf_str(&b), b.len, false);
}

static void on_held(struct timer *t)
{
	let_go(t->arg);
}

static void emit_text(struct execution *x, enum kernel_stream stream, const char *data, size_t len)
{
	bool whole = len > 0 && data[len - 1] == '\n';

	if (x->held.len > 0 && (x->held_stream != stream || x->held.len + len > HELD_MAX))
		let_go(x);
	if ((x->held.len == 0 && whole) || len > HELD_MAX) {
		send_text(x, stream, data, len, false);
		return;
	}
	x->held.max = HELD_MAX;
	x->held_stream = stream;
	if (buf_append(&x->held, data, len) < 0) {
		let_go(x);
		send_text(x, stream, data, len, false);
	} else if (whole) {
		let_go(x);
	} else if (!x->hold.loop) {
		x->hold.fn = on_held;
		x->hold.arg = x;
		timer_after(x->sandboxes->loop, &x->hold, HELD_NS);
	}
}

void execution_emit(struct execution *x, enum event_kind kind, const json_t *members, size_t size)
{
	struct event ev = { .kind = kind, .members = members };

	if (kind == EVENT_RESULT) {
		ev.metadata = x->result_metadata;
		ev.truncated = x->result_cut;
	}
	let_go(x);
	send_event(x, &ev, size);
}

void execution_flush(struct execution *x)
{
	let_go(x);
	for (unsigned int stream = 0; stream < ARRAY_SIZE(x->joiners); stream++)
		if (x->joiners[stream].n_tail > 0)
			send_text(x, stream, "", 0, true);
}

static void put_output(struct execution *x, enum kernel_stream stream, const char *data, size_t len)
{
	displays_output(&x->displays);
	spool_append(x->streams[stream], data, len);
	if (x->sandbox->name[0])
		tail_add(&x->sandbox->log, data, len);
	if (has_log(x) || has_listener(x))
		emit_text(x, stream, data, len);
}

/*
 * A display that the result has no room for is not in the log either. A notebook has no other
 * result than its events, and gets it.
 */
static void on_display(struct execution *x, struct kernel *s, const json_t *m)
{
	static const char *const keys[] = { "data", "metadata", "display_id", "update" };
	json_t *kept = json_object();

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *v = json_object_get(m, keys[i]);

		if (v && !json_is_null(v))
			(void)json_object_set(kept, keys[i], v);
	}
	if (json_is_true(json_object_get(m, "truncated")))
		(void)json_object_set_new(kept, "truncated", json_true());
	size_t size = displays_put(&x->displays, kept);

	if (size > 0 || (kept && !has_log(x)))
		execution_emit(x, EVENT_DISPLAY, kept, size > 0 ? size : HELD_MAX);
	json_decref(kept);
	kernel_acknowledge(s);
}

static void short_error(struct buf *out, const json_t *m)
{
	const char *name = json_string_value(json_object_get(m, "name"));
	const char *value = json_string_value(json_object_get(m, "value"));
	struct json j;
	size_t i;
	json_t *line;

	name = name ? name : "";
	value = value ? value : "";
	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "name");
	(void)json_strn(&j, name, strnlen(name, ERROR_NAME_MAX));
	json_key(&j, "value");
	(void)json_strn(&j, value, utf8_truncate(value, strlen(value), ERROR_VALUE_CHARS));
	json_key(&j, "traceback");
	json_array_begin(&j);
	json_array_foreach(json_object_get(m, "traceback"), i, line)
	{
		const char *text = json_string_value(line);

		if (text && i < ERROR_LINES_MAX)
			(void)json_strn(&j, text,
					utf8_truncate(text, strlen(text), ERROR_LINE_CHARS));
	}
	json_array_end(&j);
	json_object_end(&j);
}

/*
 * The lines of a traceback as one piece of text: each piece costs an event and a wake-up of all
 * readers. Of more lines than a driver sends, both ends are printed.
 */
static void put_traceback(struct execution *x, const json_t *lines)
{
	_buf_ struct buf text = BUF_INIT(KERNEL_LINE_MAX);
	size_t n = json_array_size(lines), begin = n, end = n;

	if (n > TRACEBACK_LINES_MAX) {
		begin = TRACEBACK_LINES_MAX / 2;
		end = n - TRACEBACK_LINES_MAX / 2;
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *line = json_array_get(lines, i);
		size_t len = json_string_length(line);

		if (i == begin && begin < end) {
			(void)buf_printf(&text, "[... %zu more lines ...]\n", end - begin);
			i = end - 1;
			continue;
		}
		if (!json_is_string(line))
			continue;
		(void)buf_append(&text, json_string_value(line), len);
		if (len == 0 || json_string_value(line)[len - 1] != '\n')
			(void)buf_puts(&text, "\n");
	}
	if (text.len > 0)
		put_output(x, STREAM_STDERR, buf_str(&text), text.len);
}

/* An error is also written as text: a client that reads only stderr sees it as in a terminal. */
static void on_error(struct execution *x, const json_t *m)
{
	json_t *kept = json_pack("{s:O?, s:O?, s:O?}", "name", json_object_get(m, "name"), "value",
				 json_object_get(m, "value"), "traceback",
				 json_object_get(m, "traceback"));

	if (!kept && !x->error.err)
		x->error.err = -ENOMEM;
	if (!kept || x->error.len > 0) {
		json_decref(kept);
		return;
	}
	json_alloc_dump(&x->error, kept);
	if (x->error.err) { /* too large: its name, and the beginning of its text */
		buf_clear(&x->error);
		short_error(&x->error, m);
		json_decref(kept);
		kept = json_alloc_load(buf_str(&x->error), x->error.len, JSON_ALLOW_NUL, NULL);
	}
	if (!x->sink->errors_apart)
		put_traceback(x, json_object_get(m, "traceback"));
	if (kept)
		execution_emit(x, EVENT_ERROR, kept, x->error.len);
	json_decref(kept);
}

static void on_result(struct execution *x, const json_t *m)
{
	json_t *bundle = json_incref(json_object_get(m, "data"));

	x->result_cut = json_is_true(json_object_get(m, "truncated"));
	json_alloc_dump(&x->result, bundle);
	if (x->result.err) {
		const char *why = x->result.err == -ENOMEM ? "<no memory for it>" : "<too large>";

		x->result_cut = true;
		json_decref(bundle);
		bundle = json_pack("{s:s}", "text/plain", why);
		buf_clear(&x->result);
		(void)buf_printf(&x->result, "{\"text/plain\":\"%s\"}", why);
	}
	if (json_object_size(json_object_get(m, "metadata")) > 0)
		x->result_metadata = json_incref(json_object_get(m, "metadata"));
	if (bundle)
		execution_emit(x, EVENT_RESULT, bundle, x->result.len);
	json_decref(bundle);
}

static void on_execution_done(struct execution *x, struct kernel *s, const json_t *m)
{
	const char *id = json_string_value(json_object_get(m, "id"));
	json_int_t code = json_integer_value(json_object_get(m, "exit_code"));

	/* An id is random and belongs to one execution: a wrong one is forged, or from an earlier
	 * execution. */
	if (!id || strcmp(id, x->id) != 0) {
		s->why = "the kernel answered for an execution that is not running";
		cell_kill_all(x->sandbox->cell);
		return;
	}
	x->reported_done = true;
	x->files = !json_is_false(json_object_get(m, "files"));
	x->exit_status = (int)(code & 0xff) << 8;
	if (code != 0 && (code & 0xff) == 0)
		x->exit_status = 1 << 8;
	execution_judge(x);
}

void execution_stray(struct kernel *s, const char *type, json_t *m)
{
	const struct sandbox *holder = s->cell->holder;

	if (strcmp(type, "display") == 0)
		kernel_acknowledge(s);
	else if (strcmp(type, "input_request") == 0)
		execution_answer_input(s, json_integer_value(json_object_get(m, "id")), NULL, 0,
				       "nobody can be asked after the end of an execution", false);
	else if (strcmp(type, "rpc_request") == 0)
		holder->sandboxes->hooks->tools.stray(s, m);
}

static void on_message(struct execution *x, struct kernel *s, const char *type, json_t *m)
{
	if (x->phase == X_JUDGING || x->phase == X_DONE) {
		execution_stray(s, type, m);
		return;
	}
	if (strcmp(type, "execution_done") == 0) {
		on_execution_done(x, s, m);
	} else if (strcmp(type, "display") == 0) {
		on_display(x, s, m);
	} else if (strcmp(type, "result") == 0 && x->result.len == 0 &&
		   json_is_object(json_object_get(m, "data"))) {
		on_result(x, m);
	} else if (strcmp(type, "error") == 0) {
		on_error(x, m);
	} else if (strcmp(type, "input_request") == 0) {
		execution_asks(x, s, m);
	} else if (strcmp(type, "install_request") == 0) {
		x->sandbox->sandboxes->hooks->packages.request(x->sandbox, s, m);
	} else if (strcmp(type, "rpc_request") == 0 || strcmp(type, "rpc_cancel") == 0) {
		x->sandboxes->hooks->tools.message(x, s, type, m);
	} else if (strcmp(type, "clear_output") == 0) {
		bool wait = json_is_true(json_object_get(m, "wait"));
		json_t *members = json_pack("{s:b}", "wait", wait);

		displays_clear(&x->displays, wait);
		if (members)
			execution_emit(x, EVENT_CLEAR_OUTPUT, members, 0);
		json_decref(members);
	}
}

/* ---- events of the cell -------------------------------------------------------------------- */

void execution_message(struct cell *r, struct kernel *kernel, const char *type, json_t *m)
{
	struct execution *x = sandbox_running(r->holder);

	if (x && kernel->language == x->language)
		on_message(x, kernel, type, m);
	else
		execution_stray(kernel, type, m);
}

void execution_output(struct cell *r, struct kernel *kernel, enum kernel_stream stream,
		      const char *data, size_t len)
{
	struct sandbox *s = r->holder;
	struct execution *x = sandbox_running(r->holder);

	metric_add(M_OUTPUT_BYTES, len);
	if (x) {
		put_output(x, stream, data, len);
	} else if (s->name[0]) { /* of a task that an execution left running */
		tail_add(&s->log, data, len);
		s->sandboxes->hooks->wires.background_output(s, kernel->language, stream, data,
							     len);
	}
}

void execution_drained(struct cell *r, struct kernel *kernel)
{
	struct execution *x = sandbox_running(r->holder);

	if (x)
		x->sandboxes->hooks->tools.drained(x, kernel);
}
