/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splice.c - Move bytes from one socket to the other with splice(2), without copying them.
 *
 * Each direction borrows a pipe as long as bytes are in it that the sink did not take. Nothing is
 * read while bytes wait, so a slow reader holds its writer back, and at most one pipe is filled per
 * direction. The end of one direction is passed on and leaves the other one open.
 *
 * A pipe has a slot for each page of its size, and each piece from the network takes a slot,
 * however small it is: so the size of the pipe limits how much one call moves. A direction that
 * fills pipes again and again gets a larger one. There are few large pipes, because the Linux
 * kernel limits the pages of pipes per user. Pipes are kept, because making one is expensive.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "gate/flow.h"
#include "gate/gate.h"
#include "gate/gate_sandbox.h"

#define PIPE_BYTES (256u << 10) /* requested; the Linux kernel gives less to a user of many */
#define MOVE_BYTES (1u << 20)   /* per call; also the size of a large pipe */
#define SHARE_BYTES (2u << 20)  /* per event: others have their turn */
#define TURNS 8                 /* the same, for small pieces */
#define FAST_TURNS 16u          /* that filled a pipe in a row: a large pipe is worth it */
#define POOL_MAX 64u            /* empty pipes that are kept */
#define LARGE_MAX 16u           /* large pipes in all */

struct channel {
	int in, out; /* -1: no pipe */
	bool large;
};

struct direction {
	struct channel pipe; /* no pipe: nothing is held */
	size_t held;
	unsigned int full; /* turns in a row that filled a pipe */
	bool eof, shut;    /* the source has ended; the sink was shut down */
};

struct splice {
	struct direction up, down;
};

/* ---- pipes --------------------------------------------------------------------------------- */

static struct channel pool[POOL_MAX], large_pool[LARGE_MAX];
static size_t n_pool, n_large_pool, n_large; /* in the pools; large pipes in all */

static const struct channel no_channel = { .in = -1, .out = -1 };

/* False: there are LARGE_MAX of them, or the Linux kernel refuses more. */
static bool borrow_large(struct direction *d)
{
	struct channel *c = &d->pipe;
	int fd[2];

	if (n_large_pool > 0) {
		*c = large_pool[--n_large_pool];
		return true;
	}
	if (n_large == LARGE_MAX || pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	if (fcntl(fd[1], F_SETPIPE_SZ, MOVE_BYTES) < 0) {
		fd_close(fd[0]);
		fd_close(fd[1]);
		d->full = 0; /* try again after FAST_TURNS more */
		return false;
	}
	n_large++;
	*c = (struct channel){ .out = fd[0], .in = fd[1], .large = true };
	return true;
}

static bool borrow(struct direction *d)
{
	int fd[2];

	if (d->pipe.in >= 0 || (d->full >= FAST_TURNS && borrow_large(d)))
		return true;
	if (n_pool > 0) {
		d->pipe = pool[--n_pool];
		return true;
	}
	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	(void)fcntl(fd[1], F_SETPIPE_SZ, PIPE_BYTES);
	d->pipe = (struct channel){ .out = fd[0], .in = fd[1] };
	return true;
}

static void give_back(struct direction *d)
{
	struct channel *c = &d->pipe;

	if (c->in < 0)
		return;
	if (d->held == 0 && c->large) {
		large_pool[n_large_pool++] = *c;
	} else if (d->held == 0 && n_pool < POOL_MAX) {
		pool[n_pool++] = *c;
	} else {
		n_large -= c->large;
		fd_close(c->in);
		fd_close(c->out);
	}
	*c = no_channel;
}

/* ---- moving -------------------------------------------------------------------------------- */

/* Move bytes of the source, as many as may be moved, into a pipe. 1: go on; 0: wait; -errno. */
static int fill(struct direction *d, int from, size_t *may, unsigned int flags)
{
	if (*may == 0)
		return 0;
	if (!borrow(d))
		return -EMFILE;
	ssize_t n =
		splice(from, NULL, d->pipe.in, NULL, *may < MOVE_BYTES ? *may : MOVE_BYTES, flags);

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	d->eof = n == 0;
	d->held = (size_t)n;
	if (*may < SIZE_MAX)
		*may -= d->held;
	if (d->held < PIPE_BYTES / 2)
		d->full = 0;
	else if (d->full < FAST_TURNS)
		d->full++;
	return 1;
}

/* One turn: fill the pipe when it is empty, then empty it as far as the sink takes the bytes. 1: go
 * on; 0: wait; -errno. */
static int turn(struct direction *d, int from, int to, size_t *may, size_t *moved)
{
	const unsigned int flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
	int r = d->held == 0 && !d->eof ? fill(d, from, may, flags) : 1;

	if (r <= 0)
		return r;
	if (d->held > 0) {
		ssize_t n = splice(d->pipe.out, NULL, to, NULL, d->held, flags);

		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		d->held -= (size_t)n;
		*moved += (size_t)n;
	}
	return d->held == 0 && !d->eof;
}

/* @may: how many bytes of the source may be moved, less those that were; SIZE_MAX: all */
static int pump(struct direction *d, int from, int to, size_t *may, size_t *moved)
{
	int r = 1;

	for (int i = 0; i < TURNS && r > 0 && *moved < SHARE_BYTES; i++)
		r = turn(d, from, to, may, moved);
	if (d->held == 0)
		give_back(d);
	if (r >= 0 && d->eof && d->held == 0 && !d->shut) {
		d->shut = true;
		(void)shutdown(to, SHUT_WR);
	}
	return r < 0 ? r : 0;
}

static void watch(struct flow *f, struct watch *w, uint32_t events)
{
	if (!events)
		loop_del(w);
	else if (w->loop)
		loop_mod(w, events);
	else {
		w->events = events;
		if (loop_add(&f->sandbox->g->loop, w, NULL) < 0)
			flow_end(f, "the gate is out of descriptors");
	}
}

static uint32_t wanted_events(const struct direction *in, const struct direction *out)
{
	return (in->held == 0 && !in->eof ? (uint32_t)EPOLLIN : 0) |
	       (out->held > 0 ? (uint32_t)EPOLLOUT : 0);
}

static void cut(struct flow *f)
{
	struct splice *s = f->state;

	if (!s)
		return;
	give_back(&s->up);
	give_back(&s->down);
	free(s);
	f->state = NULL;
}

/*
 * The path began before the client's first bytes came, and these need another path. Not when the
 * server has sent already: then it is no HTTP server, whatever the client sends.
 */
static bool hand_over(struct flow *f)
{
	const struct splice *s = f->state;
	const struct flow_path *path = flow_choose(f);

	if (path == f->path || f->down > 0 || s->down.held > 0)
		return false;
	cut(f);
	loop_del(&f->inner);
	loop_del(&f->outer);
	f->path = path;
	path->begin(f);
	return true;
}

static void run(struct flow *f)
{
	struct splice *s = f->state;
	size_t up = 0, down = 0, all = SIZE_MAX;
	bool known = f->judged;

	if (f->may == 0)
		flow_look(f);
	if (f->over || (!known && f->judged && hand_over(f)))
		return;
	int r = pump(&s->up, f->inner.fd, f->outer.fd, &f->may, &up);

	if (r == 0)
		r = pump(&s->down, f->outer.fd, f->inner.fd, &all, &down);
	if ((up || down) && !flow_moved(f, up, down))
		return;
	if (r < 0) {
		flow_end(f, r == -EPIPE || r == -ECONNRESET ? "one side broke the connection off" :
							      strerror(-r));
		return;
	}
	if (s->up.shut && s->down.shut) {
		flow_end(f, NULL);
		return;
	}
	watch(f, &f->inner, wanted_events(&s->up, &s->down));
	if (!f->over)
		watch(f, &f->outer, wanted_events(&s->down, &s->up));
}

static void on_event(struct watch *w, uint32_t events)
{
	(void)events;
	run(w->arg);
}

/* ---- as a path ----------------------------------------------------------------------------- */

static void begin(struct flow *f)
{
	struct splice *s = calloc(1, sizeof(*s));

	if (!s) {
		flow_end(f, "the gate is out of memory");
		return;
	}
	s->up = s->down = (struct direction){ .pipe = no_channel };
	f->state = s;
	f->inner.fn = f->outer.fn = on_event;
	run(f);
}

/* By the present rules the gate would read this flow, or refuse its protocol. */
static const char *objection(const struct flow *f)
{
	bool other = f->judged && f->sniff.kind == SNIFF_OTHER;

	if (other ? flow_needs_http(f) : gate_sandbox_inspects(f->sandbox, f->host, f->port))
		return "the rules do not allow it any more";
	return NULL;
}

const struct flow_path splice_path = { .begin = begin, .cut = cut, .objection = objection };
