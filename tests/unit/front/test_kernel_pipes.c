/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel_pipes.c - The front's time that control lines of one cell take is bounded. */
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "base/fd.h"
#include "front/cell/kernel_pipes.h"

#define LINE "{\"type\":\"x\"}\n"
#define LONG_NS (4 * CLOCK_NS_PER_MS) /* of processor time: more than a turn has */

struct kernel_of_test {
	struct kernel_pipes k;
	struct loop loop;
	int guest[KERNEL_FDS];              /* its own ends */
	size_t messages, output, at_output; /* at_output: messages when output came */
	uint64_t cost_ns;                   /* of each message */
	struct timer stop;
};

static uint64_t processor_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

static void on_message(struct kernel_pipes *k, const char *type, json_t *m)
{
	struct kernel_of_test *t = k->owner;
	uint64_t until_ns = processor_ns() + t->cost_ns;

	(void)type;
	(void)m;
	t->messages++;
	while (t->cost_ns && processor_ns() < until_ns)
		;
}

static void on_output(struct kernel_pipes *k, enum kernel_stream s, const char *data, size_t len)
{
	struct kernel_of_test *t = k->owner;

	(void)s;
	(void)data;
	t->output += len;
	t->at_output = t->messages;
}

static void on_broken(struct kernel_pipes *k, const char *why, bool closed)
{
	(void)k;
	(void)closed;
	fail_msg("%s", why);
}

static const struct kernel_pipes_ops ops = { .message = on_message,
					     .output = on_output,
					     .broken = on_broken };

static void on_stop(struct timer *s)
{
	loop_stop(s->loop ? s->loop : s->arg);
}

/* Let the loop run for one round that does not wait. */
static void one_round(struct kernel_of_test *t)
{
	t->stop = (struct timer){ .fn = on_stop, .arg = &t->loop };
	timer_set(&t->loop, &t->stop, 1);
	assert_int_equal(loop_run(&t->loop, NULL), 0);
}

static void begin(struct kernel_of_test *t, uint64_t cost_ns)
{
	int ends[KERNEL_FDS], p[2];

	*t = (struct kernel_of_test){ .cost_ns = cost_ns };
	assert_int_equal(loop_init(&t->loop, NULL), 0);
	for (size_t i = 0; i < KERNEL_FDS; i++) {
		assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
		ends[i] = p[i == KERNEL_FD_IN];
		t->guest[i] = p[i != KERNEL_FD_IN];
	}
	assert_int_equal(kernel_pipes_attach(&t->k, &t->loop, &ops, t, ends, NULL), 0);
	kernel_idle(&t->k, false);
}

static void end(struct kernel_of_test *t)
{
	kernel_pipes_detach(&t->k);
	loop_free(&t->loop);
	for (size_t i = 0; i < KERNEL_FDS; i++)
		fd_close(t->guest[i]);
}

static void put(struct kernel_of_test *t, int end, const char *text, size_t times)
{
	for (size_t i = 0; i < times; i++)
		assert_int_equal(write(t->guest[end], text, strlen(text)), (ssize_t)strlen(text));
}

TEST(cheap_lines_are_one_turn)
{
	struct kernel_of_test t;

	begin(&t, 0);
	put(&t, KERNEL_FD_OUT, LINE, 10);
	one_round(&t);
	assert_true(t.messages == 10 || t.k.resting); /* a machine may be very slow */
	end(&t);
}

/* Other events of the loop come between two dear lines. All of them are handled, in order. */
TEST(a_dear_line_ends_the_turn)
{
	struct kernel_of_test t;

	begin(&t, LONG_NS);
	put(&t, KERNEL_FD_OUT, LINE, 5);
	for (size_t n = 1; n <= 5; n++) {
		one_round(&t);
		assert_int_equal(t.messages, n);
		if (n == 2)
			put(&t, KERNEL_FD_STDOUT, "out", 1);
	}
	assert_int_equal(t.output, 3);
	assert_int_equal(t.at_output, 2); /* before the line that is handled after it */
	assert_false(t.k.owing);
	end(&t);
}

/* A cell that owes more than a burst is not read; another one is. */
TEST(a_cell_beyond_its_share_rests)
{
	struct kernel_of_test t, other;

	begin(&t, LONG_NS);
	begin(&other, LONG_NS);
	t.k.share->owed_ns = 2 * KERNEL_SHARE_BURST_NS; /* the longest rest */
	t.k.share->at_ns = clock_now_ns();
	put(&t, KERNEL_FD_OUT, LINE, 5);
	put(&t, KERNEL_FD_STDOUT, "out", 1);
	put(&other, KERNEL_FD_OUT, LINE, 5);
	for (size_t n = 0; n < 5; n++) {
		one_round(&t);
		one_round(&other);
	}
	assert_int_equal(t.messages, 1);
	assert_true(t.k.resting && t.k.owing && !t.k.out.loop && !t.k.streams[0].loop);
	assert_true(t.k.rest.at_ns > clock_now_ns());
	assert_int_equal(other.messages, 5);
	kernel_pipes_pause(&t.k, true); /* neither ends the rest */
	kernel_pipes_pause(&t.k, false);
	one_round(&t);
	assert_int_equal(t.messages, 1);
	kernel_pipes_drain(&t.k); /* the kernel is over: nothing is lost */
	assert_int_equal(t.messages, 5);
	end(&t);
	end(&other);
}

/* Kernels of a cell have one share, and each execution is forgiven the lines that it has to send.
 */
TEST(kernels_of_a_cell_have_one_share)
{
	struct kernel_of_test a, b;
	struct kernel_share share = { .at_ns = clock_now_ns() };

	begin(&a, LONG_NS);
	begin(&b, LONG_NS);
	a.k.share = &share;
	b.k.share = &share;
	put(&a, KERNEL_FD_OUT, LINE, 1);
	one_round(&a);
	assert_true(share.owed_ns >= LONG_NS);
	share.owed_ns = 2 * KERNEL_SHARE_BURST_NS;
	put(&b, KERNEL_FD_OUT, LINE, 2);
	one_round(&b);
	assert_true(b.k.owing);
	share.owed_ns = KERNEL_SHARE_GRANT_NS + 5;
	kernel_idle(&a.k, true);
	kernel_idle(&a.k, false);
	assert_int_equal(share.owed_ns, 5);
	end(&a);
	end(&b);
}
