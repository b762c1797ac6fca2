/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splice.c - Bytes from one socket to the other without being copied through us.
 *
 * Each direction borrows a pipe for as long as something is in it: what the sink did not take. Nothing is
 * read while something waits, so a reader that is slow holds its writer back, and at most one pipe of the
 * kernel's is filled per direction. The end of one direction is passed on and leaves the other one open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "gate/box.h"
#include "gate/flow.h"
#include "gate/gate.h"

#define PIPE_BYTES (256u << 10) /* asked for; the kernel gives less to one who has many */
#define MOVE_BYTES (1u << 20)   /* at once: a page of the network is larger than one of a pipe */
#define TURNS 8                 /* pipes full per event: others have a right to be heard too */
#define POOL_MAX 64u            /* empty pipes that are kept */

struct direction {
	int pipe[2]; /* -1: nothing is held */
	size_t held;
	bool eof, shut; /* the source has ended; the sink was told */
};

struct splice {
	struct direction up, down;
};

/* ---- pipes --------------------------------------------------------------------------------------------- */

static int pool[POOL_MAX][2];
static size_t n_pool;

static bool borrow(struct direction *d)
{
	if (d->pipe[0] >= 0)
		return true;
	if (n_pool > 0) {
		memcpy(d->pipe, pool[--n_pool], sizeof(d->pipe));
		return true;
	}
	if (pipe2(d->pipe, O_CLOEXEC | O_NONBLOCK) == 0) {
		(void)fcntl(d->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
		return true;
	}
	d->pipe[0] = d->pipe[1] = -1;
	return false;
}

static void give_back(struct direction *d)
{
	if (d->pipe[0] < 0)
		return;
	if (d->held == 0 && n_pool < POOL_MAX) {
		memcpy(pool[n_pool++], d->pipe, sizeof(d->pipe));
	} else {
		fd_close(d->pipe[0]);
		fd_close(d->pipe[1]);
	}
	d->pipe[0] = d->pipe[1] = -1;
}

/* ---- moving -------------------------------------------------------------------------------------------- */

/* One turn: fill the pipe when it is empty, then empty it as far as the sink takes it. 1: go on; 0; -errno. */
static int turn(struct direction *d, int from, int to, size_t *moved)
{
	const unsigned int flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

	if (d->held == 0 && !d->eof) {
		if (!borrow(d))
			return -EMFILE;
		ssize_t n = splice(from, NULL, d->pipe[1], NULL, MOVE_BYTES, flags);

		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		d->eof = n == 0;
		d->held = (size_t)n;
	}
	if (d->held > 0) {
		ssize_t n = splice(d->pipe[0], NULL, to, NULL, d->held, flags);

		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		d->held -= (size_t)n;
		*moved += (size_t)n;
	}
	return d->held == 0 && !d->eof;
}

static int pump(struct direction *d, int from, int to, size_t *moved)
{
	int r = 1;

	for (int i = 0; i < TURNS && r > 0; i++)
		r = turn(d, from, to, moved);
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
		if (loop_add(&f->box->g->loop, w, NULL) < 0)
			flow_end(f, "the gate is out of descriptors");
	}
}

static uint32_t wish(const struct direction *in, const struct direction *out)
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
 * The path began before the client had spoken, and now it turns out to be another one's. Not when the server has
 * spoken already: it is no server of HTTP then, whatever the client says.
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
	size_t up = 0, down = 0;
	bool known = f->judged;

	if (!known)
		flow_look(f);
	if (f->over || (!known && f->judged && hand_over(f)))
		return;
	int r = f->judged ? pump(&s->up, f->inner.fd, f->outer.fd, &up) : 0;

	if (r == 0)
		r = pump(&s->down, f->outer.fd, f->inner.fd, &down);
	if ((up || down) && !flow_moved(f, up, down))
		return;
	if (r < 0) {
		flow_end(f,
			 r == -EPIPE || r == -ECONNRESET ? "one side broke it off" : strerror(-r));
		return;
	}
	if (s->up.shut && s->down.shut) {
		flow_end(f, NULL);
		return;
	}
	watch(f, &f->inner, wish(&s->up, &s->down));
	if (!f->over)
		watch(f, &f->outer, wish(&s->down, &s->up));
}

static void on_event(struct watch *w, uint32_t events)
{
	(void)events;
	run(w->arg);
}

/* ---- as a path ----------------------------------------------------------------------------------------- */

static void begin(struct flow *f)
{
	struct splice *s = calloc(1, sizeof(*s));

	if (!s) {
		flow_end(f, "the gate is out of memory");
		return;
	}
	s->up = s->down = (struct direction){ .pipe = { -1, -1 } };
	f->state = s;
	f->inner.fn = f->outer.fn = on_event;
	run(f);
}

const struct flow_path splice_path = { .begin = begin, .cut = cut };
