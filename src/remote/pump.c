/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.c - Our stdin to a process, its output to us.
 *
 * Theory of operation. The process is started with an open stdin and attached to twice: one
 * WebSocket brings its stdout and takes our stdin, the other brings its stderr. They carry bytes as
 * they are. A program that does not read stops us from reading our stdin. The other way nobody
 * waits: what we do not take in time is in what the daemon keeps of the stream, and the attachment
 * goes on from there; when it was too much even for that, the daemon says how much is missing, and
 * so do we. An attachment that it gave up because we were too slow is made again where we are. It
 * is over when both have said how the process ended.
 */
#include "remote/pump.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/follow.h"
#include "remote/list.h"
#include "remote/session.h"
#include "remote/websocket.h"

#define PIECE (64u << 10)
#define QUEUE_MAX (256u << 10)

struct pump;

/* One of its streams. */
struct side {
	struct pump *p;
	const char *name;
	int fd;
	struct websocket *ws;
	uint64_t bytes, lost;
	uint64_t before; /* bytes when it was last attached */
	bool over;
};

struct pump {
	struct session *s;
	struct buf path; /* of the process */
	struct side sides[2];
	bool eof;
	int signals, n_signals, signo;
	int number;  /* errno of a write that failed */
	json_t *end; /* the process, when it has ended */
};

static void on_message(void *arg, bool text, const char *data, size_t len)
{
	struct side *d = arg;
	struct pump *p = d->p;

	if (!text) {
		int r = p->number ? 0 : fd_write_all(d->fd, data, len);

		p->number = r < 0 ? -r : p->number;
		d->bytes += len;
		return;
	}
	json_t *m = json_loadb(data, len, 0, NULL);
	const char *type = list_text(m, "type");

	if (strcmp(type, "gap") == 0) {
		d->lost += list_uint(m, "bytes");
		d->bytes += list_uint(m, "bytes");
	} else if (strcmp(type, "error") == 0 &&
		   strcmp(list_text(json_object_get(m, "error"), "code"), "stdin_closed") == 0) {
		p->eof = true; /* it wants no more, which is its right */
	} else if (strcmp(type, "exit") == 0) {
		d->over = true;
		json_decref(p->end);
		p->end = json_incref(m);
	}
	json_decref(m);
}

static const struct websocket_ops ops = { .on_message = on_message };

static int attach(struct side *d)
{
	_buf_ struct buf path = BUF_INIT(2048);
	struct pump *p = d->p;

	websocket_close(d->ws);
	d->before = d->bytes;
	(void)buf_printf(&path, "%s/attach", buf_str(&p->path));
	url_query(&path, "stream", d->name);
	url_query_uint(&path, "offset", d->bytes);
	d->ws = websocket_open(&p->s->api, buf_str(&path), &ops, d, &p->s->problem);
	return d->ws ? 0 : -1;
}

/* ---- in ------------------------------------------------------------------------------------ */

static void on_input(struct pump *p)
{
	static const char end[] = "{\"type\":\"eof\"}";
	char data[PIECE];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n > 0) {
		(void)websocket_send(p->sides[0].ws, false, data, (size_t)n);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		p->eof = true;
		(void)websocket_send(p->sides[0].ws, true, end, sizeof(end) - 1);
	}
}

static void send_signal(struct pump *p, const char *name)
{
	_buf_ struct buf path = BUF_INIT(2048);
	struct problem ignored;
	json_t *body = json_pack("{s:s}", "signal", name);

	(void)buf_printf(&path, "%s/signal", buf_str(&p->path));
	json_decref(api_json(&p->s->api, "POST", buf_str(&path), body, &ignored));
	json_decref(body);
}

static void on_signal(struct pump *p)
{
	struct signalfd_siginfo info;

	if (read(p->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	p->signo = (int)info.ssi_signo;
	p->n_signals++;
	send_signal(p, p->n_signals > 1 ? "KILL" : p->signo == SIGINT ? "INT" : "TERM");
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* A step of an attachment that may have ended: come back as long as that brings something. */
static int step(struct side *d)
{
	if (websocket_step(d->ws) || d->over || d->p->number)
		return 0;
	return d->bytes > d->before && attach(d) == 0 ? 0 : -1;
}

static int turn(struct pump *p)
{
	const struct side *out = &p->sides[0];
	bool full = out->over || websocket_queued(out->ws) > QUEUE_MAX;
	struct pollfd fds[4] = {
		{ .fd = p->signals, .events = POLLIN },
		{ .fd = p->eof || full ? -1 : STDIN_FILENO, .events = POLLIN },
	};
	int r = 0;

	for (int i = 0; i < 2; i++) {
		fds[2 + i].fd = p->sides[i].over ? -1 : websocket_fd(p->sides[i].ws);
		fds[2 + i].events = websocket_events(p->sides[i].ws);
	}
	if (poll(fds, 4, -1) < 0 && errno != EINTR)
		return -1;
	for (int i = 0; i < 2 && r == 0; i++)
		if (fds[2 + i].revents)
			r = step(&p->sides[i]);
	if (fds[1].revents)
		on_input(p);
	if (fds[0].revents)
		on_signal(p);
	return r;
}

static int run_to_end(struct pump *p)
{
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++) {
		r = attach(&p->sides[i]);
		/* What came with the handshake is not on the descriptor any more. */
		if (r == 0)
			r = step(&p->sides[i]);
	}
	while (r == 0 && !(p->sides[0].over && p->sides[1].over) && !p->number && p->n_signals < 3)
		r = turn(p);
	return r;
}

/* ---- begin and end ------------------------------------------------------------------------- */

static int begin(struct pump *p, const char *name, json_t *body)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	(void)json_object_set_new(body, "stdin", json_true());
	url_sandbox(&p->path, name, "/processes");
	json_t *process = api_json(&p->s->api, "POST", buf_str(&p->path), body, &p->s->problem);

	if (!process)
		return -1;
	(void)buf_puts(&p->path, "/");
	url_escape(&p->path, list_text(process, "process_id"));
	json_decref(process);
	return 0;
}

void pump_forget(struct session *s, const char *path)
{
	struct api_answer answer = { 0 };
	struct api_call c = { .method = "DELETE", .path = path, .timeout_ms = 5000 };
	struct problem ignored;

	(void)api_call(&s->api, &c, &answer, &ignored);
	api_answer_free(&answer);
}

int pump_not_started(struct session *s)
{
	session_fail(s);
	if (strcmp(s->problem.code, "cannot_start") != 0)
		return EXIT_OURS;
	/* As a shell would say it. */
	return strstr(s->problem.message, "not executable") ||
			       strstr(s->problem.message, "ermission") ?
		       126 :
		       127;
}

static int conclude(struct pump *p, int r)
{
	struct err e = { 0 };

	for (int i = 0; i < 2; i++)
		if (p->sides[i].lost)
			(void)fprintf(
				stderr,
				"caisson: %llu bytes of %s are lost: the daemon keeps no more\n",
				(unsigned long long)p->sides[i].lost, p->sides[i].name);
	if (p->number == EPIPE)
		return 128 + SIGPIPE;
	if (p->number) {
		(void)err_set(&e, -p->number, "pass the program's output on");
		session_fail_err(p->s, &e);
		return EXIT_OURS;
	}
	if (p->n_signals > 2)
		return 128 + p->signo;
	if (r < 0 || !p->end) {
		if (!p->s->problem.exit_code)
			(void)problem_say(&p->s->problem, EXIT_NO_DAEMON, "connection_broken",
					  "the connection ended before the program did");
		session_fail(p->s);
		return EXIT_OURS;
	}
	return follow_exit_code(p->end);
}

int pump_run(struct session *s, const char *name, json_t *body)
{
	struct pump p = {
		.s = s,
		.signals = -1,
		.sides = { { .p = &p, .name = "stdout", .fd = STDOUT_FILENO },
			   { .p = &p, .name = "stderr", .fd = STDERR_FILENO } },
	};
	int code;

	buf_init(&p.path, 1024);
	if (begin(&p, name, body) < 0) {
		code = pump_not_started(s);
	} else {
		int r = run_to_end(&p);

		pump_forget(s, buf_str(&p.path)); /* what still runs is killed */
		code = conclude(&p, r);
	}
	for (int i = 0; i < 2; i++)
		websocket_close(p.sides[i].ws);
	json_decref(p.end);
	fd_close(p.signals);
	buf_free(&p.path);
	return code;
}
