/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shell.c - `caisson shell`: our terminal, in front of a program in a sandbox.
 *
 * The program runs on a terminal of the sandbox's own. Bytes go both ways over a WebSocket, sizes
 * and the end as small JSON texts. Ours is in raw mode meanwhile, so keys, Ctrl-C among them, are
 * the program's. When the connection ends before the program does, the program is ended: nobody
 * could get back to it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/follow.h"
#include "remote/list.h"
#include "remote/place.h"
#include "remote/pump.h"
#include "remote/session.h"
#include "remote/tty.h"
#include "remote/verbs.h"
#include "remote/websocket.h"

#define QUEUE_MAX (256u << 10) /* keys that wait; more are not read */

struct shell {
	struct session *s;
	struct buf path; /* of the process */
	struct websocket *ws;
	int signals, signo;
	bool stdin_open;
	json_t *end; /* what the daemon said last: how it ended */
	int number;  /* errno of a write that failed */
};

/* ---- the wire ------------------------------------------------------------------------------ */

static void on_message(void *arg, bool text, const char *data, size_t len)
{
	struct shell *sh = arg;

	if (!text) {
		int r = sh->number ? 0 : fd_write_all(STDOUT_FILENO, data, len);

		sh->number = r < 0 ? -r : sh->number;
		return;
	}
	json_t *m = json_loadb(data, len, 0, NULL);

	if (strcmp(list_text(m, "type"), "exit") == 0) {
		json_decref(sh->end);
		sh->end = json_incref(m);
	}
	json_decref(m);
}

static const struct websocket_ops ops = { .on_message = on_message };

static void send_size(struct shell *sh)
{
	char text[80];
	uint16_t rows, cols;

	tty_size(&rows, &cols);
	int n = snprintf(text, sizeof(text), "{\"type\":\"resize\",\"rows\":%u,\"cols\":%u}", rows,
			 cols);

	(void)websocket_send(sh->ws, true, text, (size_t)n);
}

static void on_keys(struct shell *sh)
{
	char data[16384];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n > 0) {
		(void)websocket_send(sh->ws, false, data, (size_t)n);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		sh->stdin_open = false;
		(void)websocket_send(sh->ws, false, "\x04", 1); /* as somebody would type it */
	}
}

/* True: leave. */
static bool on_signal(struct shell *sh)
{
	struct signalfd_siginfo info;

	if (read(sh->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	switch (info.ssi_signo) {
	case SIGWINCH:
	case SIGCONT:
		send_size(sh);
		return false;
	case SIGTSTP:
		tty_stop();
		send_size(sh);
		return false;
	default:
		sh->signo = (int)info.ssi_signo;
		return true;
	}
}

static void turn_until_end(struct shell *sh)
{
	bool more = websocket_step(sh->ws); /* what came with the handshake */

	while (more && !sh->end && !sh->number) {
		bool full = websocket_queued(sh->ws) > QUEUE_MAX;
		struct pollfd p[] = {
			{ .fd = websocket_fd(sh->ws), .events = websocket_events(sh->ws) },
			{ .fd = sh->stdin_open && !full ? STDIN_FILENO : -1, .events = POLLIN },
			{ .fd = sh->signals, .events = POLLIN },
		};

		if (poll(p, 3, -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents)
			more = websocket_step(sh->ws);
		if (p[1].revents)
			on_keys(sh);
		if (p[2].revents && on_signal(sh))
			break;
	}
}

/* ---- begin and end ------------------------------------------------------------------------- */

static json_t *make_body(const struct remote_options *o, bool raw)
{
	json_t *body = json_object(), *args = json_array(), *env = remote_options_pairs(o->env);
	const char *term = getenv("TERM");
	uint16_t rows, cols;

	tty_size(&rows, &cols);
	(void)json_object_set_new(body, "cmd",
				  json_string(o->n_rest > 1 ? o->rest[1] : "/bin/bash"));
	for (int i = 2; i < o->n_rest; i++)
		(void)json_array_append_new(args, json_string(o->rest[i]));
	(void)json_object_set_new(body, "args", args);
	if (raw && term && *term && !json_object_get(env, "TERM"))
		(void)json_object_set_new(env, "TERM", json_string(term));
	(void)json_object_set_new(body, "env", env);
	if (o->workdir)
		(void)json_object_set_new(body, "cwd", json_string(o->workdir));
	(void)json_object_set_new(body, "pty", json_true());
	(void)json_object_set_new(body, "stdin", json_true());
	(void)json_object_set_new(body, "rows", json_integer(rows));
	(void)json_object_set_new(body, "cols", json_integer(cols));
	return body;
}

static int begin(struct shell *sh)
{
	_buf_ struct buf attach = BUF_INIT(2048);
	struct remote_options *o = &sh->s->o;
	json_t *body = make_body(o, isatty(STDIN_FILENO));

	url_sandbox(&sh->path, o->rest[0], "/processes");
	json_t *process = api_json(&sh->s->api, "POST", buf_str(&sh->path), body, &sh->s->problem);

	json_decref(body);
	if (!process)
		return -1;
	(void)buf_puts(&sh->path, "/");
	url_escape(&sh->path, list_text(process, "process_id"));
	json_decref(process);
	(void)buf_printf(&attach, "%s/attach?offset=0", buf_str(&sh->path));
	sh->ws = websocket_open(&sh->s->api, buf_str(&attach), &ops, sh, &sh->s->problem);
	if (!sh->ws)
		pump_forget(sh->s, buf_str(&sh->path));
	return sh->ws ? 0 : -1;
}

static void watch_signals(struct shell *sh)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		(void)sigaddset(&set, wanted[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	sh->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int conclude(struct shell *sh)
{
	pump_forget(sh->s, buf_str(&sh->path)); /* what still runs is killed */
	if (sh->signo)
		return 128 + sh->signo;
	if (sh->end)
		return follow_exit_code(sh->end);
	(void)problem_say(&sh->s->problem, EXIT_NO_DAEMON, "connection_broken",
			  "the connection to the shell ended before it did");
	problem_hint(&sh->s->problem, "'caisson ps -a' says whether the sandbox is there");
	session_fail(sh->s);
	return EXIT_OURS;
}

int verb_shell(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_SHELL,
		.usage = "shell NAME [OPTIONS] [-- PROGRAM ARGS...]",
		.text = "Opens a shell (/bin/bash, or PROGRAM) in a sandbox, on a terminal of its own. The exit code\n"
			"is the shell's.\n",
		.min = 1,
		.max = -1,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		struct shell sh = { .s = &s, .signals = -1, .stdin_open = true };
		struct err e = { 0 };

		buf_init(&sh.path, 1024);
		if (place_check_name(s.o.rest[0], &e) < 0) {
			session_fail_err(&s, &e);
		} else if (s.o.n_before > 1) {
			(void)err_say(&e, -EINVAL,
				      "a program follows after --: caisson shell %s -- %s",
				      s.o.rest[0], s.o.rest[1]);
			session_fail_err(&s, &e);
		} else if (begin(&sh) < 0) {
			s.code = pump_not_started(&s);
		} else {
			watch_signals(&sh);
			(void)tty_enter(TTY_RAW);
			turn_until_end(&sh);
			tty_leave();
			s.code = conclude(&sh);
		}
		websocket_close(sh.ws);
		json_decref(sh.end);
		fd_close(sh.signals);
		buf_free(&sh.path);
	}
	return session_end(&s);
}
