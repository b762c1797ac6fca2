/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interactive.c - `caisson shell` and `caisson exec --name -i`: our stdin to a process, its output
 * to us.
 *
 * Theory of operation. The process is started with an open stdin and attached to by WebSockets,
 * which carry its bytes as they are: one brings its stdout and takes our stdin, another brings its
 * stderr. On a terminal both streams are one, and sizes go over the same WebSocket as small JSON
 * texts. A process that does not read stops us from reading our stdin. In the other direction
 * nobody waits: the daemon keeps output that we do not take in time, and the attachment goes on
 * from there; it reports how many bytes of it are lost, and so do we. An attachment that the daemon
 * gave up because we were too slow is made again where we are. It is over when every stream has
 * reported how the process ended.
 *
 * Signals go to the process: Ctrl-C as SIGINT, the second signal as SIGKILL. On a terminal keys,
 * Ctrl-C among them, are the process's, and a signal to us ends the session. The process is removed
 * when we leave: nobody could get back to it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "remote/follow.h"
#include "remote/list.h"
#include "remote/tty.h"
#include "remote/tunnel.h"
#include "remote/verb.h"

#define PIECE (64u << 10)
#define QUEUE_MAX (256u << 10) /* bytes of stdin that wait; more are not read */
#define FORGET_MS 5000

struct interactive;

/* One of its streams. */
struct attachment {
	struct interactive *p;
	const char *name;
	int fd;
	struct websocket *ws;
	uint64_t bytes, lost;
	uint64_t before; /* bytes when it was last attached */
	bool over;
};

struct interactive {
	struct session *s;
	struct buf path; /* of the process */
	struct attachment streams[2];
	int n;         /* of them */
	bool terminal; /* it has one */
	bool eof;      /* of our stdin */
	bool left;     /* a signal ended the session */
	int signals, n_signals, signo;
	int number;  /* errno of a write that failed */
	json_t *end; /* the process, when it has ended */
};

/* ---- the daemon's end ---------------------------------------------------------------------- */

static void on_message(void *arg, bool text, const char *data, size_t len)
{
	struct attachment *a = arg;
	struct interactive *p = a->p;

	if (!text) {
		int r = p->number ? 0 : fd_write_all(a->fd, data, len);

		p->number = r < 0 ? -r : p->number;
		a->bytes += len;
		return;
	}
	json_auto_t *m = json_loadb(data, len, 0, NULL);
	const char *type = list_text(m, "type");

	if (strcmp(type, "gap") == 0) {
		a->lost += list_uint(m, "bytes");
		a->bytes += list_uint(m, "bytes");
	} else if (strcmp(type, "error") == 0 &&
		   strcmp(list_text(json_object_get(m, "error"), "code"), "stdin_closed") == 0) {
		p->eof = true; /* the process reads no more */
	} else if (strcmp(type, "exit") == 0) {
		a->over = true;
		json_decref(p->end);
		p->end = json_incref(m);
	}
}

static int attach(struct attachment *a)
{
	_buf_ struct buf path = BUF_INIT(2048);
	struct interactive *p = a->p;

	websocket_close(a->ws);
	a->before = a->bytes;
	(void)buf_printf(&path, "%s/attach", buf_str(&p->path));
	url_query(&path, "stream", a->name);
	url_query_uint(&path, "offset", a->bytes);
	a->ws = websocket_open(&p->s->api, buf_str(&path), on_message, a, &p->s->problem);
	return a->ws ? 0 : -1;
}

/*
 * A step of an attachment that may have ended: attach again as long as that brings bytes. Bytes
 * that came with the handshake are not on the descriptor any more, so a new attachment steps too.
 */
static int step(struct attachment *a)
{
	while (!websocket_step(a->ws) && !a->over && !a->p->number)
		if (a->bytes <= a->before || attach(a) < 0)
			return -1;
	return 0;
}

/* ---- our end ------------------------------------------------------------------------------- */

static void on_input(struct interactive *p)
{
	static const char end[] = "{\"type\":\"eof\"}";
	struct websocket *ws = p->streams[0].ws;
	char data[PIECE];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n > 0) {
		(void)websocket_send(ws, false, data, (size_t)n);
		return;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	p->eof = true;
	if (p->terminal)
		(void)websocket_send(ws, false, "\x04", 1); /* Ctrl-D */
	else
		(void)websocket_send(ws, true, end, sizeof(end) - 1);
}

static void send_size(struct interactive *p)
{
	char text[80];
	uint16_t rows, cols;

	tty_size(&rows, &cols);
	int n = snprintf(text, sizeof(text), "{\"type\":\"resize\",\"rows\":%u,\"cols\":%u}", rows,
			 cols);

	(void)websocket_send(p->streams[0].ws, true, text, (size_t)n);
}

static void send_signal(struct interactive *p, const char *name)
{
	_buf_ struct buf path = BUF_INIT(2048);
	struct problem ignored;

	(void)buf_printf(&path, "%s/signal", buf_str(&p->path));
	json_decref(api_json(&p->s->api, "POST", buf_str(&path), json_pack("{s:s}", "signal", name),
			     &ignored));
}

static void on_signal(struct interactive *p)
{
	int signo = tty_signal(p->signals);

	if (signo == SIGTSTP)
		tty_stop();
	if (signo == SIGTSTP || signo == SIGWINCH || signo == SIGCONT) {
		send_size(p);
	} else if (signo) {
		p->signo = signo;
		p->n_signals++;
		p->left = p->terminal || p->n_signals > 2;
		if (!p->left)
			send_signal(p, p->n_signals > 1 ? "KILL" :
				       signo == SIGINT  ? "INT" :
							  "TERM");
	}
}

/* ---- the loop ------------------------------------------------------------------------------ */

static int turn(struct interactive *p)
{
	const struct attachment *out = &p->streams[0];
	bool full = out->over || websocket_queued(out->ws) > QUEUE_MAX;
	struct pollfd fds[4] = {
		{ .fd = p->signals, .events = POLLIN },
		{ .fd = p->eof || full ? -1 : STDIN_FILENO, .events = POLLIN },
	};
	int r = 0;

	for (int i = 0; i < p->n; i++) {
		fds[2 + i].fd = p->streams[i].over ? -1 : websocket_fd(p->streams[i].ws);
		fds[2 + i].events = websocket_events(p->streams[i].ws);
	}
	if (poll(fds, (nfds_t)(2 + p->n), -1) < 0 && errno != EINTR)
		return -1;
	for (int i = 0; i < p->n && r == 0; i++)
		if (fds[2 + i].revents)
			r = step(&p->streams[i]);
	if (r == 0 && fds[1].revents)
		on_input(p);
	if (r == 0 && fds[0].revents)
		on_signal(p);
	return r;
}

static int run_to_end(struct interactive *p)
{
	int r = 0;

	for (int i = 0; i < p->n && r == 0; i++)
		r = attach(&p->streams[i]);
	if (r == 0 && p->terminal) /* before the first byte is shown: a prompt invites to type */
		(void)tty_enter(TTY_RAW);
	/* Bytes that came with the handshake are not on the descriptor any more. */
	for (int i = 0; i < p->n && r == 0; i++)
		r = step(&p->streams[i]);
	while (r == 0 && !(p->streams[0].over && p->streams[p->n - 1].over) && !p->number &&
	       !p->left)
		r = turn(p);
	tty_leave();
	return r;
}

/* ---- begin and end ------------------------------------------------------------------------- */

static int begin(struct interactive *p, const char *name, json_t *body)
{
	p->signals = tty_signals(p->terminal);
	(void)json_object_set_new(body, "stdin", json_true());
	url_sandbox(&p->path, name, "/processes");
	json_auto_t *process =
		api_json(&p->s->api, "POST", buf_str(&p->path), json_incref(body), &p->s->problem);

	if (!process)
		return -1;
	(void)buf_puts(&p->path, "/");
	buf_escape(&p->path, list_text(process, "process_id"), "");
	return 0;
}

/* As a shell would report it: 126, 127; 125 for other problems. */
static int not_started(struct session *s)
{
	session_fail(s);
	if (strcmp(s->problem.code, "cannot_start") != 0)
		return EXIT_OURS;
	return strstr(s->problem.message, "not executable") ||
			       strstr(s->problem.message, "ermission") ?
		       126 :
		       127;
}

/* The daemon keeps nothing of the process; if it still runs, it is killed. */
static void forget(struct interactive *p)
{
	struct problem ignored;

	json_decref(
		api_json_ms(&p->s->api, "DELETE", buf_str(&p->path), NULL, FORGET_MS, &ignored));
}

static int conclude(struct interactive *p)
{
	for (int i = 0; i < p->n; i++)
		if (p->streams[i].lost)
			(void)fprintf(
				stderr,
				"caisson: %llu bytes of %s are lost: the daemon keeps no more\n",
				(unsigned long long)p->streams[i].lost, p->streams[i].name);
	if (p->number)
		return follow_write_failed(p->s, p->number);
	if (p->left)
		return 128 + p->signo;
	if (p->end && p->streams[0].over && p->streams[p->n - 1].over)
		return follow_exit_code(p->end);
	if (!p->s->problem.exit_code) {
		(void)problem_say(&p->s->problem, EXIT_NO_DAEMON, "connection_broken",
				  "the connection ended before the program did");
		problem_hint(&p->s->problem, "'caisson ps -a' shows whether the sandbox exists");
	}
	session_fail(p->s);
	return EXIT_OURS;
}

int interactive_run(struct session *s, const char *name, json_t *body, bool terminal)
{
	struct interactive p = {
		.s = s,
		.signals = -1,
		.terminal = terminal,
		.n = terminal ? 1 : 2,
		.streams = { { .p = &p, .name = "stdout", .fd = STDOUT_FILENO },
			     { .p = &p, .name = "stderr", .fd = STDERR_FILENO } },
	};
	int code;

	buf_init(&p.path, 1024);
	if (begin(&p, name, body) < 0) {
		code = not_started(s);
	} else {
		(void)run_to_end(&p);
		forget(&p);
		code = conclude(&p);
	}
	for (int i = 0; i < p.n; i++)
		websocket_close(p.streams[i].ws);
	json_decref(p.end);
	fd_close(p.signals);
	buf_free(&p.path);
	return code;
}

/* ---- shell --------------------------------------------------------------------------------- */

/*
 * The prompts of most images have the host name, which is the same in every sandbox: the name of
 * the sandbox takes its place. Another prompt of an image stays; a shell without one has ours.
 */
static void put_prompt(json_t *env, const char *name)
{
	char prompt[160], command[320];

	if (json_object_get(env, "PS1"))
		return;
	(void)snprintf(prompt, sizeof(prompt), "%.80s:\\w\\$ ", name);
	(void)snprintf(command, sizeof(command),
		       "case $PS1 in *\\\\h*) PS1='%s';; esac; unset PROMPT_COMMAND", prompt);
	(void)json_object_set_new(env, "PS1", json_string(prompt));
	if (!json_object_get(env, "PROMPT_COMMAND"))
		(void)json_object_set_new(env, "PROMPT_COMMAND", json_string(command));
}

/*
 * Only a person has a terminal. To a pipe or a file a terminal would add echoes and prompts, and it
 * loses the end of its input if that comes before the shell has set the terminal up.
 */
static json_t *make_shell(const struct remote_options *o, bool terminal)
{
	json_t *args = json_array(), *env = remote_options_pairs(o->env);
	const char *term = getenv("TERM");
	uint16_t rows, cols;

	for (int i = 2; i < o->n_rest; i++)
		(void)json_array_append_new(args, json_string(o->rest[i]));
	if (terminal && term && *term && !json_object_get(env, "TERM"))
		(void)json_object_set_new(env, "TERM", json_string(term));
	if (terminal && o->n_rest == 1)
		put_prompt(env, o->rest[0]);
	json_t *body = json_pack("{s:s, s:o, s:o, s:s*}", "cmd",
				 o->n_rest > 1 ? o->rest[1] : "/bin/bash", "args", args, "env", env,
				 "cwd", o->workdir);

	if (terminal) {
		tty_size(&rows, &cols);
		(void)json_object_update_new(body, json_pack("{s:b, s:i, s:i}", "pty", 1, "rows",
							     (int)rows, "cols", (int)cols));
	}
	return body;
}

int remote_shell(struct session *s)
{
	if (s->o.n_before > 1)
		return problem_wrong(&s->problem,
				     "a program follows after --: caisson shell %s -- %s",
				     s->o.rest[0], s->o.rest[1]);
	bool terminal = isatty(STDIN_FILENO);
	json_auto_t *body = make_shell(&s->o, terminal);

	s->code = interactive_run(s, s->o.rest[0], body, terminal);
	return 0;
}
