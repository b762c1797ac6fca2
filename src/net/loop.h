/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - One thread, one epoll: descriptors, deadlines, and work for the end of the round.
 *
 * Everything that can happen is a descriptor (sockets, pipes, pidfds, a signalfd) or a timer. The
 * structs are the caller's and live in its own objects; the loop allocates nothing per event. A
 * watch or timer may be removed, and its memory freed, from inside any callback, its own included:
 * its events of the same round are dropped.
 */
#ifndef CAISSON_NET_LOOP_H
#define CAISSON_NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct loop;

struct watch {
	int fd;
	uint32_t events; /* requested: EPOLL* */
	void (*fn)(struct watch *w, uint32_t events);
	void *arg;
	struct loop *loop; /* NULL when not added */
};

struct timer {
	uint64_t at_ns; /* clock_now_ns() scale */
	void (*fn)(struct timer *t);
	void *arg;
	struct loop *loop; /* NULL when not set */
	size_t index;      /* in the loop's heap */
};

/* Called once at the end of the current round, in the order of loop_defer(). */
struct deferred {
	void (*fn)(struct deferred *d);
	void *arg;
	struct deferred *next;
	bool queued;
};

struct loop {
	int epoll;
	bool stop, firing;
	uint64_t now_ns; /* when this round began: precise enough for deadlines */
	struct timer **heap;
	size_t n_timers, cap_timers;
	struct deferred *deferred, **deferred_tail; /* for the end of this round */
	struct deferred *running;                   /* the rest of it while it runs */
	void *batch; /* the events of this round, so that loop_del() can blank them */
	int n_batch;
};

int loop_init(struct loop *l, struct err *e);

/* loop_free() - Watches must be gone by then; timers that are still set are forgotten. */
void loop_free(struct loop *l);

/*
 * loop_add() - w->fd, w->events, w->fn (and arg) are filled by the caller. Level-triggered: an
 * event that is not handled comes again. EPOLLERR and EPOLLHUP always come.
 */
int loop_add(struct loop *l, struct watch *w, struct err *e);
void loop_mod(struct watch *w, uint32_t events);
/* loop_del() - Idempotent. Comes before the descriptor is closed, which it does not do. */
void loop_del(struct watch *w);

/* timer_set() - (Re)arm; t->fn is filled by the caller. Fires once. Memory failure aborts. */
void timer_set(struct loop *l, struct timer *t, uint64_t at_ns);
/* timer_after() - The same, for @ns after the beginning of this round. */
void timer_after(struct loop *l, struct timer *t, uint64_t ns);
void timer_cancel(struct timer *t); /* idempotent */

/*
 * loop_defer() - No-op when already queued. From inside deferred work: for the next round, at once.
 */
void loop_defer(struct loop *l, struct deferred *d);
void loop_undefer(struct loop *l, struct deferred *d); /* idempotent */
/* loop_free_later() - free(@p), in which @d is, at the end of the round. */
void loop_free_later(struct loop *l, struct deferred *d, void *p);

/*
 * loop_run() - Until loop_stop(); the round in which that is called is completed. Can be run again.
 */
int loop_run(struct loop *l, struct err *e);
void loop_stop(struct loop *l);

#endif
