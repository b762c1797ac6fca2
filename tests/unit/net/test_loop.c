/* SPDX-License-Identifier: Apache-2.0 */
/* test_loop.c - The event loop: order, removal inside callbacks, finite rounds, no early timers. */
#include "net/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"

static struct loop loop;

static int setup(void **state)
{
	(void)state;
	return loop_init(&loop, NULL);
}

static int teardown(void **state)
{
	(void)state;
	loop_free(&loop);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void stop_timer(struct timer *t)
{
	loop_stop(t->loop ? t->loop : t->arg);
}

/* Run the loop for about @ms milliseconds. */
static void run_for(uint64_t ms)
{
	struct timer t = { .fn = stop_timer, .arg = &loop };

	timer_set(&loop, &t, clock_now_ns() + ms * CLOCK_NS_PER_MS);
	assert_int_equal(loop_run(&loop, NULL), 0);
	timer_cancel(&t);
}

/* Several rounds may be needed, and on a busy machine any of them may be long. */
#define RUN_UNTIL(condition)                                                                       \
	for (uint64_t end_ = clock_now_ns() + 60 * CLOCK_NS_PER_S; !(condition);) {                \
		assert_true(clock_now_ns() < end_);                                                \
		run_for(2);                                                                        \
	}

/* A watched eventfd that is readable from the start. */
struct ready {
	struct watch w;
	struct ready *victim; /* removed, with its memory, by the callback */
	int *calls;
};

static struct ready *ready_new(void (*fn)(struct watch *, uint32_t), int *calls)
{
	struct ready *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->w = (struct watch){
		.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), .events = EPOLLIN, .fn = fn, .arg = r
	};
	r->calls = calls;
	assert_true(r->w.fd >= 0);
	assert_int_equal(loop_add(&loop, &r->w, NULL), 0);
	return r;
}

static void ready_free(struct ready *r)
{
	loop_del(&r->w);
	loop_del(&r->w);
	fd_close(r->w.fd);
	free(r);
}

static void remove_victim(struct watch *w, uint32_t events)
{
	struct ready *r = w->arg, *victim = r->victim;

	assert_int_equal(events, EPOLLIN);
	++*r->calls;
	ready_free(r);
	if (victim != r)
		ready_free(victim);
}

/* Two are ready in one round; the first to be called frees both. */
TEST(removal_of_the_other)
{
	int calls = 0;
	struct ready *a = ready_new(remove_victim, &calls), *b = ready_new(remove_victim, &calls);

	a->victim = b;
	b->victim = a;
	run_for(5);
	assert_int_equal(calls, 1);
}

TEST(removal_of_itself)
{
	int calls = 0;
	struct ready *a = ready_new(remove_victim, &calls);

	a->victim = a;
	run_for(5);
	assert_int_equal(calls, 1);
}

/* The memory of a removed watch is used for a new one in the same round: it gets no old event. */
static struct ready *reused;

static void replace_other(struct watch *w, uint32_t events)
{
	struct ready *r = w->arg, *other = r->victim;
	uint64_t value;

	(void)events;
	++*r->calls;
	if (!other)
		return;
	other->victim = NULL;
	r->victim = NULL;
	loop_del(&other->w);
	assert_int_equal(read(other->w.fd, &value, sizeof(value)), sizeof(value));
	assert_int_equal(loop_add(&loop, &other->w, NULL), 0);
	reused = other;
	loop_del(&r->w);
}

TEST(readded_watch_gets_no_old_event)
{
	int calls = 0;
	struct ready *a = ready_new(replace_other, &calls), *b = ready_new(replace_other, &calls);

	a->victim = b;
	b->victim = a;
	run_for(5);
	assert_int_equal(calls, 1);
	assert_non_null(reused);
	ready_free(a);
	ready_free(b);
}

static void silence_other(struct watch *w, uint32_t events)
{
	struct ready *r = w->arg;

	(void)events;
	++*r->calls;
	loop_mod(&r->victim->w, 0);
	loop_mod(w, 0);
}

/* An event that is no longer wanted is not reported, although the kernel had it before. */
TEST(mod_holds_within_the_round)
{
	int calls = 0;
	struct ready *a = ready_new(silence_other, &calls), *b = ready_new(silence_other, &calls);

	a->victim = b;
	b->victim = a;
	run_for(5);
	assert_int_equal(calls, 1);
	loop_mod(&a->w, EPOLLIN);
	loop_mod(&b->w, EPOLLIN);
	run_for(5);
	assert_int_equal(calls, 2);
	ready_free(a);
	ready_free(b);
}

static void hang_up(struct watch *w, uint32_t events)
{
	*(uint32_t *)w->arg = events;
	loop_del(w);
}

TEST(hang_up_comes_unasked)
{
	int p[2];
	uint32_t seen = 0;

	assert_int_equal(pipe(p), 0);
	struct watch w = { .fd = p[0], .fn = hang_up, .arg = &seen };

	assert_int_equal(loop_add(&loop, &w, NULL), 0);
	fd_close(p[1]);
	run_for(5);
	assert_int_equal(seen, EPOLLHUP);
	assert_null(w.loop);
	fd_close(p[0]);
}

TEST(add_errors)
{
	struct err e = { 0 };
	struct watch w = { .fd = -1, .events = EPOLLIN };

	assert_int_equal(loop_add(&loop, &w, &e), -EBADF);
	assert_string_equal(e.msg, "watch descriptor -1: Bad file descriptor");
	assert_null(w.loop);
	loop_del(&w);
	loop_mod(&w, EPOLLOUT);
	assert_int_equal(w.events, EPOLLOUT);
}

static void count_once(struct watch *w, uint32_t events)
{
	struct ready *r = w->arg;

	(void)events;
	++*r->calls;
	ready_free(r);
}

/* More than one batch of descriptors: all are served. */
TEST(many_watches)
{
	volatile int calls = 0; /* changed through a pointer, by the loop */

	for (int i = 0; i < 700; i++)
		(void)ready_new(count_once, (void *)&calls);
	RUN_UNTIL(calls >= 700);
	run_for(2);
	assert_int_equal(calls, 700);
}

/* Timers against a model: a few thousand, set, moved and cancelled at random. */
#define TIMERS 4000

static struct timer timers[TIMERS];
static int fired[TIMERS];
static uint64_t last_at;

static void model_timer(struct timer *t)
{
	assert_null(t->loop);
	assert_true(clock_now_ns() >= t->at_ns);
	assert_true(t->at_ns >= last_at);
	last_at = t->at_ns;
	fired[t - timers]++;
}

TEST(timers_in_order_and_never_early)
{
	static bool set[TIMERS];
	uint64_t now = clock_now_ns();

	srandom(3);
	for (size_t i = 0; i < 4 * TIMERS; i++) {
		size_t k = (size_t)random() % TIMERS;

		timers[k].fn = model_timer;
		if (random() % 4 == 0) {
			timer_cancel(&timers[k]);
			set[k] = false;
		} else {
			timer_set(&loop, &timers[k], now + (uint64_t)(random() % 30000000));
			set[k] = true;
		}
	}
	RUN_UNTIL(loop.n_timers == 0);
	for (size_t i = 0; i < TIMERS; i++)
		assert_int_equal(fired[i], set[i]);
	assert_int_equal(loop.n_timers, 0);
}

TEST(timers_are_cheap)
{
	static struct timer many[100000];
	uint64_t start = clock_now_ns();

	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < ARRAY_SIZE(many); i++)
			timer_set(&loop, &many[i],
				  start + (i * 7919) % 1000003 + CLOCK_NS_PER_S * 60);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		timer_cancel(&many[i]);
	assert_int_equal(loop.n_timers, 0);
	/* A quadratic heap takes minutes. */
	assert_true(clock_now_ns() - start < 30 * CLOCK_NS_PER_S);
}

/* The last part of a millisecond is slept through, not spun through. */
TEST(waits_are_rounded_up)
{
	struct timespec a, b;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a), 0);
	for (int i = 0; i < 50; i++) {
		struct timer t = { .fn = stop_timer, .arg = &loop };

		timer_set(&loop, &t, clock_now_ns() + CLOCK_NS_PER_MS - 50000);
		assert_int_equal(loop_run(&loop, NULL), 0);
	}
	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b), 0);
	int64_t used = (b.tv_sec - a.tv_sec) * 1000000000 + (b.tv_nsec - a.tv_nsec);

	assert_true(used < (int64_t)(25 * CLOCK_NS_PER_MS));
}

static int rearmed;

static void rearm_in_the_past(struct timer *t)
{
	rearmed++;
	timer_set(&loop, t, 0);
}

/* A timer that is always due, and work that always defers itself, starve no other event. */
static void defer_again(struct deferred *d)
{
	++*(int *)d->arg;
	loop_defer(&loop, d);
}

TEST(rounds_are_finite)
{
	struct timer greedy = { .fn = rearm_in_the_past };
	int deferrals = 0, calls = 0;
	struct deferred again = { .fn = defer_again, .arg = &deferrals };

	timer_set(&loop, &greedy, 0);
	loop_defer(&loop, &again);
	(void)ready_new(count_once, &calls);
	RUN_UNTIL(rearmed > 3 && deferrals > 3); /* the timer of run_for() has its turn, too */
	assert_int_equal(calls, 1);
	timer_cancel(&greedy);
	loop_undefer(&loop, &again);
	assert_false(again.queued);
}

static struct timer *cancelled;
static int timer_calls;

static void cancel_other(struct timer *t)
{
	timer_calls++;
	timer_cancel(cancelled == t ? t->arg : cancelled);
	free(cancelled == t ? t->arg : cancelled);
	free(t);
}

/* Two are due in one round; the first to be called frees both. */
TEST(timer_cancels_the_other)
{
	struct timer *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));

	assert_true(a && b);
	*a = (struct timer){ .fn = cancel_other, .arg = b };
	*b = (struct timer){ .fn = cancel_other, .arg = a };
	cancelled = a;
	timer_set(&loop, a, 1);
	timer_set(&loop, b, 1);
	run_for(5);
	assert_int_equal(timer_calls, 1);
}

TEST(far_timers)
{
	struct timer far[] = { { .fn = model_timer }, { .fn = model_timer } };

	timer_set(&loop, &far[0], UINT64_MAX);
	timer_set(&loop, &far[1], clock_now_ns() + UINT64_C(400) * 86400 * CLOCK_NS_PER_S);
	run_for(5);
	assert_non_null(far[0].loop);
	timer_cancel(&far[0]);
	timer_cancel(&far[0]);
	assert_ptr_equal(far[1].loop, &loop);
	/* A timer that is still set when the loop goes can be cancelled later. */
	loop_free(&loop);
	timer_cancel(&far[1]);
	assert_int_equal(loop_init(&loop, NULL), 0);
}

TEST(timer_moves_between_loops)
{
	struct loop other;
	struct timer t = { .fn = stop_timer };

	assert_int_equal(loop_init(&other, NULL), 0);
	timer_set(&loop, &t, 1);
	t.arg = &other;
	timer_set(&other, &t, 1);
	assert_int_equal(loop.n_timers, 0);
	assert_int_equal(loop_run(&other, NULL), 0);
	loop_free(&other);
}

/* Deferred work writes its letter. */
static char letters[32];
static size_t n_letters;

static void letter(struct deferred *d)
{
	assert_false(d->queued);
	letters[n_letters++] = *(const char *)d->arg;
	letters[n_letters] = '\0';
}

static struct deferred work[] = {
	{ .fn = letter, .arg = (void *)(uintptr_t) "a" },
	{ .fn = letter, .arg = (void *)(uintptr_t) "b" },
	{ .fn = letter, .arg = (void *)(uintptr_t) "c" },
	{ .fn = letter, .arg = (void *)(uintptr_t) "d" },
};

static void check_letters(const char *want)
{
	RUN_UNTIL(n_letters >= strlen(want));
	run_for(2);
	assert_string_equal(letters, want);
	n_letters = 0;
	letters[0] = '\0';
}

static void drop_c_add_a(struct deferred *d)
{
	(void)d;
	loop_undefer(&loop, &work[2]);
	loop_defer(&loop, &work[0]);
}

TEST(deferred_order_and_removal)
{
	struct deferred change = { .fn = drop_c_add_a };

	for (size_t i = 0; i < 4; i++)
		loop_defer(&loop, &work[i]);
	loop_defer(&loop, &work[0]); /* already there */
	check_letters("abcd");
	check_letters("");

	/* Each one out of four, and adding after the last was removed. */
	static const char *const rest[] = { "bcda", "acdb", "abdc", "abcd" };

	for (size_t k = 0; k < 4; k++) {
		for (size_t i = 0; i < 4; i++)
			loop_defer(&loop, &work[i]);
		loop_undefer(&loop, &work[k]);
		loop_undefer(&loop, &work[k]);
		loop_defer(&loop, &work[k]);
		check_letters(rest[k]);
	}
	loop_defer(&loop, &change);
	loop_defer(&loop, &work[1]);
	loop_defer(&loop, &work[2]);
	loop_defer(&loop, &work[3]);
	check_letters("bda");
}

static void on_signal(int signo)
{
	(void)signo;
}

TEST(interrupted_wait)
{
	struct sigaction old, act = { .sa_handler = on_signal }; /* no SA_RESTART */
	struct itimerval every = { { 0, 2000 }, { 0, 2000 } }, off = { 0 };
	uint64_t start = clock_now_ns();

	assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	run_for(30);
	assert_int_equal(setitimer(ITIMER_REAL, &off, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	assert_true(clock_now_ns() - start >= 30 * CLOCK_NS_PER_MS);
}

TEST(stop_before_run)
{
	int calls = 0;

	(void)ready_new(count_once, &calls);
	loop_stop(&loop);
	assert_int_equal(loop_run(&loop, NULL), 0);
	assert_int_equal(calls, 0);
	run_for(2);
	assert_int_equal(calls, 1);
}

TEST(broken_epoll_is_an_error)
{
	struct err e = { 0 };

	loop.epoll = fd_close(loop.epoll);
	assert_int_equal(loop_run(&loop, &e), -EBADF);
	assert_string_equal(e.msg, "wait for events: Bad file descriptor");
}
