/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_kernel.c - An execution's conversation with its kernel: code in, messages and text out.
 *
 * Text comes over descriptors 1 and 2 and is read up to a message before the message is looked at,
 * so what was printed before a picture is before it. A listener that does not keep up stops the
 * kernels of its cell until it does, or until the execution is to end: then they are read again, so
 * that they can hear of it, and what such a listener has no room for is only in the result.
 * Whatever is in a message is the code's own business and is passed on as JSON that was parsed and
 * written again; what there is too much of is counted.
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
#include "front/cell/image_use.h"
#include "front/cell/kernel.h"
#include "front/sandbox/event.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"

#define DISPLAYS_MAX 64u
#define ERROR_NAME_MAX 256u
#define ERROR_LINES_MAX 100u
#define ERROR_LINE_CHARS 1000u
#define ERROR_VALUE_CHARS 10000u
#define MESSAGE_BYTES (20u << 20)
#define HELD_MAX 4096u                /* a line that waits for its end */
#define HELD_NS (1 * CLOCK_NS_PER_MS) /* so long */
#define LATE_MAX (1u << 20) /* to a listener that does not keep up, while the execution ends */

static void send_object(struct kernel *s, struct json *j, struct buf *b)
{
	if (json_finish(j) < 0 && !b->err)
		b->err = -EMSGSIZE;
	kernel_pipes_send(&s->pipes, b);
}

void execution_send(struct execution *x, struct kernel *s)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_BYTES);
	struct json j;
	char name[32];
	const char *key;
	json_t *value, *image_env = s->cell->image->env;

	(void)snprintf(name, sizeof(name), "<execution-%" PRIu64 ">", x->sandbox->executions);
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "type", "execute");
	json_member_str(&j, "id", x->id);
	json_member_str(&j, "name", name);
	json_key(&j, x->is_query ? "query" : "code");
	if (x->is_query)
		json_raw(&j, x->code, x->code_len);
	else
		(void)json_strn(&j, x->code, x->code_len);
	if (x->language->id == LANG_PYTHON && !s->env_sent && (s->cell->env || image_env)) {
		json_key(&j, "env");
		json_object_begin(&j);
		json_object_foreach(image_env, key, value)
		{
			if (!json_object_get(s->cell->env, key))
				json_member_str(&j, key, json_string_value(value));
		}
		json_object_foreach(s->cell->env, key, value)
			json_member_str(&j, key, json_string_value(value));
		json_object_end(&j);
	}
	s->env_sent = true;
	if (x->look)
		json_member_bool(&j, "files", true);
	if (x->count)
		json_member_uint(&j, "count", x->count);
	x->sandboxes->hooks->tools.write(x, &j);
	json_object_end(&j);
	send_object(s, &j, &b);
}

/* Also those of the other languages: what they print goes to the same listener. */
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

/* @size: about how much of the listener's memory it takes. */
static void send_event(struct execution *x, const struct event *ev, size_t size)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_BYTES);

	if (!has_log(x) && !has_listener(x))
		return;
	/* Once cut, it stays cut: a stream has an early end, but no gaps. */
	if (x->phase != X_RUNNING && (x->late > LATE_MAX || congested(x)))
		x->late += size;
	if (x->late <= LATE_MAX && has_log(x))
		event_json(ev, &b);
	if (b.err)
		x->late = LATE_MAX + 1; /* no memory for it: an early end, too */
	if (x->late > LATE_MAX)
		return;
	if (has_log(x))
		record_take(x->record, event_name(ev->kind), &b);
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

/* ---- text: print() writes a line and its newline apart, and they are one event ------------- */

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

/* Text that was written before this event comes before it. */
static void emit(struct execution *x, enum event_kind kind, const json_t *members, size_t size)
{
	struct event ev = { .kind = kind, .members = members };

	if (kind == EVENT_RESULT)
		ev.metadata = x->result_metadata;
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

void execution_output(struct execution *x, enum kernel_stream stream, const char *data, size_t len)
{
	spool_append(x->streams[stream], data, len);
	if (x->sandbox->name[0])
		tail_add(&x->sandbox->log, data, len);
	if (has_log(x) || has_listener(x))
		emit_text(x, stream, data, len);
}

static void on_display(struct execution *x, struct kernel *s, const json_t *m)
{
	static const char *const keys[] = { "data", "metadata", "display_id", "update" };
	_buf_ struct buf item = BUF_INIT(KERNEL_LINE_MAX + 4096);
	json_t *kept = json_object();

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *v = json_object_get(m, keys[i]);

		if (v && !json_is_null(v))
			(void)json_object_set(kept, keys[i], v);
	}
	json_alloc_dump(&item, kept);
	if (item.err || x->n_displays >= DISPLAYS_MAX ||
	    x->displays.len + item.len + 1 > EXECUTION_DISPLAYS_BYTES) {
		x->displays_dropped++;
	} else {
		if (x->n_displays++)
			(void)buf_puts(&x->displays, ",");
		(void)buf_append(&x->displays, buf_str(&item), item.len);
		emit(x, EVENT_DISPLAY, kept, item.len);
	}
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

/* Also as text: whoever reads only stderr sees what a terminal would have shown. */
static void on_error(struct execution *x, const json_t *m)
{
	json_t *kept = json_pack("{s:O?, s:O?, s:O?}", "name", json_object_get(m, "name"), "value",
				 json_object_get(m, "value"), "traceback",
				 json_object_get(m, "traceback"));
	const json_t *lines = json_object_get(m, "traceback");
	size_t i;
	json_t *line;

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
	json_array_foreach(lines, i, line)
	{
		if (!json_is_string(line) || x->sink->errors_apart)
			continue;
		execution_output(x, STREAM_STDERR, json_string_value(line),
				 json_string_length(line));
		if (json_string_length(line) == 0 ||
		    json_string_value(line)[json_string_length(line) - 1] != '\n')
			execution_output(x, STREAM_STDERR, "\n", 1);
	}
	if (kept)
		emit(x, EVENT_ERROR, kept, x->error.len);
	json_decref(kept);
}

static void on_result(struct execution *x, const json_t *m)
{
	json_t *bundle = json_incref(json_object_get(m, "data"));

	json_alloc_dump(&x->result, bundle);
	if (x->result.err) {
		const char *why = x->result.err == -ENOMEM ? "<no memory for it>" : "<too large>";

		json_decref(bundle);
		bundle = json_pack("{s:s}", "text/plain", why);
		buf_clear(&x->result);
		(void)buf_printf(&x->result, "{\"text/plain\":\"%s\"}", why);
	}
	if (json_object_size(json_object_get(m, "metadata")) > 0)
		x->result_metadata = json_incref(json_object_get(m, "metadata"));
	if (bundle)
		emit(x, EVENT_RESULT, bundle, x->result.len);
	json_decref(bundle);
}

/* The next line of the text that came with the request. */
static bool next_line(struct execution *x, const char **line, size_t *len)
{
	const char *at = x->stdin_text + x->stdin_at;
	const char *nl = strchr(at, '\n');

	if (!*at)
		return false;
	*line = at;
	*len = nl ? (size_t)(nl - at) : strlen(at);
	x->stdin_at += *len + (nl ? 1 : 0);
	return true;
}

static void answer_input(struct kernel *s, int64_t id, const char *value, size_t len,
			 const char *error, bool eof)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_BYTES);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "type", "input_response");
	json_member_int(&j, "id", id);
	if (value) {
		json_key(&j, "value");
		(void)json_strn(&j, value, len);
	}
	if (error)
		json_member_str(&j, "error", error);
	if (eof)
		json_member_bool(&j, "eof", true);
	json_object_end(&j);
	send_object(s, &j, &b);
}

static void on_input(struct execution *x, struct kernel *s, const json_t *m)
{
	int64_t id = json_integer_value(json_object_get(m, "id"));
	const char *line;
	size_t len;

	if (x->has_stdin) {
		bool more = next_line(x, &line, &len);

		answer_input(s, id, more ? line : NULL, more ? len : 0, NULL, !more);
	} else if (x->sink->can_answer && !x->cancelled) {
		json_t *members = json_copy((json_t *)m);

		if (!members || json_object_del(members, "type") < 0) {
			json_decref(members);
			answer_input(s, id, NULL, 0, "there is no memory to ask", false);
			return;
		}
		if (x->sink->patient && !x->asked)
			execution_hold(x);
		x->asked = true;
		x->question = id;
		emit(x, EVENT_INPUT_REQUEST, members, 0);
		json_decref(members);
	} else {
		answer_input(s, id, NULL, 0,
			     "input() has nobody to ask here: pass the text as \"stdin\" with the "
			     "request, or use the WebSocket",
			     false);
	}
}

void execution_answer(struct execution *x, int64_t id, const char *value, const char *error)
{
	struct cell *r = x->sandbox ? x->sandbox->cell : NULL;

	if (x->asked && x->sink->patient)
		execution_release(x);
	x->asked = false;
	if (r && x->phase == X_RUNNING && r->kernels[x->language->id].attached)
		answer_input(&r->kernels[x->language->id], id, value, value ? strlen(value) : 0,
			     error, false);
}

void execution_leave(struct execution *x)
{
	static const struct sink nobody = { .congested = execution_readers_behind };

	if (x->asked)
		execution_answer(x, x->question, NULL,
				 "input() has nobody to ask: the client left");
	x->sink = &nobody;
	x->user = NULL;
}

static void on_execution_done(struct execution *x, struct kernel *s, const json_t *m)
{
	const char *id = json_string_value(json_object_get(m, "id"));
	json_int_t code = json_integer_value(json_object_get(m, "exit_code"));

	/* An id is random and lives for one execution: a wrong one is forged, or from another time.
	 */
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
		answer_input(s, json_integer_value(json_object_get(m, "id")), NULL, 0,
			     "nobody can be asked after the end of an execution", false);
	else if (strcmp(type, "rpc_request") == 0)
		holder->sandboxes->hooks->tools.stray(s, m);
}

void execution_message(struct execution *x, struct kernel *s, const char *type, json_t *m)
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
		on_input(x, s, m);
	} else if (strcmp(type, "install_request") == 0) {
		x->sandbox->sandboxes->hooks->packages.request(x->sandbox, s, m);
	} else if (strcmp(type, "rpc_request") == 0 || strcmp(type, "rpc_cancel") == 0) {
		x->sandboxes->hooks->tools.message(x, s, type, m);
	} else if (strcmp(type, "clear_output") == 0) {
		json_t *members =
			json_pack("{s:b}", "wait", json_is_true(json_object_get(m, "wait")));

		if (members)
			emit(x, EVENT_CLEAR_OUTPUT, members, 0);
		json_decref(members);
	}
}
