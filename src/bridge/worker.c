/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - The worker, which passes requests of the front to servers, and its supervisor.
 *
 * The worker has one loop for everything: the front's socket, programs' pipes, libcurl's sockets.
 * When the front is gone, it ends the servers and waits for their ends.
 *
 * The supervisor only watches: it starts a worker, and another one when that is killed. Messages
 * are packets, so a killed worker leaves no half message behind, and the next one begins with a
 * hello. The supervisor adopts everything that workers start: when a worker has ended, it kills the
 * processes that are left, also those that left their process group.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/supervise.h"
#include "bridge/bridge_log.h"
#include "bridge/child.h"
#include "bridge/config.h"
#include "bridge/fetch.h"
#include "bridge/front_link.h"
#include "bridge/upstream.h"
#include "mcp/slice.h"
#include "net/loop.h"
#include "wire/bridge.h"

#define END_NS (4 * CLOCK_NS_PER_S)
#define BACK_OFF_MS 100u
#define BACK_OFF_MAX_MS 10000u
#define HEALTHY_MS 60000u
#define GRACE_NS (6 * CLOCK_NS_PER_S) /* for a worker whose front is gone */
#define SWEEPS_MAX 200

struct worker {
	struct loop loop;
	struct front_link front;
	struct fetcher fetcher;
	struct children children;
	struct upstream *upstreams;
	size_t n;
	struct timer end;
	bool ending;
};

/* ---- requests ------------------------------------------------------------------------------ */

static struct upstream *find(struct worker *w, const char *name)
{
	for (size_t i = 0; name && i < w->n; i++)
		if (strcmp(w->upstreams[i].config->name, name) == 0)
			return &w->upstreams[i];
	return NULL;
}

static void call(struct worker *w, struct upstream *u, uint64_t id, const json_t *head,
		 struct buf *body)
{
	const char *tool = json_string_value(json_object_get(head, "tool"));
	json_int_t ms = json_integer_value(json_object_get(head, "timeout_ms"));
	bool progress = json_is_true(json_object_get(head, "progress"));

	if (!tool || ms < 1 || ms > BRIDGE_TIMEOUT_MAX_MS)
		front_link_error(&w->front, id, "bad_request",
				 "a call needs a tool and a timeout_ms", NULL);
	else if (body->len > BRIDGE_MESSAGE_MAX)
		front_link_error(&w->front, id, "too_large", "the arguments are larger than 64 MiB",
				 NULL);
	else if (slice_members(buf_str(body), body->len, NULL, 0, NULL) < 0 ||
		 memchr(body->data, '\n', body->len) || memchr(body->data, '\r', body->len))
		front_link_error(&w->front, id, "bad_request",
				 "arguments must be a JSON object on one line", NULL);
	else
		upstream_call(u, id, tool, body, (uint64_t)ms, progress);
}

static void on_request(struct front_link *o, const json_t *head, struct buf *body)
{
	struct worker *w = o->arg;
	const char *op = json_string_value(json_object_get(head, "op"));
	const char *server = json_string_value(json_object_get(head, "server"));
	json_int_t id = json_integer_value(json_object_get(head, "id"));
	struct upstream *u = find(w, server);
	char message[200];

	if (!op || id < 1)
		return;
	if (strcmp(op, "cancel") == 0) {
		for (size_t i = 0; i < w->n; i++)
			if (upstream_cancel(&w->upstreams[i], (uint64_t)id))
				return;
		return;
	}
	if (!u) {
		(void)snprintf(message, sizeof(message), "there is no MCP server '%.128s'",
			       server ? server : "");
		front_link_error(o, (uint64_t)id, "unknown_server", message, NULL);
	} else if (strcmp(op, "tools") == 0) {
		json_int_t ms = json_integer_value(json_object_get(head, "timeout_ms"));

		upstream_tools(u, (uint64_t)id,
			       ms > 0 && ms < BRIDGE_TOOLS_MS ? (uint64_t)ms : BRIDGE_TOOLS_MS);
	} else if (strcmp(op, "call") == 0) {
		call(w, u, (uint64_t)id, head, body);
	} else {
		front_link_error(o, (uint64_t)id, "bad_request", "unknown op", NULL);
	}
}

/* ---- life ---------------------------------------------------------------------------------- */

static int hello(struct worker *w, uint64_t life)
{
	static const char *const transports[] = { "stdio", "http", "sse" };
	json_auto_t *list = json_array();

	for (size_t i = 0; i < w->n; i++) {
		const struct server_config *s = w->upstreams[i].config;

		if (json_array_append_new(list, json_pack("{s:s, s:s, s:s*, s:s, s:s, s:O*}",
							  "name", s->name, "alias", s->alias,
							  "description", s->description,
							  "transport", transports[s->transport],
							  "state", "idle", "rules", s->rules)) < 0)
			return -ENOMEM;
	}
	json_auto_t *body = json_pack("{s:O}", "servers", list);
	_mem_ char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	if (!text)
		return -ENOMEM;
	front_link_send(&w->front,
			json_pack("{s:s, s:I}", "event", "hello", "life", (json_int_t)life), text,
			strlen(text));
	return 0;
}

/* The front is gone, and we only wait for what was begun to end. */
static void stop_if_done(void *arg)
{
	struct worker *w = arg;

	if (w->ending && !w->children.first && w->fetcher.live == 0)
		loop_stop(&w->loop);
}

static void on_late(struct timer *t)
{
	loop_stop(t->loop ? t->loop : t->arg);
}

static void on_end(struct front_link *o)
{
	struct worker *w = o->arg;

	for (size_t i = 0; i < w->n; i++)
		upstream_end(&w->upstreams[i]);
	w->ending = true;
	stop_if_done(w);
	w->end = (struct timer){ .fn = on_late, .arg = &w->loop };
	timer_set(&w->loop, &w->end, clock_now_ns() + END_NS);
}

static int worker_run(const struct bridge_config *c, int fd, uint64_t life, struct err *e)
{
	static struct worker w;
	int r = loop_init(&w.loop, e);

	(void)signal(SIGPIPE, SIG_IGN);
	if (r == 0)
		r = fetcher_init(&w.fetcher, &w.loop, e);
	if (r < 0)
		return r;
	const struct wire_base base = { &w.loop, &w.children, &w.fetcher };

	w.children = (struct children){ .loop = &w.loop, .on_none = stop_if_done, .arg = &w };
	w.fetcher.on_none = stop_if_done;
	w.fetcher.arg = &w;
	w.upstreams = calloc(c->n ? c->n : 1, sizeof(*w.upstreams));
	if (!w.upstreams)
		return err_set(e, -ENOMEM, "start the worker");
	for (w.n = 0; w.n < c->n; w.n++)
		upstream_init(&w.upstreams[w.n], &c->servers[w.n], &base, &w.front);
	w.front.on_request = on_request;
	w.front.on_end = on_end;
	w.front.arg = &w;
	r = front_link_open(&w.front, &w.loop, fd, e);
	if (r == 0 && hello(&w, life) < 0)
		r = err_set(e, -ENOMEM, "send the hello");
	if (r == 0)
		r = loop_run(&w.loop, e);
	front_link_close(&w.front);
	free(w.upstreams);
	fetcher_free(&w.fetcher);
	loop_free(&w.loop);
	return r;
}

/* ---- the supervisor ------------------------------------------------------------------------ */

struct supervisor {
	const struct bridge_config *config;
	int fd, signals;
	pid_t self, worker; /* worker 0: none */
	int status;
	bool over; /* the front is gone */
	uint64_t kill_at;
};

static void reap(struct supervisor *s)
{
	struct signalfd_siginfo info;
	int status;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		if (pid == s->worker) {
			s->worker = 0;
			s->status = status;
		}
}

/* Until the worker has ended, or for @ms without a worker. */
static void wait_for(struct supervisor *s, int ms)
{
	bool any = s->worker > 0;

	do {
		struct pollfd p[] = { { .fd = s->signals, .events = POLLIN },
				      { .fd = s->over ? -1 : s->fd } };
		int patience = any ? (s->over ? 200 : -1) : ms;

		if (poll(p, ARRAY_SIZE(p), patience) == 0 && !any)
			return;
		if (p[1].revents & (POLLHUP | POLLERR)) {
			s->over = true;
			s->kill_at = clock_now_ns() + GRACE_NS;
		}
		reap(s);
		if (s->over && s->worker > 0 && clock_now_ns() >= s->kill_at)
			(void)kill(s->worker, SIGKILL);
	} while (any ? s->worker > 0 : !s->over);
}

/* Kill the children that a worker left behind. */
static void sweep(struct supervisor *s)
{
	char path[64], list[4096];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	for (int i = 0; i < SWEEPS_MAX; i++) {
		struct pollfd p = { .fd = s->signals, .events = POLLIN };
		char *at = list, *end;
		ssize_t n = fd_read_file(AT_FDCWD, path, list, sizeof(list));

		if (n <= 0)
			return;
		for (long pid; (pid = strtol(at, &end, 10)) > 0; at = end)
			(void)kill((pid_t)pid, SIGKILL);
		(void)poll(&p, 1, 50);
		reap(s);
	}
}

/* In the child. @life: workers before this one; the front counts from 1. */
static int run_worker(void *arg, uint32_t life)
{
	const struct supervisor *s = arg;
	struct err e = { 0 };
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	fd_close(s->signals);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != s->self)
		return 1;
	if (worker_run(s->config, s->fd, life + 1, &e) == 0)
		return 0;
	log_text(LOG_ERROR, "bridge", NULL, "%s", e.msg);
	return 1;
}

/* As of struct supervise: for the worker's end, or for a while. False: the front is gone. */
static bool wait_and_sweep(void *arg, pid_t worker, unsigned int ms, int *ret_status)
{
	struct supervisor *s = arg;

	s->worker = worker;
	wait_for(s, (int)ms);
	if (!worker)
		return !s->over;
	sweep(s);
	*ret_status = s->status;
	if (!s->over && !(WIFEXITED(s->status) && WEXITSTATUS(s->status) == 0))
		log_text(LOG_ERROR, "bridge", NULL, "the worker was ended; another one is started");
	return !s->over;
}

int bridge_supervise(const struct bridge_config *c, int fd)
{
	struct supervisor s = { .config = c, .fd = fd, .self = getpid() };
	const struct supervise workers = {
		.work = run_worker,
		.arg = &s,
		.insist = true,
		.pause_ms = BACK_OFF_MS,
		.pause_max_ms = BACK_OFF_MAX_MS,
		.healthy_ms = HEALTHY_MS,
		.wait = wait_and_sweep,
	};
	static const int chld = SIGCHLD;

	s.signals = fd_signals(&chld, 1, NULL);
	if (s.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return 1;
	return supervise(&workers);
}
