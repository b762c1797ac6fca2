/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.c - `caisson mcp`: the MCP server that a host of models starts, as a wire of the Model
 * Context Protocol between standard input and output and a daemon.
 *
 * It uses the daemon that runs, so that sandboxes are shared with the other clients of that daemon.
 * When none runs, or options were given for one, it starts a daemon of its own, which ends with it.
 *
 * A line is a message, and nothing else is ever written to standard output. Neither side waits for
 * the other: messages that the host does not read are kept, up to a bound, while its own lines are
 * still passed on. The daemon alone reads messages and judges them (src/front/mcp/websocket.c);
 * here bytes are only split into lines. A line that is not UTF-8 goes as a binary message, which
 * the daemon refuses; an empty binary message is the end of our input, after which the daemon
 * closes the connection when it has answered everything.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "client/lines.h"
#include "remote/own_daemon.h"
#include "remote/tty.h"
#include "remote/tunnel.h"
#include "remote/verb.h"

#define LINE_MAX_BYTES (16u << 20)
#define IN_WAITS (1u << 20)   /* more than this waits for the daemon: no more lines are read */
#define OUT_WAITS (64u << 20) /* for the host: no more messages are read */
#define OUT_MAX (512u << 20)
#define PIECE 4096u /* a pipe that is ready takes so much without blocking */

struct relay {
	struct websocket *ws;
	struct lines lines;
	struct buf out; /* from out_at on it is not written yet */
	size_t out_at;
	int signals, signo;
	int number; /* errno of a write that failed */
	bool eof, over;
};

/* ---- to the daemon ------------------------------------------------------------------------- */

static int on_line(void *arg, char *line, size_t len)
{
	struct relay *r = arg;

	r->over = !websocket_send(r->ws, utf8_valid(line, len), line, len);
	return r->over;
}

static int on_long(void *arg, const struct lines *l)
{
	static const char error[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
				    "\"message\":\"a line is at most 16 MiB long\"}}\n";
	struct relay *r = arg;

	(void)l;
	return buf_puts(&r->out, error);
}

static void on_input(struct relay *r)
{
	char data[65536];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n > 0) {
		(void)lines_feed(&r->lines, data, (size_t)n);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		r->eof = true;
		(void)lines_end(&r->lines);
		r->over = r->over || !websocket_send(r->ws, false, "", 0);
	}
}

/* ---- to the host --------------------------------------------------------------------------- */

/* JSON has line ends only between values, where spaces mean the same. */
static void on_message(void *arg, bool text, const char *data, size_t len)
{
	struct relay *r = arg;
	size_t from = r->out.len;

	if (!text || len == 0)
		return;
	(void)buf_append(&r->out, data, len);
	for (size_t i = from; i < r->out.len; i++)
		if (r->out.data[i] == '\n' || r->out.data[i] == '\r')
			r->out.data[i] = ' ';
	(void)buf_puts(&r->out, "\n");
}

static void on_output(struct relay *r)
{
	size_t left = r->out.len - r->out_at;
	ssize_t n = write(STDOUT_FILENO, buf_str(&r->out) + r->out_at, left < PIECE ? left : PIECE);

	if (n > 0)
		r->out_at += (size_t)n;
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		r->number = errno;
	if (r->out_at == r->out.len) {
		buf_clear(&r->out);
		r->out_at = 0;
		if (r->out.cap > IN_WAITS)
			buf_free(&r->out);
	}
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void turn(struct relay *r)
{
	size_t left = r->out.len - r->out_at;
	bool full = r->eof || r->over || websocket_queued(r->ws) > IN_WAITS;
	short events = websocket_events(r->ws);
	struct pollfd p[] = {
		{ .fd = r->over ? -1 : websocket_fd(r->ws),
		  .events = (short)(left > OUT_WAITS ? events & ~POLLIN : events) },
		{ .fd = full ? -1 : STDIN_FILENO, .events = POLLIN },
		{ .fd = left > 0 ? STDOUT_FILENO : -1, .events = POLLOUT },
		{ .fd = r->signals, .events = POLLIN },
	};

	if (poll(p, 4, -1) < 0)
		return;
	if (p[0].revents)
		r->over = !websocket_step(r->ws);
	if (p[1].revents)
		on_input(r);
	if (p[2].revents)
		on_output(r);
	if (p[3].revents)
		r->signo = tty_signal(r->signals);
}

/* Until the host has closed its end and all of its requests are answered. The exit code; or -1 with
 * @p. */
static int relay_run(struct relay *r, struct problem *p)
{
	r->over = !websocket_step(r->ws); /* reads bytes that came with the handshake */
	/* Answers that are here are written, even if the daemon has ended. */
	while ((!r->over || r->out.len > r->out_at) && !r->signo && !r->number && !r->out.err)
		turn(r);
	if (r->signo)
		return 128 + r->signo;
	if (r->number == EPIPE)
		return 128 + SIGPIPE;
	if (r->number)
		return problem_say(p, EXIT_OURS, "output_failed", "write to standard output: %s",
				   strerror(r->number));
	if (r->out.err)
		return problem_say(p, EXIT_OURS, "ENOMEM",
				   "the host does not read: more than 512 MiB of answers wait");
	if (!r->eof)
		return problem_say(p, EXIT_NO_DAEMON, "connection_broken",
				   "the daemon ended the connection");
	return 0;
}

static void relay_close(struct relay *r)
{
	websocket_close(r->ws);
	lines_free(&r->lines);
	buf_free(&r->out);
}

/* Connect. 0, or -1 with @p. @signals: a signalfd, borrowed; a signal ends the relay. */
static int relay_open(struct relay *r, const struct api *a, int signals, struct problem *p)
{
	*r = (struct relay){ .signals = signals };
	buf_init(&r->out, OUT_MAX);
	lines_init(&r->lines, on_line, r);
	lines_limit(&r->lines, LINE_MAX_BYTES, on_long);
	r->ws = websocket_open(a, "/mcp/ws", on_message, r, p);
	return r->ws ? 0 : -1;
}

/* ---- the verb ------------------------------------------------------------------------------- */

/* A daemon of our own, and a connection to it. */
static int open_private(struct relay *r, struct session *s, struct own_daemon *d, int signals)
{
	struct remote_options at = { .socket = d->socket };
	struct api api;

	s->problem = (struct problem){ 0 };
	if (own_daemon_start(d, s->o.tools, s->o.rest, signals, &s->problem) < 0)
		return -1;
	int code = api_open(&api, &at, &s->problem);

	if (code == 0)
		code = relay_open(r, &api, signals, &s->problem);
	api_close(&api);
	return code;
}

static int serve(struct session *s)
{
	bool given = s->o.url || s->o.socket, own = s->o.dashes || s->o.tools;
	struct own_daemon d = { .keeper = -1, .lease = -1 };
	_fd_ int signals = tty_signals(false);
	struct relay r = { 0 };
	int code = own ? -1 : relay_open(&r, &s->api, signals, &s->problem);

	if (code < 0 && (own || (!given && s->problem.exit_code == EXIT_NO_DAEMON)))
		code = open_private(&r, s, &d, signals);
	if (code == 0) {
		s->problem = (struct problem){ 0 };
		code = relay_run(&r, &s->problem);
	}
	relay_close(&r);
	own_daemon_stop(&d);
	return code;
}

int remote_mcp(struct session *s)
{
	const struct remote_options *o = &s->o;
	struct err e = { 0 };
	int code;

	if (o->print_config)
		return mcp_print_config(o, &e) < 0 ? problem_ours(&s->problem, &e) : 0;
	if (o->n_before > 0)
		return problem_wrong(&s->problem, "'%.64s': options of a daemon follow after --",
				     o->rest[0]);
	if ((o->url || o->socket) && (o->dashes || o->tools))
		return problem_wrong(
			&s->problem,
			"%s is for a daemon of our own: leave out --socket and --url, and "
			"CAISSON_SOCKET and CAISSON_URL",
			o->tools ? "--tools" : "--");
	code = serve(s);
	s->code = code < 0 ? 0 : code;
	return code < 0 ? -1 : 0;
}
