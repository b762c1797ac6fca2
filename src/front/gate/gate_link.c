/* SPDX-License-Identifier: Apache-2.0 */
/* gate_link.c - Start a gate, ask it, hear from it. */
#include "front/gate/gate_link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "base/num.h"
#include "base/spawn.h"
#include "client/program.h"
#include "front/gate/index_hosts.h"
#include "front/policy/egress_rules.h"
#include "front/support/config.h"
#include "vault/source.h"

#define GATE_NAME "caisson-gate"
#define ARGS_MAX                                                                                   \
	(3 * CONFIG_LIST_MAX + 24) /* private ranges, and hosts of indexes on two ports            \
				    */
#define START_MS 20000
#define SECRETS_MS 60000 /* a command may have to ask for them */
#define PER_EVENT 64

_Static_assert(GATE_SECRETS_FD == 5, "see take_hidden()");

struct gate_out {
	struct gate_msg msg;
	int fds[FD_PASS_MAX];
	size_t n_fds;
	struct gate_out *next;
};

/* ---- starting ------------------------------------------------------------------------------ */

struct arguments {
	char *list[ARGS_MAX + 1];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct arguments *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (a->n < ARGS_MAX && vasprintf(&a->list[a->n], fmt, ap) >= 0)
		a->n++;
	va_end(ap);
	a->list[a->n] = NULL;
}

static void add_text(struct arguments *a, const char *name, const char *value)
{
	if (value)
		add(a, "--%s=%s", name, value);
}

/* From the start, so that nobody who takes us over later can name another one. */
static void add_indexes(struct arguments *a, const struct config *c)
{
	static struct egress_rules rules;
	json_t *hosts = index_hosts(c, NULL);

	if (hosts && egress_rules(hosts, &rules, NULL) == 0)
		for (size_t i = 0; i < rules.n_rules; i++) {
			const struct gate_rule *r = &rules.rules[i];
			const char *server = index_server(c, r->host);

			if (!(r->flags & GATE_WILD))
				add(a, "--index=%s:%u%s%s", r->host, r->port, server ? "=" : "",
				    server ? server : "");
		}
	json_decref(hosts);
}

static void make_arguments(struct arguments *a, const struct config *c)
{
	add(a, GATE_NAME);
	add(a, "--connections=%" PRIu64, c->egress_connections);
	add(a, "--rate=%" PRIu64, c->egress_rate);
	add(a, "--bytes=%" PRIu64, c->egress_bytes);
	add_text(a, "ca", c->egress_ca);
	add_text(a, "dns", c->egress_dns);
	for (size_t i = 0; c->egress_private[i]; i++)
		add_text(a, "private", c->egress_private[i]);
	add_indexes(a, c);
	add_text(a, "secrets-file", c->secrets_file);
	add_text(a, "secrets-env", c->secrets_env);
	add_text(a, "secrets-command", c->secrets_command);
}

static void free_arguments(struct arguments *a)
{
	while (a->n > 0)
		free(a->list[--a->n]);
}

/* Secrets that were in the environment lie behind a descriptor, which is not ours to keep. -1:
 * there are none. */
static int take_hidden(void)
{
	const char *number = getenv(SOURCE_FD_ENV);
	uint64_t fd = 0;

	if (!number || num_parse_u64(number, 3, 1024, &fd, NULL) < 0)
		return -1;
	(void)setenv(SOURCE_FD_ENV, "5", 1);
	return (int)fd;
}

static int wait_ready(struct gate_link *l, struct err *e)
{
	struct pollfd p = { .fd = l->watch.fd, .events = POLLIN };
	struct gate_msg m;
	size_t no_fds = 0;

	if (poll(&p, 1, START_MS) != 1 ||
	    fd_recv(l->watch.fd, &m, sizeof(m), NULL, &no_fds) != (ssize_t)sizeof(m) ||
	    m.version != GATE_VERSION || m.op != GATE_READY)
		return err_say(e, -EPROTO, GATE_NAME " did not start; its own message says why");
	l->life = m.life;
	return 0;
}

/* With our environment: what a command that prints secrets needs is in it. */
int gate_start(struct gate_link *l, const struct config *c, struct err *e)
{
	struct arguments a = { 0 };
	int pair[2];

	*l = (struct gate_link){ .watch = { .fd = -1 }, .supervisor = { .fd = -1 } };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "socketpair");
	l->supervisor.fd = pair[0];
	_fd_ int supervisor = pair[1], hidden = take_hidden();
	struct spawn s = { .argv = a.list,
			   .envp = environ,
			   .fds = { { supervisor, GATE_SUPERVISOR_FD },
				    { hidden, GATE_SECRETS_FD } },
			   .n_fds = 2 };

	make_arguments(&a, c);
	l->watch.fd = program_start(&s, GATE_FD, NULL, e);
	free_arguments(&a);
	(void)unsetenv(SOURCE_FD_ENV);
	return l->watch.fd < 0 ? l->watch.fd : 0;
}

/* ---- the supervisor ------------------------------------------------------------------------ */

/* What it said of the secrets. 0, 1: it has said nothing, -EPIPE: it is gone; or why they could not
 * be read. */
static int hear_supervisor(struct gate_link *l, int *ret, struct err *e)
{
	struct supervisor_msg m;
	size_t n_fds = 1;
	ssize_t n = fd_recv(l->supervisor.fd, &m, sizeof(m), ret, &n_fds);

	if (n <= 0 || n_fds == 0)
		*ret = -1;
	if (n == -EAGAIN)
		return 1;
	if (n != (ssize_t)sizeof(m) || m.version != GATE_VERSION || m.op != SUPERVISOR_SECRETS) {
		*ret = fd_close(*ret);
		return err_say(e, -EPIPE, GATE_NAME " did not start; its own message says why");
	}
	m.why[sizeof(m.why) - 1] = '\0';
	return m.code < 0 ? err_say(e, m.code == -EPIPE ? -EIO : m.code, "%s", m.why) : 0;
}

int gate_secrets(struct gate_link *l, int *ret, struct err *e)
{
	struct pollfd p = { .fd = l->supervisor.fd, .events = POLLIN };

	*ret = -1;
	if (poll(&p, 1, SECRETS_MS) != 1)
		return err_say(e, -ETIMEDOUT, "secrets could not be read in time");
	return hear_supervisor(l, ret, e);
}

void gate_reload(struct gate_link *l)
{
	const struct supervisor_msg m = { .version = GATE_VERSION, .op = SUPERVISOR_RELOAD };

	if (l->supervisor.fd >= 0)
		(void)fd_send(l->supervisor.fd, &m, sizeof(m), NULL, 0);
}

static void free_out(struct gate_out *o)
{
	for (size_t i = 0; i < o->n_fds; i++)
		foreign_close(o->fds[i]);
	free(o);
}

static void drop_out(struct gate_link *l)
{
	while (l->out) {
		struct gate_out *o = l->out;

		l->out = o->next;
		free_out(o);
	}
	l->out_tail = &l->out;
}

/* ---- in ------------------------------------------------------------------------------------ */

static struct gate_call *take(struct gate_link *l, uint64_t seq)
{
	for (struct gate_call **p = &l->calls; *p; p = &(*p)->next)
		if ((*p)->seq == seq) {
			struct gate_call *c = *p;

			*p = c->next;
			c->seq = 0;
			return c;
		}
	return NULL;
}

static void hang_up(struct gate_link *l)
{
	loop_del(&l->watch);
	loop_del(&l->supervisor);
	l->watch.fd = fd_close(l->watch.fd);
	l->supervisor.fd = fd_close(l->supervisor.fd);
}

static void gone(struct gate_link *l)
{
	hang_up(l);
	l->on_gone(l);
}

static void on_supervisor(struct watch *w, uint32_t events)
{
	struct gate_link *l = w->arg;
	struct err e = { 0 };
	_fd_ int fd = -1;
	int r = hear_supervisor(l, &fd, &e);

	(void)events;
	if (r == -EPIPE)
		gone(l);
	else if (r <= 0)
		l->on_secrets(l, fd, r < 0 ? &e : NULL);
}

/* Another gate listens. What was asked of the one before it has no answer any more. */
static void renew(struct gate_link *l, uint32_t life)
{
	static const struct gate_msg lost = { .code = -ECONNRESET };
	uint64_t before = l->seq;
	struct gate_call *c;

	l->life = life;
	drop_out(l);
	l->on_again(l);
	do {
		c = l->calls;
		while (c && c->seq > before)
			c = c->next;
		if (c)
			(void)take(l, c->seq)->fn(c, &lost, -1);
	} while (c);
}

/* The gate is a stranger too: its texts have an end, whatever it sent. */
static void tame(struct gate_event *ev)
{
	ev->host[sizeof(ev->host) - 1] = '\0';
	ev->address[sizeof(ev->address) - 1] = '\0';
	ev->why[sizeof(ev->why) - 1] = '\0';
}

static bool receive(struct gate_link *l)
{
	struct gate_msg m;
	int fd = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(l->watch.fd, &m, sizeof(m), &fd, &n_fds);

	if (n == -EAGAIN)
		return false;
	if (n != (ssize_t)sizeof(m) || m.version != GATE_VERSION) {
		if (n > 0 && n_fds)
			fd_close(fd);
		gone(l);
		return false;
	}
	if (n_fds == 0)
		fd = -1;
	if (m.op == GATE_READY) {
		renew(l, m.life);
	} else if (m.op == GATE_EVENT) {
		tame(&m.u.event);
		l->on_event(l, m.id, &m.u.event);
	} else if (m.op == GATE_DONE || m.op == GATE_STATE) {
		struct gate_call *c = take(l, m.seq);

		if (c)
			c->fn(c, &m, fd);
	}
	fd_close(fd);
	return l->watch.fd >= 0;
}

/* ---- out ----------------------------------------------------------------------------------- */

static void flush(struct gate_link *l)
{
	while (l->out) {
		struct gate_out *o = l->out;

		if (fd_send(l->watch.fd, &o->msg, sizeof(o->msg), o->fds, o->n_fds) == -EAGAIN)
			return;
		l->out = o->next;
		if (!l->out)
			l->out_tail = &l->out;
		free_out(o);
	}
	loop_mod(&l->watch, EPOLLIN);
}

static int enqueue(struct gate_link *l, const struct gate_msg *m, const int *fds, size_t n_fds,
		   struct err *e)
{
	struct gate_out *o = calloc(1, sizeof(*o));

	if (!o)
		return err_set(e, -ENOMEM, "ask the gate");
	o->msg = *m;
	for (; o->n_fds < n_fds && o->n_fds < ARRAY_SIZE(o->fds); o->n_fds++)
		o->fds[o->n_fds] = fcntl(fds[o->n_fds], F_DUPFD_CLOEXEC, 3);
	*l->out_tail = o;
	l->out_tail = &o->next;
	loop_mod(&l->watch, EPOLLIN | EPOLLOUT);
	return 0;
}

static void on_event(struct watch *w, uint32_t events)
{
	struct gate_link *l = w->arg;

	if (events & EPOLLOUT)
		flush(l);
	for (int i = 0; i < PER_EVENT; i++)
		if (!receive(l))
			return;
}

int gate_open(struct gate_link *l, struct loop *loop, struct err *e)
{
	int r = wait_ready(l, e);

	if (r < 0)
		return r;
	l->loop = loop;
	l->out_tail = &l->out;
	l->watch.events = l->supervisor.events = EPOLLIN;
	l->watch.fn = on_event;
	l->supervisor.fn = on_supervisor;
	l->watch.arg = l->supervisor.arg = l;
	if (fcntl(l->watch.fd, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(l->supervisor.fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "set up the gate's socket");
	r = loop_add(loop, &l->watch, e);
	return r < 0 ? r : loop_add(loop, &l->supervisor, e);
}

void gate_free(struct gate_link *l)
{
	if (!l->loop)
		return;
	hang_up(l);
	drop_out(l);
	while (l->calls)
		(void)take(l, l->calls->seq);
}

int gate_ask(struct gate_link *l, struct gate_call *c, struct gate_msg *m, const int *fds,
	     size_t n_fds, struct err *e)
{
	int r;

	if (l->watch.fd < 0)
		return err_say(e, -EPIPE, "the gate is gone");
	m->version = GATE_VERSION;
	m->life = l->life;
	m->seq = ++l->seq;
	r = l->out ? -EAGAIN : fd_send(l->watch.fd, m, sizeof(*m), fds, n_fds);
	if (r == -EAGAIN)
		r = enqueue(l, m, fds, n_fds, e);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return err_set(e, r, "ask the gate");
	if (c) {
		c->seq = m->seq;
		c->next = l->calls;
		l->calls = c;
	}
	return 0;
}

void gate_forget(struct gate_link *l, struct gate_call *c)
{
	if (c->seq)
		(void)take(l, c->seq);
}
