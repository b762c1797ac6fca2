/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_link.c - One non-blocking socket, a list of who waits, and a queue for when the socket is
 * full.
 */
#include "front/cell/warden_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

struct link_out {
	struct warden_req req;
	int fds[CELL_FDS_MAX];
	size_t n_fds;
	struct link_out *next;
};

/* ---- in ------------------------------------------------------------------------------------ */

static struct warden_call *take(struct warden_link *l, uint64_t seq)
{
	for (struct warden_call **p = &l->calls; *p; p = &(*p)->next)
		if ((*p)->seq == seq) {
			struct warden_call *c = *p;

			*p = c->next;
			c->seq = 0;
			return c;
		}
	return NULL;
}

static void gone(struct warden_link *l)
{
	static const struct warden_reply dead = { .code = -EPIPE, .msg = "the warden is gone" };

	loop_del(&l->watch);
	l->watch.fd = fd_close(l->watch.fd);
	while (l->calls) {
		struct warden_call *c = take(l, l->calls->seq);

		c->fn(c, &dead, NULL, 0);
	}
	if (l->on_gone)
		l->on_gone(l);
}

/* One reply. False when there is none. */
static bool receive(struct warden_link *l)
{
	static struct warden_reply r;
	int fds[WARDEN_REPLY_FDS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);

	r.version = 0;
	ssize_t n = fd_recv(l->watch.fd, &r, sizeof(r), fds, &n_fds);

	if (n == -EAGAIN)
		return false;
	/* We have no descriptors left for those that came with it: an error of this call alone. */
	if (n == -EMSGSIZE && r.version == WARDEN_VERSION)
		n = (ssize_t)sizeof(r);
	if (n != (ssize_t)sizeof(r) || r.version != WARDEN_VERSION) {
		for (size_t i = 0; n > 0 && i < n_fds; i++)
			fd_close(fds[i]);
		gone(l);
		return false;
	}
	r.msg[sizeof(r.msg) - 1] = '\0';
	struct warden_call *c = take(l, r.seq);

	if (c)
		c->fn(c, &r, fds, n_fds);
	else if (r.code == 0 && r.op == WARDEN_CREATE)
		warden_link_drop_cell(l, r.cell); /* made for somebody who left meanwhile */
	else if (r.code == 0 && r.op == WARDEN_ZYGOTE)
		(void)warden_link_ask_cell(l, NULL, WARDEN_RETIRE, 0, r.zygote, NULL);
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	return l->watch.fd >= 0;
}

/* ---- out ----------------------------------------------------------------------------------- */

static void free_out(struct link_out *o)
{
	for (size_t i = 0; i < o->n_fds; i++)
		fd_close(o->fds[i]);
	free(o);
}

static void flush(struct warden_link *l)
{
	while (l->out) {
		struct link_out *o = l->out;

		if (fd_send(l->watch.fd, &o->req, sizeof(o->req), o->fds, o->n_fds) == -EAGAIN)
			return;
		l->out = o->next;
		l->n_out--;
		if (!l->out)
			l->out_tail = &l->out;
		free_out(o);
	}
	loop_mod(&l->watch, EPOLLIN);
}

static int enqueue(struct warden_link *l, const struct warden_req *q, const int *fds, size_t n_fds,
		   struct err *e)
{
	struct link_out *o = calloc(1, sizeof(*o));

	if (!o)
		return err_set(e, -ENOMEM, "ask the warden");
	o->req = *q;
	for (; o->n_fds < n_fds && o->n_fds < ARRAY_SIZE(o->fds); o->n_fds++)
		o->fds[o->n_fds] = fcntl(fds[o->n_fds], F_DUPFD_CLOEXEC, 3);
	*l->out_tail = o;
	l->out_tail = &o->next;
	l->n_out++;
	loop_mod(&l->watch, EPOLLIN | EPOLLOUT);
	return 0;
}

static void on_event(struct watch *w, uint32_t events)
{
	struct warden_link *l = w->arg;

	if (events & EPOLLOUT)
		flush(l);
	/* A bounded number per round: others have a right to be heard too. */
	for (int i = 0; i < 64; i++)
		if (!receive(l))
			return;
}

/* ---- asking -------------------------------------------------------------------------------- */

int warden_link_init(struct warden_link *l, struct loop *loop, int fd, uint32_t life, struct err *e)
{
	*l = (struct warden_link){
		.loop = loop,
		.seq = (uint64_t)life << 32,
		.watch = { .fd = fd, .events = EPOLLIN, .fn = on_event },
	};
	l->watch.arg = l;
	l->out_tail = &l->out;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "set up the warden's socket");
	return loop_add(loop, &l->watch, e);
}

void warden_link_free(struct warden_link *l)
{
	loop_del(&l->watch);
	l->watch.fd = fd_close(l->watch.fd);
	while (l->out) {
		struct link_out *o = l->out;

		l->out = o->next;
		free_out(o);
	}
	while (l->calls)
		(void)take(l, l->calls->seq);
}

int warden_link_ask(struct warden_link *l, struct warden_call *c, struct warden_req *q,
		    const int *fds, size_t n_fds, struct err *e)
{
	int r;

	if (l->watch.fd < 0)
		return err_say(e, -EPIPE, "the warden is gone");
	q->version = WARDEN_VERSION;
	q->seq = ++l->seq;
	r = l->out ? -EAGAIN : fd_send(l->watch.fd, q, sizeof(*q), fds, n_fds);
	if (r == -EAGAIN)
		r = enqueue(l, q, fds, n_fds, e);
	/* A warden that is gone is noticed by the next event; until then everybody waits as usual.
	 */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return err_set(e, r, "ask the warden");
	if (c) {
		c->seq = q->seq;
		c->next = l->calls;
		l->calls = c;
	}
	return 0;
}

int warden_link_ask_cell(struct warden_link *l, struct warden_call *c, enum warden_op op,
			 uint32_t cell, uint32_t zygote, struct err *e)
{
	static struct warden_req q;

	memset(&q, 0, sizeof(q));
	q.op = op;
	q.cell = cell;
	q.zygote = zygote;
	return warden_link_ask(l, c, &q, NULL, 0, e);
}

/* ---- answers that nobody waits for --------------------------------------------------------- */

void warden_link_drop_cell(struct warden_link *l, uint32_t cell)
{
	(void)warden_link_ask_cell(l, NULL, WARDEN_DESTROY, cell, 0, NULL);
}

void warden_link_forget(struct warden_link *l, struct warden_call *c)
{
	if (c->seq)
		(void)take(l, c->seq);
}
