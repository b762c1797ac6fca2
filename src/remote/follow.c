/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c - One execution, from its first event to its last.
 *
 * Theory of operation. The answer is a stream of JSON lines with increasing ids. `started` names
 * the execution, `done` is its result, `refused` an error instead of it. When the stream ends
 * without either, the events after the last id that we have are asked for, a few times. When the
 * daemon does not have them any more, the output is read by offset instead, and then the result.
 */
#include "remote/follow.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "client/lines.h"
#include "remote/list.h"
#include "remote/stream_event.h"
#include "remote/table.h"
#include "remote/tty.h"
#include "remote/verb.h"
#include "remote/wording.h"

#define ATTEMPTS 8
#define PAUSE_MS 100L
#define POLL_MS 200
#define ID_MAX 64
#define TEXT_MAX (64u << 20)
#define INTERRUPT_MS 5000

struct follow {
	struct session *s;
	struct api side; /* for calls while the stream runs */
	bool has_side;
	const char *name;
	char id[ID_MAX + 1]; /* of the execution; empty: not known yet */
	uint64_t last;       /* id of the last event */
	struct lines lines;
	struct buf text;   /* of one event */
	uint64_t bytes[2]; /* of stdout and stderr, passed on so far */
	json_t *result;    /* `done` */
	bool refused, left;
	bool shown; /* the value of a last expression */
	int signals, signo, n_signals;
	int number; /* errno of a write that failed */
};

/* "/v1/sandboxes/NAME/executions/ID" and @rest. */
static void execution_path(const struct follow *f, const char *rest, struct buf *path)
{
	buf_clear(path);
	url_sandbox(path, f->name, "/executions/");
	buf_escape(path, f->id, "");
	(void)buf_puts(path, rest);
}

/* ---- the second connection ----------------------------------------------------------------- */

static int side_call(struct follow *f, const struct api_call *c, struct api_answer *answer)
{
	struct problem p;

	if (!f->has_side && api_again(&f->side, &f->s->api, &p) < 0)
		return -1;
	f->has_side = true;
	return api_call(&f->side, c, answer, &p);
}

/* Before `started` there is no name for the execution; the daemon cancels it when we leave. */
static void interrupt(struct follow *f)
{
	_buf_ struct buf path = BUF_INIT(1024);
	_answer_ struct api_answer answer = { 0 };

	if (!f->id[0])
		return;
	execution_path(f, "/interrupt", &path);
	struct api_call c = { .method = "POST",
			      .path = buf_str(&path),
			      .timeout_ms = INTERRUPT_MS };

	(void)side_call(f, &c, &answer);
}

/* ---- output -------------------------------------------------------------------------------- */

static int put(struct follow *f, bool is_stderr, const char *data, size_t len)
{
	int r = fd_write_all(is_stderr ? STDERR_FILENO : STDOUT_FILENO, data, len);

	f->bytes[is_stderr] += len;
	f->number = r < 0 ? -r : f->number;
	return r < 0 ? -1 : 0;
}

/* The output that the daemon has kept, from where we are. */
static int fetch(struct follow *f, bool is_stderr)
{
	_buf_ struct buf path = BUF_INIT(1024);
	_answer_ struct api_answer answer = { 0 };
	uint64_t before;
	int r;

	do {
		before = f->bytes[is_stderr];
		execution_path(f, "/output", &path);
		url_query(&path, "stream", is_stderr ? "stderr" : "stdout");
		url_query_uint(&path, "offset", before);
		struct api_call c = { .method = "GET",
				      .path = buf_str(&path),
				      .accept = "application/octet-stream" };

		r = side_call(f, &c, &answer);
		if (r == 0 && answer.body.len > 0)
			r = put(f, is_stderr, buf_str(&answer.body), answer.body.len);
	} while (r == 0 && f->bytes[is_stderr] > before);
	return r;
}

/* A value as text; its other forms are for --json. */
static int on_bundle(struct follow *f, const json_t *root, bool is_result)
{
	const json_t *data = json_object_get(root, "data");
	const json_t *text = json_object_get(json_is_object(data) ? data : root, "text/plain");
	uint64_t bytes = f->bytes[0];
	int r;

	if (!json_is_string(text))
		return 0;
	f->shown |= is_result;
	r = put(f, false, json_string_value(text), json_string_length(text));
	r = r < 0 ? r : put(f, false, "\n", 1);
	f->bytes[0] = bytes; /* the program did not write it: offsets do not move */
	return r;
}

static void on_refused(struct follow *f, const json_t *refusal)
{
	unsigned int status = (unsigned int)list_uint(refusal, "status");

	f->refused = true;
	(void)problem_refusal(&f->s->problem, status ? status : 409, refusal, 0);
}

static int on_event(struct follow *f, const struct event *ev)
{
	bool is_stderr = event_is(ev, "stderr");

	if (event_is(ev, "started")) {
		(void)snprintf(f->id, sizeof(f->id), "%s", list_text(ev->root, "execution_id"));
	} else if (event_is(ev, "stdout") || is_stderr) {
		buf_clear(&f->text);
		if (event_text(ev, &f->text) == 0)
			return put(f, is_stderr, buf_str(&f->text), f->text.len);
	} else if (event_is(ev, "result") || event_is(ev, "display")) {
		return on_bundle(f, ev->root, event_is(ev, "result"));
	} else if (event_is(ev, "refused")) {
		on_refused(f, ev->root);
	} else if (event_is(ev, "done")) {
		json_t *inner = json_object_get(ev->root, "result");

		/* The result object, or, one level below, its own member of that name: a value. */
		json_decref(f->result);
		f->result = json_incref(json_object_get(inner, "exit_code") ? inner : ev->root);
	}
	return 0;
}

static int on_line(void *arg, char *line, size_t len)
{
	struct follow *f = arg;
	bool is_stderr;
	_event_ struct event ev = { 0 };
	uint64_t id;

	if (event_quick(line, len, &id, &is_stderr, &f->text)) {
		if (id <= f->last)
			return 0;
		f->last = id;
		return put(f, is_stderr, buf_str(&f->text), f->text.len);
	}
	if (event_parse(line, len, &ev) < 0)
		return 0; /* an event that we do not know must not cost us the others */
	if (ev.id && ev.id <= f->last)
		return 0;
	f->last = ev.id ? ev.id : f->last;
	return on_event(f, &ev);
}

/* ---- the stream ---------------------------------------------------------------------------- */

static int on_data(void *arg, const char *data, size_t len)
{
	return lines_feed(&((struct follow *)arg)->lines, data, len);
}

static int on_signal(void *arg)
{
	struct follow *f = arg;
	int signo = tty_signal(f->signals);

	if (signo == 0)
		return 0;
	f->signo = signo;
	if (++f->n_signals == 1)
		interrupt(f);
	/* A second signal, or another one than SIGINT, does not wait for the end. */
	f->left = f->n_signals > 1 || f->signo != SIGINT || !f->id[0];
	return f->left;
}

static int listen_once(struct follow *f, const char *method, const char *path, json_t *body)
{
	_answer_ struct api_answer answer = { 0 };
	const struct api_call c = {
		.method = method,
		.path = path,
		.json = body,
		.accept = "application/x-ndjson",
		.sink = on_data,
		.arg = f,
		.timeout_ms = API_ENDLESS,
		.watch_fd = f->signals,
		.on_watch = on_signal,
	};

	buf_clear(&f->lines.partial); /* a line that was cut comes again */
	int r = api_call(&f->s->api, &c, &answer, &f->s->problem);

	return r == 0 && lines_end(&f->lines) < 0 ? -1 : r;
}

static bool is_over(const struct follow *f)
{
	return f->result || f->refused || f->left || f->number;
}

/* Without events: the kept output of both streams, and at the end the result. */
static int read_rest(struct follow *f)
{
	_buf_ struct buf path = BUF_INIT(1024);

	execution_path(f, "", &path);
	f->s->problem = (struct problem){ 0 }; /* the lost events are no reason to give up */
	while (!f->refused && !f->result) {
		struct pollfd p = { .fd = f->signals, .events = POLLIN };
		json_auto_t *v = api_json(&f->s->api, "GET", buf_str(&path), NULL, &f->s->problem);
		json_t *result = json_object_get(v, "result");

		if (!v || fetch(f, false) != 0 || fetch(f, true) != 0)
			return -1;
		if (json_is_object(result))
			f->result = json_incref(result);
		else if (strcmp(list_text(v, "state"), "done") == 0)
			on_refused(f, json_object_get(v, "refusal"));
		if (!is_over(f) && poll(&p, 1, POLL_MS) > 0 && on_signal(f))
			return 0;
	}
	return f->result && !f->shown ? on_bundle(f, json_object_get(f->result, "result"), true) :
					0;
}

static int listen_all(struct follow *f, const char *path, json_t *body)
{
	int r = listen_once(f, "POST", path, body);

	for (int i = 0; !is_over(f) && f->id[0] && i < ATTEMPTS; i++) {
		_buf_ struct buf again = BUF_INIT(1024);
		struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L * (i + 1) };
		uint64_t before = f->last;

		(void)nanosleep(&pause, NULL);
		execution_path(f, "/events", &again);
		url_query_uint(&again, "cursor", f->last);
		r = listen_once(f, "GET", buf_str(&again), NULL);
		i = f->last > before ? -1 : i;
		if (r < 0 && f->s->problem.status == 410)
			r = read_rest(f);
		/* A refusal is an answer, and not tried again. */
		if (r < 0 && f->s->problem.status >= 400 && f->s->problem.status < 500)
			break;
	}
	return is_over(f) ? 0 : r < 0 ? r : -1;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* The sandbox's loss when a program was out of memory, or its cell ended. */
static void print_loss(const json_t *result)
{
	const json_t *cause = json_object_get(result, "cause");
	const char *kind = json_is_object(cause) ? list_text(cause, "kind") :
						   list_text(result, "cause");
	bool lost = strcmp(list_text(result, "files"), "lost") == 0;
	bool reset = strcmp(list_text(result, "state"), "reset") == 0;

	if (lost)
		(void)fprintf(stderr, "caisson: the sandbox was replaced by a new one: its files, "
				      "processes and variables are gone\n");
	else if (strcmp(kind, "memory") == 0 && strcmp(list_text(result, "files"), "kept") == 0)
		(void)fprintf(stderr, "caisson: the sandbox's files are kept%s\n",
			      reset ? "; variables are gone" : "");
}

int follow_exit_code(const json_t *result)
{
	static const char *const hinted[] = { "error", "timeout", "limit", "failed",
					      "not_started" };
	const json_t *code = json_object_get(result, "exit_code");
	const char *hint = list_text(result, "hint");
	json_int_t v = json_integer_value(code);
	char text[512];

	if (!*hint)
		hint = list_text(json_object_get(result, "cause"), "hint");
	wording(hint, text, sizeof(text));
	hint = text;
	/* A program prints its own failures; a limit, or a refused connection, needs a line of
	 * ours. The daemon has written to stderr why a program was not started. */
	if (v == 126 || v == 127)
		hint = "";
	for (size_t i = 0; *hint && i < ARRAY_SIZE(hinted); i++) {
		if (strcmp(list_text(result, "status"), hinted[i]) != 0)
			continue;
		(void)fprintf(stderr, "caisson: ");
		(void)text_print(stderr, hint, strlen(hint));
		(void)fprintf(stderr, "\n");
	}
	print_loss(result);
	return json_is_integer(code) && v >= 0 && v <= 255 ? (int)v : EXIT_OURS;
}

int follow_write_failed(struct session *s, int number)
{
	struct err e = { 0 };

	if (number == EPIPE)
		return 128 + SIGPIPE;
	(void)err_set(&e, -number, "pass the program's output on");
	(void)problem_ours(&s->problem, &e);
	session_fail(s);
	return EXIT_OURS;
}

static int conclude(struct follow *f, int r)
{
	if (f->number) {
		interrupt(f); /* nobody reads it: the program need not go on */
		return follow_write_failed(f->s, f->number);
	}
	if (f->left)
		return 128 + f->signo;
	if (r == 0 && !f->refused)
		return follow_exit_code(f->result);
	if (!f->s->problem.exit_code)
		(void)problem_say(&f->s->problem, EXIT_OTHER, "no_result",
				  "the daemon ended the stream without a result");
	session_fail(f->s);
	return EXIT_OURS;
}

int follow_run(struct session *s, const char *name, const char *route, json_t *body)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct follow f = { .s = s, .name = name, .signals = tty_signals(false) };

	lines_init(&f.lines, on_line, &f);
	buf_init(&f.text, TEXT_MAX);
	url_sandbox(&path, name, route);
	int code = conclude(&f, listen_all(&f, buf_str(&path), body));

	lines_free(&f.lines);
	buf_free(&f.text);
	json_decref(f.result);
	if (f.has_side)
		api_close(&f.side);
	fd_close(f.signals);
	return code;
}
