/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - Messages of the front and of the supervisor, and messages to the front. See
 * wire/gate.h and docs/protocol/gate.md.
 *
 * Both peers send fixed-size structs. A message that makes no sense ends the gate. The gate never
 * waits for the front: an event that the front does not read now is part of a summary later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "gate/bindings.h"
#include "gate/flow.h"
#include "gate/gate.h"
#include "gate/gate_sandbox.h"

#define PER_EVENT 32

static int send_front(struct gate *g, struct gate_msg *m, const int *fds, size_t n)
{
	m->version = GATE_VERSION;
	m->life = g->config.life;
	return fd_send(g->control.fd, m, sizeof(*m), fds, n);
}

bool control_event(struct gate *g, uint32_t id, const struct gate_event *ev)
{
	struct gate_msg m = { .op = GATE_EVENT, .id = id, .u.event = *ev };

	return send_front(g, &m, NULL, 0) == 0;
}

/* Read a memfd that must hold exactly @n structs of @size into new memory, or return NULL. */
static void *read_memfd(int fd, size_t n, size_t size, int *ret_error)
{
	struct stat st;
	void *data;

	*ret_error = -EINVAL;
	if (foreign_check(fd, FOREIGN_MEMORY) < 0 || fstat(fd, &st) < 0 ||
	    (size_t)st.st_size != n * size)
		return NULL;
	data = malloc(n * size + 1);
	if (data && pread(fd, data, n * size, 0) == (ssize_t)(n * size))
		return data;
	*ret_error = data ? -EIO : -ENOMEM;
	free(data);
	return NULL;
}

static int on_set(struct gate *g, const struct gate_msg *m, int *fds, size_t n)
{
	int r = -EINVAL;
	uint32_t n_rules = m->u.set.n_rules;
	_mem_ struct gate_rule *rules = n > 0 && n_rules <= GATE_RULES_MAX ?
						read_memfd(fds[0], n_rules, sizeof(*rules), &r) :
						NULL;

	return rules ? gate_sandbox_set(g, m->id, &m->u.set, rules, fds + 1, n - 1) : r;
}

/* ---- secrets ------------------------------------------------------------------------------- */

/* Each request looks its secrets up, so the next one uses the new values. A request under way with
 * a secret that was withdrawn is cut. */
static bool take_vault(struct gate *g, int fd)
{
	struct vault fresh = { 0 };

	if (vault_init(&fresh, false) < 0 || vault_unseal(&fresh, fd, NULL) < 0) {
		vault_free(&fresh);
		return false;
	}
	vault_free(&g->vault);
	g->vault = fresh;
	for (struct gate_sandbox *sb = LIST_FIRST(&g->sandboxes); sb; sb = LIST_NEXT(sb, link))
		gate_sandbox_judge_again(sb);
	return true;
}

/* Read all messages of the supervisor. False: it is gone, or sent an invalid message. */
static bool read_supervisor(struct gate *g)
{
	for (;;) {
		struct gate_msg m;
		int fd = -1;
		size_t n_fds = 1;
		ssize_t n = fd_recv(g->supervisor.fd, &m, sizeof(m), &fd, &n_fds);

		if (n == -EAGAIN)
			return true;
		bool good = n == (ssize_t)sizeof(m) && m.version == GATE_VERSION &&
			    m.op == GATE_VAULT && n_fds == 1 && take_vault(g, fd);

		if (n > 0 && n_fds == 1)
			fd_close(fd);
		if (!good)
			return false;
	}
}

static void on_supervisor(struct watch *w, uint32_t events)
{
	struct gate *g = w->arg;

	(void)events;
	if (!read_supervisor(g))
		loop_stop(&g->loop);
}

/* ---- the front ----------------------------------------------------------------------------- */

static int on_bind(struct gate *g, const struct gate_msg *m, int *fds, size_t n, int *ret_pem)
{
	_buf_ struct buf pem = BUF_INIT(16u << 10);
	int r = -EINVAL;
	_mem_ struct gate_bind *list = n == 1 && m->u.n_binds <= GATE_BINDS_MAX ?
					       read_memfd(fds[0], m->u.n_binds, sizeof(*list), &r) :
					       NULL;

	if (!list)
		return r;
	/* The front may know of secrets that are on their way to the gate. */
	struct gate_sandbox *sb = read_supervisor(g) ? gate_sandbox_get(g, m->id) : NULL;

	r = sb ? bindings_set(&sb->bindings, &g->vault, list, m->u.n_binds) : -ENOMEM;

	if (r == 0)
		r = ca_pem(sb->bindings.ca, &pem);
	if (r == 0)
		*ret_pem = fd_memfd("caisson-ca", pem.data, pem.len);
	return r < 0 ? r : *ret_pem < 0 ? *ret_pem : 0;
}

static void describe(const struct flow *f, struct gate_conn *c)
{
	memcpy(c->host, f->host, sizeof(c->host));
	if (f->has_address)
		address_text(&f->address, c->address);
	c->port = f->port;
	c->state = f->path ? GATE_FLOWING : f->has_address ? GATE_CONNECTING : GATE_RESOLVING;
	c->up = f->up;
	c->down = f->down;
	c->age_ms = (f->sandbox->g->loop.now_ns - f->begun_ns) / CLOCK_NS_PER_MS;
}

static void on_inquire(struct gate *g, const struct gate_msg *q)
{
	struct gate_msg m = { .op = GATE_STATE, .id = q->id, .seq = q->seq };
	struct gate_sandbox *sb = gate_sandbox_find(g, q->id);
	static struct gate_conn conns[GATE_CONNS_SHOWN];
	const struct flow *f = sb ? LIST_FIRST(&sb->flows) : NULL;
	_buf_ struct buf lists =
		BUF_INIT(sizeof(conns) + GATE_NAMES_SHOWN * sizeof(struct gate_name));
	size_t n = 0;

	memset(conns, 0, sizeof(conns));
	for (; f && n < GATE_CONNS_SHOWN; f = LIST_NEXT(f, link))
		describe(f, &conns[n++]);
	(void)buf_append(&lists, conns, n * sizeof(conns[0]));
	if (sb) {
		m.u.numbers = sb->numbers;
		m.u.numbers.n_names = (uint32_t)sb->n_recent;
		(void)buf_append(&lists, sb->recent, sb->n_recent * sizeof(*sb->recent));
	}
	m.u.numbers.n_conns = (uint32_t)n;
	_fd_ int fd = fd_memfd("caisson-net", lists.data, lists.len);

	(void)send_front(g, &m, &fd, fd >= 0 ? 1 : 0);
}

/* False: the front sent an invalid message, or is gone. */
static bool serve(struct gate *g, const struct gate_msg *m, int *fds, size_t n)
{
	struct gate_sandbox *sb = gate_sandbox_find(g, m->id);
	struct gate_msg done = { .op = GATE_DONE, .id = m->id, .seq = m->seq };

	if (m->version != GATE_VERSION || m->id == 0)
		return false;
	if (m->life != g->config.life)
		return true; /* for the gate before this one */
	switch (m->op) {
	case GATE_SET:
		done.code = on_set(g, m, fds, n);
		return send_front(g, &done, NULL, 0) == 0;
	case GATE_BIND: {
		_fd_ int pem = -1;

		done.code = on_bind(g, m, fds, n, &pem);
		return send_front(g, &done, &pem, pem >= 0 ? 1 : 0) == 0;
	}
	case GATE_CLOSE:
		if (sb)
			gate_sandbox_close(sb);
		return true;
	case GATE_INQUIRE:
		on_inquire(g, m);
		return true;
	default:
		return false;
	}
}

static void on_control(struct watch *w, uint32_t events)
{
	struct gate *g = w->arg;

	(void)events;
	for (int i = 0; i < PER_EVENT; i++) {
		struct gate_msg m;
		int fds[FD_PASS_MAX];
		size_t n_fds = ARRAY_SIZE(fds);
		ssize_t n = fd_recv(w->fd, &m, sizeof(m), fds, &n_fds);

		if (n == -EAGAIN)
			return;
		bool good = n == (ssize_t)sizeof(m) && serve(g, &m, fds, n_fds);

		for (size_t k = 0; n > 0 && k < n_fds; k++)
			foreign_close(fds[k]);
		if (!good) {
			loop_stop(&g->loop);
			return;
		}
	}
}

static int watch_socket(struct gate *g, struct watch *w, int fd,
			void (*fn)(struct watch *, uint32_t), struct err *e)
{
	*w = (struct watch){ .fd = fd, .events = EPOLLIN, .fn = fn, .arg = g };
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "watch a control socket");
	return loop_add(&g->loop, w, e);
}

int control_open(struct gate *g, int fd, int supervisor, struct err *e)
{
	struct gate_msg ready = { .op = GATE_READY };
	int r = watch_socket(g, &g->supervisor, supervisor, on_supervisor, e);

	if (r < 0)
		return r;
	if (!read_supervisor(g))
		return -EPIPE;
	r = watch_socket(g, &g->control, fd, on_control, e);
	if (r < 0)
		return r;
	r = send_front(g, &ready, NULL, 0);
	return r < 0 ? err_set(e, r, "report to the front") : 0;
}
