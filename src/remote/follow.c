/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c - One execution, from its first event to its last.
 *
 * Theory of operation. The answer is a stream of JSON lines with increasing ids. `started` names
 * the execution, `done` is its result, `refused` an error instead of it. When the stream ends
 * without either, the events after the last id that we saw are asked for, a few times; when the
 * daemon does not have them any more, the output is read by offset instead, and then the result.
 *
 * A JSON string can not hold bytes that are no UTF-8; the daemon writes U+FFFD for them, and adds
 * the bytes in base64. One that does not is older: as long as a stream's text is free of that
 * character it is the program's very bytes, and their number is the offset in what the daemon
 * keeps. From the first doubtful event on, that stream's events are only a bell: the bytes are
 * fetched from the kept output by offset. Beyond what the daemon keeps (it says so) the text is all
 * there is, and a line on stderr says that it may not be exact.
 */
#include "remote/follow.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/event.h"
#include "remote/lines.h"
#include "remote/list.h"
#include "remote/session.h"
#include "remote/text.h"

#define ATTEMPTS 8
#define PAUSE_MS 100L
#define POLL_MS 200
#define ID_MAX 64
#define TEXT_MAX (64u << 20)

/* One of the two streams of the program. */
struct half {
	const char *name;
	int fd;
	uint64_t bytes; /* passed on so far */
	bool by_offset; /* its events are only a bell */
	bool inexact;   /* neither way was complete */
};

struct follow {
	struct session *s;
	struct api side; /* for calls while the stream runs */
	bool has_side;
	const char *name;
	char id[ID_MAX + 1]; /* of the execution; empty: not known yet */
	uint64_t last;       /* id of the last event */
	struct lines lines;
	struct buf text; /* of one event */
	struct half halves[2];
	json_t *result; /* `done` */
	bool refused, broken_pipe, left;
	bool shown; /* the value of a last expression */
	int signals, signo, n_signals;
	int number; /* errno of a write that failed */
};

/* ---- the second connection ----------------------------------------------------------------- */

static int side_call(struct follow *f, const struct api_call *c, struct api_answer *answer)
{
	struct problem p;

	if (!f->has_side && api_again(&f->side, &f->s->api, &p) < 0)
		return -1;
	f->has_side = true;
	return api_call(&f->side, c, answer, &p);
}

/* One that was not begun has no name that we know; it is cancelled when we leave. */
static void interrupt(struct follow *f)
{
	if (!f->id[0])
		return;
	_buf_ struct buf path = BUF_INIT(1024);
	struct api_answer answer = { 0 };

	url_sandbox(&path, f->name, "/executions/");
	url_escape(&path, f->id);
	(void)buf_puts(&path, "/interrupt");
	struct api_call c = { .method = "POST", .path = buf_str(&path), .timeout_ms = 5000 };

	(void)side_call(f, &c, &answer);
	api_answer_free(&answer);
}

/* ---- output -------------------------------------------------------------------------------- */

static int put(struct follow *f, struct half *h, const char *data, size_t len)
{
	int r = fd_write_all(h->fd, data, len);

	h->bytes += len;
	if (r == 0)
		return 0;
	f->broken_pipe = r == -EPIPE;
	f->number = -r;
	return -1;
}

/* All that is kept from where we are. */
static int fetch(struct follow *f, struct half *h)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct api_answer answer = { 0 };
	uint64_t before;
	int r;

	do {
		before = h->bytes;
		buf_clear(&path);
		url_sandbox(&path, f->name, "/executions/");
		url_escape(&path, f->id);
		(void)buf_puts(&path, "/output");
		url_query(&path, "stream", h->name);
		url_query_uint(&path, "offset", h->bytes);
		struct api_call c = { .method = "GET",
				      .path = buf_str(&path),
				      .accept = "application/octet-stream" };

		r = side_call(f, &c, &answer);
		if (r == 0 && answer.body.len > 0)
			r = put(f, h, buf_str(&answer.body), answer.body.len) < 0 ? -2 : 0;
	} while (r == 0 && h->bytes > before);
	api_answer_free(&answer);
	return r;
}

/* What an event of output has, in f->text. */
static int on_text(struct follow *f, struct half *h, bool exact)
{
	if (!exact && !h->inexact && f->id[0])
		h->by_offset = true;
	if (h->by_offset) {
		int r = fetch(f, h);

		if (r != -1)
			return r;
		h->by_offset = false; /* not kept: the text is all there is */
		h->inexact = true;
	}
	return put(f, h, buf_str(&f->text), f->text.len);
}

/* What a value looks like as text; its other forms are for --json. */
static int on_bundle(struct follow *f, const struct event *ev)
{
	const json_t *data = json_object_get(ev->root, "data");
	const json_t *text = json_object_get(json_is_object(data) ? data : ev->root, "text/plain");

	if (!json_is_string(text))
		return 0;
	/* Not part of what the program wrote: offsets do not move. */
	uint64_t bytes = f->halves[0].bytes;

	f->shown |= event_is(ev, "result");
	int r = put(f, &f->halves[0], json_string_value(text), json_string_length(text));

	r = r < 0 ? r : put(f, &f->halves[0], "\n", 1);
	f->halves[0].bytes = bytes;
	return r;
}

static void on_refused(struct follow *f, const json_t *refusal)
{
	char *text = json_dumps(refusal, 0);
	unsigned int status = (unsigned int)list_uint(refusal, "status");

	f->refused = true;
	(void)problem_answer(&f->s->problem, status ? status : 409, text ? text : "",
			     text ? strlen(text) : 0, 0);
	free(text);
}

static int on_output(struct follow *f, const struct event *ev)
{
	buf_clear(&f->text);
	int exact = event_text(ev, &f->text);

	return exact < 0 ? 0 : on_text(f, &f->halves[event_is(ev, "stderr")], exact);
}

static int on_line(void *arg, const char *line, size_t len)
{
	struct follow *f = arg;
	struct event_output quick;
	struct event ev;
	int r = 0;

	if (event_quick(line, len, &quick, &f->text)) {
		if (quick.id <= f->last)
			return 0;
		f->last = quick.id;
		return on_text(f, &f->halves[quick.is_stderr], quick.exact);
	}
	if (event_parse(line, len, &ev) < 0)
		return 0; /* what we do not know is no reason to lose what we do */
	if (ev.id && ev.id <= f->last) {
		event_free(&ev);
		return 0;
	}
	f->last = ev.id ? ev.id : f->last;
	if (event_is(&ev, "started"))
		(void)snprintf(f->id, sizeof(f->id), "%s", list_text(ev.root, "execution_id"));
	else if (event_is(&ev, "stdout") || event_is(&ev, "stderr"))
		r = on_output(f, &ev);
	else if (event_is(&ev, "result") || event_is(&ev, "display"))
		r = on_bundle(f, &ev);
	else if (event_is(&ev, "refused"))
		on_refused(f, ev.root);
	else if (event_is(&ev, "done")) {
		const json_t *inner = json_object_get(ev.root, "result");

		/* The result object, or, one level below, its own member of that name: a value. */
		json_decref(f->result);
		f->result = json_object_get(inner, "exit_code") ? json_incref((json_t *)inner) :
								  json_incref(ev.root);
	}
	event_free(&ev);
	return r;
}

/* ---- the stream ---------------------------------------------------------------------------- */

static int on_data(void *arg, const char *data, size_t len)
{
	struct follow *f = arg;

	return lines_feed(&f->lines, data, len);
}

static int on_signal(void *arg)
{
	struct follow *f = arg;
	struct signalfd_siginfo info;

	if (read(f->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	f->signo = (int)info.ssi_signo;
	if (++f->n_signals == 1)
		interrupt(f);
	/* Whoever asks twice, or more firmly, is not kept waiting. */
	f->left = f->n_signals > 1 || f->signo != SIGINT || !f->id[0];
	return f->left;
}

static int watch_signals(struct follow *f)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	f->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return f->signals < 0 ? -errno : 0;
}

static int listen_once(struct follow *f, struct api_call *c)
{
	struct api_answer answer = { 0 };

	c->accept = "application/x-ndjson";
	c->sink = on_data;
	c->arg = f;
	c->timeout_ms = API_ENDLESS;
	c->watch_fd = f->signals;
	c->on_watch = on_signal;
	buf_clear(&f->lines.partial); /* a line that was cut comes again */
	int r = api_call(&f->s->api, c, &answer, &f->s->problem);

	if (r == 0)
		r = lines_end(&f->lines) < 0 ? -1 : 0;
	api_answer_free(&answer);
	return r;
}

/* How it stands with the execution; NULL: nobody knows any more. */
static json_t *ask(struct follow *f)
{
	_buf_ struct buf path = BUF_INIT(1024);

	url_sandbox(&path, f->name, "/executions/");
	url_escape(&path, f->id);
	return api_json(&f->s->api, "GET", buf_str(&path), NULL, &f->s->problem);
}

/* Without events: what is kept of both streams, and at the end the result. */
static int read_rest(struct follow *f)
{
	f->s->problem = (struct problem){ 0 }; /* what there was is no reason to give up */
	for (;;) {
		struct pollfd p = { .fd = f->signals, .events = POLLIN };
		json_t *v = ask(f);
		json_t *result = json_object_get(v, "result");

		if (!v || fetch(f, &f->halves[0]) != 0 || fetch(f, &f->halves[1]) != 0) {
			json_decref(v);
			return -1;
		}
		if (json_is_object(result))
			f->result = json_incref(result);
		else if (strcmp(list_text(v, "state"), "done") == 0)
			on_refused(f, json_object_get(v, "refusal"));
		json_decref(v);
		if (f->refused)
			return 0;
		if (f->result) {
			struct event last = { .root = json_object_get(f->result, "result"),
					      .type = "result" };

			return f->shown ? 0 : on_bundle(f, &last);
		}
		if (poll(&p, 1, POLL_MS) > 0 && on_signal(f))
			return 0;
	}
}

static bool is_over(const struct follow *f)
{
	return f->result || f->refused || f->broken_pipe || f->left || f->number;
}

static int listen_all(struct follow *f, const char *path, json_t *body)
{
	struct api_call first = { .method = "POST", .path = path, .json = body };
	int r = listen_once(f, &first);

	for (int i = 0; !is_over(f) && f->id[0] && i < ATTEMPTS; i++) {
		_buf_ struct buf again = BUF_INIT(1024);
		struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L * (i + 1) };

		(void)nanosleep(&pause, NULL);
		url_sandbox(&again, f->name, "/executions/");
		url_escape(&again, f->id);
		(void)buf_puts(&again, "/events");
		url_query_uint(&again, "cursor", f->last);
		struct api_call more = { .method = "GET", .path = buf_str(&again) };
		uint64_t before = f->last;

		r = listen_once(f, &more);
		i = f->last > before ? -1 : i;
		if (r < 0 && f->s->problem.status == 410)
			r = read_rest(f);
		/* An answer that says no is one. */
		if (r < 0 && f->s->problem.status >= 400 && f->s->problem.status < 500)
			break;
	}
	return is_over(f) ? 0 : r < 0 ? r : -1;
}

/* ---- the end ------------------------------------------------------------------------------- */

int follow_exit_code(const json_t *result)
{
	const json_t *code = json_object_get(result, "exit_code");
	const char *status = list_text(result, "status");
	const char *hint = list_text(result, "hint");
	json_int_t v = json_integer_value(code);

	if (!*hint)
		hint = list_text(json_object_get(result, "cause"), "hint");
	/* The program's own failures speak for themselves; limits need a line. */
	if (*hint && (strcmp(status, "timeout") == 0 || strcmp(status, "limit") == 0 ||
		      strcmp(status, "failed") == 0 || strcmp(status, "not_started") == 0)) {
		_buf_ struct buf line = BUF_INIT(4096);

		text_escape(&line, hint, strlen(hint));
		(void)fprintf(stderr, "caisson: %s\n", buf_str(&line));
	}
	return json_is_integer(code) && v >= 0 && v <= 255 ? (int)v : EXIT_OURS;
}

static int conclude(struct follow *f, int r)
{
	struct err e = { 0 };

	for (size_t i = 0; i < 2; i++)
		if (f->halves[i].inexact)
			(void)fprintf(
				stderr,
				"caisson: %s had bytes that are no UTF-8, beyond what the daemon "
				"keeps: some were replaced\n",
				f->halves[i].name);
	if (f->broken_pipe) {
		interrupt(f); /* nobody reads it: the program need not go on */
		return 128 + SIGPIPE;
	}
	if (f->number) {
		interrupt(f);
		(void)err_set(&e, -f->number, "pass the program's output on");
		session_fail_err(f->s, &e);
		return EXIT_OURS;
	}
	if (f->left)
		return 128 + f->signo;
	if (r < 0 || f->refused) {
		if (!f->s->problem.exit_code)
			(void)problem_say(&f->s->problem, EXIT_OTHER, "no_result",
					  "the daemon ended the stream without a result");
		session_fail(f->s);
		return EXIT_OURS;
	}
	return follow_exit_code(f->result);
}

int follow_run(struct session *s, const char *name, const char *route, json_t *body)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct follow f = {
		.s = s,
		.name = name,
		.halves = { { .name = "stdout", .fd = STDOUT_FILENO },
			    { .name = "stderr", .fd = STDERR_FILENO } },
		.signals = -1,
	};

	lines_init(&f.lines, on_line, &f);
	buf_init(&f.text, TEXT_MAX);
	(void)watch_signals(&f);
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
