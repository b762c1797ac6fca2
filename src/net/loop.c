/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - The event loop. See loop.h for the contract.
 *
 * Theory of operation: a round is one epoll_wait(), then the descriptors that are ready, then the
 * timers that are due, then the deferred work. Descriptors come before timers so that after a long
 * round a client whose bytes have already come is not treated as too slow.
 *
 * epoll is level-triggered: callbacks need not drain anything, and may stop after their fair share.
 * A round is finite whatever callbacks do: at most BATCH_MAX events, each timer once, and only the
 * work that was deferred before the deferred work began; work that is added meanwhile belongs to
 * the next round, which then does not wait.
 *
 * Removal inside a callback: the events of the round are in an array; loop_del() blanks those of
 * its watch. Timers leave the heap before their callback runs, deferred work leaves its list before
 * it is called: a callback may free what it was called for.
 *
 * Timers are a binary heap of pointers, each timer knows its place: set, move and cancel cost
 * O(log n), the next deadline is at the top.
 */
#include "net/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"

#define BATCH_MAX 256

int loop_init(struct loop *l, struct err *e)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "create an epoll descriptor");
	*l = (struct loop){ .epoll = fd, .now_ns = clock_now_ns() };
	l->deferred_tail = &l->deferred;
	return 0;
}

void loop_free(struct loop *l)
{
	/* A timer that is cancelled after this must not reach into the freed heap. */
	for (size_t i = 0; i < l->n_timers; i++)
		l->heap[i]->loop = NULL;
	free(l->heap);
	fd_close(l->epoll);
	*l = (struct loop){ .epoll = -1 };
	l->deferred_tail = &l->deferred;
}

/* ---- descriptors --------------------------------------------------------------------------- */

int loop_add(struct loop *l, struct watch *w, struct err *e)
{
	struct epoll_event ev = { .events = w->events, .data.ptr = w };

	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, w->fd, &ev) < 0)
		return err_set(e, -errno, "watch descriptor %d", w->fd);
	w->loop = l;
	return 0;
}

void loop_mod(struct watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (w->events == events)
		return;
	w->events = events;
	/* This needs no memory: it fails only for a descriptor that was closed under the watch, and
	 * going on would mean to watch another one. */
	if (w->loop && epoll_ctl(w->loop->epoll, EPOLL_CTL_MOD, w->fd, &ev) < 0)
		abort();
}

void loop_del(struct watch *w)
{
	struct loop *l = w->loop;

	if (!l)
		return;
	struct epoll_event *batch = l->batch;

	for (int i = 0; i < l->n_batch; i++)
		if (batch[i].data.ptr == w)
			batch[i].data.ptr = NULL;
	(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	w->loop = NULL;
}

/* ---- timers -------------------------------------------------------------------------------- */

static void place(struct loop *l, size_t i, struct timer *t)
{
	l->heap[i] = t;
	t->index = i;
}

static void sift_up(struct loop *l, size_t i)
{
	struct timer *t = l->heap[i];

	while (i > 0 && l->heap[(i - 1) / 2]->at_ns > t->at_ns) {
		place(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place(l, i, t);
}

static void sift_down(struct loop *l, size_t i)
{
	struct timer *t = l->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= l->n_timers)
			break;
		if (child + 1 < l->n_timers && l->heap[child + 1]->at_ns < l->heap[child]->at_ns)
			child++;
		if (l->heap[child]->at_ns >= t->at_ns)
			break;
		place(l, i, l->heap[child]);
		i = child;
	}
	place(l, i, t);
}

void timer_set(struct loop *l, struct timer *t, uint64_t at_ns)
{
	if (t->loop && t->loop != l)
		timer_cancel(t);
	if (!t->loop) {
		if (mem_grow(&l->heap, &l->cap_timers, l->n_timers + 1, sizeof(*l->heap)) < 0)
			abort(); /* a missed deadline would be worse */
		place(l, l->n_timers++, t);
		t->loop = l;
	}
	/* A timer that a timer sets for now, or for the past, fires in the next round. */
	t->at_ns = l->firing && at_ns <= l->now_ns ? l->now_ns + 1 : at_ns;
	/* It moves in one direction at most; the other call does nothing. */
	sift_up(l, t->index);
	sift_down(l, t->index);
}

void timer_after(struct loop *l, struct timer *t, uint64_t ns)
{
	timer_set(l, t, l->now_ns + ns);
}

void timer_cancel(struct timer *t)
{
	struct loop *l = t->loop;

	if (!l)
		return;
	struct timer *last = l->heap[--l->n_timers];

	if (last != t) {
		place(l, t->index, last);
		sift_up(l, last->index);
		sift_down(l, last->index);
	}
	t->loop = NULL;
}

static void fire_timers(struct loop *l)
{
	l->firing = true;
	while (l->n_timers > 0 && l->heap[0]->at_ns <= l->now_ns) {
		struct timer *t = l->heap[0];

		timer_cancel(t);
		t->fn(t);
	}
	l->firing = false;
}

/* ---- deferred work ------------------------------------------------------------------------- */

void loop_defer(struct loop *l, struct deferred *d)
{
	if (d->queued)
		return;
	d->queued = true;
	d->next = NULL;
	*l->deferred_tail = d;
	l->deferred_tail = &d->next;
}

void loop_undefer(struct loop *l, struct deferred *d)
{
	if (!d->queued)
		return;
	d->queued = false;
	struct deferred **const lists[] = { &l->running, &l->deferred };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (struct deferred **p = lists[i]; *p; p = &(*p)->next)
			if (*p == d) {
				*p = d->next;
				if (l->deferred_tail == &d->next)
					l->deferred_tail = p;
				return;
			}
}

static void free_arg(struct deferred *d)
{
	free(d->arg);
}

void loop_free_later(struct loop *l, struct deferred *d, void *p)
{
	*d = (struct deferred){ .fn = free_arg, .arg = p };
	loop_defer(l, d);
}

static void run_deferred(struct loop *l)
{
	struct deferred *d;

	l->running = l->deferred;
	l->deferred = NULL;
	l->deferred_tail = &l->deferred;
	while ((d = l->running)) {
		l->running = d->next;
		d->queued = false;
		d->fn(d);
	}
}

/* ---- rounds -------------------------------------------------------------------------------- */

/* Milliseconds to wait, rounded up: waking too early would mean to wait again. */
static int wait_ms(const struct loop *l)
{
	if (l->deferred)
		return 0;
	if (l->n_timers == 0)
		return -1;
	uint64_t now = clock_now_ns(), at = l->heap[0]->at_ns;

	if (at <= now)
		return 0;
	uint64_t ms = (at - now - 1) / CLOCK_NS_PER_MS + 1;

	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static void dispatch(struct loop *l, struct epoll_event *batch, int n)
{
	l->batch = batch;
	l->n_batch = n;
	for (int i = 0; i < n; i++) {
		struct watch *w = batch[i].data.ptr;

		if (!w)
			continue;
		/* A callback of this round may have changed the requested events. */
		uint32_t events = batch[i].events & (w->events | EPOLLERR | EPOLLHUP);

		if (events)
			w->fn(w, events);
	}
	l->batch = NULL;
	l->n_batch = 0;
}

int loop_run(struct loop *l, struct err *e)
{
	while (!l->stop) {
		struct epoll_event batch[BATCH_MAX];
		int n = epoll_wait(l->epoll, batch, BATCH_MAX, wait_ms(l));

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for events");
		l->now_ns = clock_now_ns();
		dispatch(l, batch, n);
		fire_timers(l);
		run_deferred(l);
	}
	l->stop = false;
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
