/* SPDX-License-Identifier: Apache-2.0 */
/* gate_link.c - Start a gate, send requests to it, and handle its messages. */
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
#include "base/num.h"
#include "base/spawn.h"
#include "client/program.h"
#include "front/gate/index_hosts.h"
#include "front/policy/egress_rules.h"
#include "front/support/config.h"
#include "vault/source.h"

#define GATE_NAME "caisson-gate"
/* Private ranges, and the hosts of indexes on two ports. */
#define ARGS_MAX (3 * CONFIG_LIST_MAX + 24)
#define START_MS 20000
#define SECRETS_MS 60000 /* a command may have to fetch them */
#define QUEUE_MAX 65536  /* more than the requests of all sandboxes together */

_Static_assert(GATE_SECRETS_FD == 5, "see take_hidden()");

static const struct service gate_service;

/* ---- starting ----------------------------------------------------------------------------- */

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

/* Passed at the start, so that an attacker who takes the front over later cannot add one. */
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

/* Secrets that were in the environment are behind a descriptor, which the front does not keep. -1:
 * no secrets. */
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
	struct pollfd p = { .fd = l->link.watch.fd, .events = POLLIN };
	struct gate_msg m;
	size_t no_fds = 0;

	if (poll(&p, 1, START_MS) != 1 ||
	    fd_recv(p.fd, &m, sizeof(m), NULL, &no_fds) != (ssize_t)sizeof(m) ||
	    m.version != GATE_VERSION || m.op != GATE_READY)
		return err_say(e, -EPROTO, GATE_NAME " did not start; its own message says why");
	l->life = m.life;
	return 0;
}

/* With our environment: a command that prints secrets may need it. */
int gate_start(struct gate_link *l, const struct config *c, struct err *e)
{
	struct arguments a = { 0 };
	int pair[2];

	*l = (struct gate_link){ .supervisor = { .fd = -1 } };
	service_link_init(&l->link, &gate_service, -1);
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
	l->link.watch.fd = program_start(&s, GATE_FD, NULL, e);
	free_arguments(&a);
	(void)unsetenv(SOURCE_FD_ENV);
	return l->link.watch.fd < 0 ? l->link.watch.fd : 0;
}

/* ---- the supervisor ----------------------------------------------------------------------- */

/* Its message about the secrets. 0; 1: there is no message; -EPIPE: it is gone; or the error of
 * reading them. */
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

/* ---- the gate ----------------------------------------------------------------------------- */

static void hang_up(struct gate_link *l)
{
	service_link_close(&l->link);
	loop_del(&l->supervisor);
	l->supervisor.fd = fd_close(l->supervisor.fd);
}

static void gone(struct service_link *s)
{
	struct gate_link *l = (struct gate_link *)s;

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
		gone(&l->link);
	else if (r <= 0)
		l->on_secrets(l, fd, r < 0 ? &e : NULL);
}

static void fail(struct service_call *call, int code, const char *why)
{
	struct gate_call *c = (struct gate_call *)call;
	const struct gate_msg lost = { .code = code };

	(void)why;
	c->fn(c, &lost, -1);
}

/* Another gate is there. Requests to the former one get no answer any more. */
static void renew(struct gate_link *l, uint32_t life)
{
	uint64_t before = l->link.seq;

	l->life = life;
	service_link_drop_queue(&l->link);
	l->on_again(l);
	service_link_fail(&l->link, before, -ECONNRESET, "");
}

/* The gate is not trusted either: its texts get an end, whatever it sent. */
static void tame(struct gate_event *ev)
{
	ev->host[sizeof(ev->host) - 1] = '\0';
	ev->address[sizeof(ev->address) - 1] = '\0';
	ev->why[sizeof(ev->why) - 1] = '\0';
}

static void receive(struct service_link *s, void *message, int *fds, size_t n_fds)
{
	struct gate_link *l = (struct gate_link *)s;
	struct gate_msg *m = message;

	if (m->op == GATE_READY) {
		renew(l, m->life);
	} else if (m->op == GATE_EVENT) {
		tame(&m->u.event);
		l->on_event(l, m->id, &m->u.event);
	} else if (m->op == GATE_DONE || m->op == GATE_STATE) {
		struct gate_call *c = (struct gate_call *)service_link_take(s, m->seq);

		if (c)
			c->fn(c, m, n_fds ? fds[0] : -1);
	}
}

static const struct service gate_service = {
	.name = "the gate",
	.version = GATE_VERSION,
	.request_size = sizeof(struct gate_msg),
	.message_size = sizeof(struct gate_msg),
	.seq_at = offsetof(struct gate_msg, seq),
	.fds_max = 1,
	.queue_max = QUEUE_MAX,
	.receive = receive,
	.fail = fail,
	.gone = gone,
};

_Static_assert(sizeof(struct gate_msg) <= SERVICE_MESSAGE_MAX, "as service_link.h has it");

int gate_open(struct gate_link *l, struct loop *loop, struct err *e)
{
	int r = wait_ready(l, e);

	if (r == 0)
		r = service_link_start(&l->link, loop, e);
	if (r < 0)
		return r;
	l->supervisor = (struct watch){
		.fd = l->supervisor.fd, .events = EPOLLIN, .fn = on_supervisor, .arg = l
	};
	if (fcntl(l->supervisor.fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "set up the gate's socket");
	return loop_add(loop, &l->supervisor, e);
}

void gate_free(struct gate_link *l)
{
	if (!l->link.service) /* it was never started */
		return;
	hang_up(l);
	service_link_free(&l->link);
}

int gate_ask(struct gate_link *l, struct gate_call *c, struct gate_msg *m, const int *fds,
	     size_t n_fds, struct err *e)
{
	m->life = l->life;
	return service_link_ask(&l->link, c ? &c->call : NULL, m, fds, n_fds, e);
}

void gate_forget(struct gate_link *l, struct gate_call *c)
{
	service_link_forget(&l->link, &c->call);
}
