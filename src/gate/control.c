/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - The front's requests, and what it is told. See wire/gate.h and docs/protocol/gate.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "gate/box.h"
#include "gate/ca.h"
#include "gate/flow.h"
#include "gate/gate.h"

#define PER_EVENT 32

/* What the front does not read now it will be told in a summary, or ask for: it is never waited
 * for. */
static int say(struct gate *g, struct gate_msg *m, const int *fds, size_t n)
{
	m->version = GATE_VERSION;
	m->life = g->config.life;
	return fd_send(g->control.fd, m, sizeof(*m), fds, n);
}

bool control_event(struct gate *g, uint32_t id, const struct gate_event *ev)
{
	struct gate_msg m = { .op = GATE_EVENT, .id = id, .u.event = *ev };

	return say(g, &m, NULL, 0) == 0;
}

/* The rules: a memfd of exactly so many structs. */
static struct gate_rule *read_rules(int fd, uint32_t n, int *ret_error)
{
	struct stat st;
	size_t size = n * sizeof(struct gate_rule);
	struct gate_rule *rules;

	*ret_error = -EINVAL;
	if (n > GATE_RULES_MAX || foreign_check(fd, FOREIGN_MEMORY) < 0 || fstat(fd, &st) < 0 ||
	    (size_t)st.st_size != size)
		return NULL;
	rules = malloc(size + 1);
	if (rules && pread(fd, rules, size, 0) == (ssize_t)size)
		return rules;
	*ret_error = rules ? -EIO : -ENOMEM;
	free(rules);
	return NULL;
}

static int on_set(struct gate *g, const struct gate_msg *m, int *fds, size_t n)
{
	int r = -EINVAL;
	_mem_ struct gate_rule *rules = n > 0 ? read_rules(fds[0], m->u.set.n_rules, &r) : NULL;

	return rules ? box_set(g, m->id, &m->u.set, rules, fds + 1, n - 1) : r;
}

/* ---- secrets ------------------------------------------------------------------------------- */

/*
 * What is bound is looked up with each request: from the next one on it is what is in force. One
 * that is under way with a secret that was withdrawn is cut.
 */
static bool take_vault(struct gate *g, int fd)
{
	struct vault fresh = { 0 };

	if (vault_init(&fresh, false) < 0 || vault_unseal(&fresh, fd, NULL) < 0) {
		vault_free(&fresh);
		return false;
	}
	vault_free(&g->vault);
	g->vault = fresh;
	for (struct box *b = g->boxes; b; b = b->next)
		box_judge_again(b);
	return true;
}

/* Everything that the supervisor has said. False: it is gone, or makes no sense. */
static bool hear_supervisor(struct gate *g)
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
	if (!hear_supervisor(g))
		loop_stop(&g->loop);
}

/* ---- the front ----------------------------------------------------------------------------- */

static int on_bind(struct gate *g, const struct gate_msg *m, int *fds, size_t n, int *ret_pem)
{
	struct gate_bind list[GATE_BINDS_MAX];
	size_t size = m->u.n_binds * sizeof(list[0]);
	_buf_ struct buf pem = BUF_INIT(16u << 10);
	struct stat st;

	if (n != 1 || m->u.n_binds > GATE_BINDS_MAX || foreign_check(fds[0], FOREIGN_MEMORY) < 0 ||
	    fstat(fds[0], &st) < 0 || (size_t)st.st_size != size ||
	    pread(fds[0], list, size, 0) != (ssize_t)size)
		return -EINVAL;
	/* The front may know of secrets that are on their way to us. */
	struct box *b = hear_supervisor(g) ? box_get(g, m->id) : NULL;
	int r = b ? binds_set(&b->binds, &g->vault, list, m->u.n_binds) : -ENOMEM;

	if (r == 0)
		r = ca_pem(b->binds.ca, &pem);
	if (r == 0)
		*ret_pem = fd_memfd("caisson-ca", pem.data, pem.len);
	return r < 0 ? r : *ret_pem < 0 ? *ret_pem : 0;
}

static enum gate_conn_state state_of(const struct flow *f)
{
	if (f->path)
		return GATE_FLOWING;
	return f->has_address ? GATE_CONNECTING : GATE_RESOLVING;
}

static void describe(const struct flow *f, struct gate_conn *c)
{
	memcpy(c->host, f->host, sizeof(c->host));
	if (f->has_address)
		address_text(&f->address, c->address);
	c->port = f->port;
	c->state = (uint16_t)state_of(f);
	c->up = f->up;
	c->down = f->down;
	c->age_ms = (f->box->g->loop.now_ns - f->begun_ns) / CLOCK_NS_PER_MS;
}

static void on_inquire(struct gate *g, const struct gate_msg *q)
{
	struct gate_msg m = { .op = GATE_STATE, .id = q->id, .seq = q->seq };
	struct box *b = box_find(g, q->id);
	static struct gate_conn conns[GATE_CONNS_SHOWN];
	static struct gate_name names[GATE_NAMES_SHOWN];
	size_t n = 0, n_names = b ? asked_show(&b->asked, names, ARRAY_SIZE(names)) : 0;

	memset(conns, 0, sizeof(conns));
	for (const struct flow *f = b ? b->flows : NULL; f && n < GATE_CONNS_SHOWN; f = f->next)
		describe(f, &conns[n++]);
	if (b)
		m.u.numbers = b->numbers;
	m.u.numbers.n_conns = (uint32_t)n;
	m.u.numbers.n_names = (uint32_t)n_names;
	_buf_ struct buf lists = BUF_INIT(sizeof(conns) + sizeof(names));

	(void)buf_append(&lists, conns, n * sizeof(conns[0]));
	(void)buf_append(&lists, names, n_names * sizeof(names[0]));
	_fd_ int fd = fd_memfd("caisson-net", lists.data, lists.len);

	(void)say(g, &m, &fd, fd >= 0 ? 1 : 0);
}

/* False: the front makes no sense, or is gone. */
static bool serve(struct gate *g, const struct gate_msg *m, int *fds, size_t n)
{
	struct box *b = box_find(g, m->id);
	struct gate_msg done = { .op = GATE_DONE, .id = m->id, .seq = m->seq };

	if (m->version != GATE_VERSION || m->id == 0)
		return false;
	if (m->life != g->config.life)
		return true; /* was said to the gate before us */
	switch (m->op) {
	case GATE_SET:
		done.code = on_set(g, m, fds, n);
		return say(g, &done, NULL, 0) == 0;
	case GATE_BIND: {
		_fd_ int pem = -1;

		done.code = on_bind(g, m, fds, n, &pem);
		return say(g, &done, &pem, pem >= 0 ? 1 : 0) == 0;
	}
	case GATE_CLOSE:
		if (b)
			box_close(b);
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

static int attend(struct gate *g, struct watch *w, int fd, void (*fn)(struct watch *, uint32_t),
		  struct err *e)
{
	*w = (struct watch){ .fd = fd, .events = EPOLLIN, .fn = fn, .arg = g };
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "speak to the front");
	return loop_add(&g->loop, w, e);
}

int control_open(struct gate *g, int fd, int supervisor, struct err *e)
{
	struct gate_msg ready = { .op = GATE_READY };
	int r = attend(g, &g->supervisor, supervisor, on_supervisor, e);

	if (r == 0 && !hear_supervisor(g))
		r = -EPIPE;
	if (r == 0)
		r = attend(g, &g->control, fd, on_control, e);
	if (r < 0)
		return r;
	r = say(g, &ready, NULL, 0);
	return r < 0 ? err_set(e, r, "speak to the front") : 0;
}
