/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_pipes.c - Reads a kernel's pipes; kernel_send.c writes them.
 *
 * Pid 1 of the cell or the warden made the pipes, and a process of the cell may hold the front's
 * ends too: they are checked when they arrive, and read and written so that no flag of a pipe can
 * block the daemon (base/foreign.h). A control line that is not complete yet costs at most
 * KERNEL_LINE_MAX, and much less when no execution runs; output is passed on as it arrives, and the
 * receiver bounds it.
 *
 * Order: a message is passed on after the output that was in the pipes before it. If the receiver
 * pauses the kernel meanwhile, the line waits, with everything behind it, and nothing is read: the
 * pipes fill up, and the kernel waits as it would for a slow terminal.
 *
 * Time: the cell pays for each turn (kernel_share.h). While it has to rest, its pipes are not read.
 */
#include "front/cell/kernel_pipes.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "front/cell/kernel_pipes_int.h"
#include "front/support/json_alloc.h"
#include "front/support/schema.h"

#define CHUNK 65536u
#define ROUND_MAX (1u << 20)          /* bytes of one stream per round */
#define TURN_NS (2 * CLOCK_NS_PER_MS) /* a turn ends after the control line that exceeds it */

/* Whether nothing may be read now. */
static bool stopped(const struct kernel_pipes *k)
{
	return (k->paused || k->resting) && !k->draining;
}

static void end_rest(struct kernel_pipes *k)
{
	timer_cancel(&k->rest);
	kernel_share_rested(&k->owing);
	k->resting = false;
}

void kernel_pipes_broken(struct kernel_pipes *k, const char *why, bool closed)
{
	if (k->over)
		return;
	k->over = true;
	end_rest(k);
	loop_del(&k->in);
	loop_del(&k->out);
	timer_cancel(&k->slow);
	buf_free(&k->line);
	buf_free(&k->pending);
	k->ops->broken(k, why, closed);
}

void kernel_pipes_shrink(struct buf *b)
{
	if (b->cap > 4 * CHUNK && b->len < CHUNK)
		buf_trim(b);
}

/* ---- the share of a cell ------------------------------------------------------------------- */

/* Removes the watches, and does not only clear their events: the loop would report the end of a
 * pipe that is not read again and again. */
static void watch_pipes(struct kernel_pipes *k)
{
	struct watch *all[] = { &k->out, &k->streams[0], &k->streams[1] };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (k->paused || k->resting)
			loop_del(all[i]);
		else if (r == 0 && !all[i]->loop && all[i]->fd >= 0 &&
			 (all[i] != &k->out || !k->over))
			r = loop_add(k->loop, all[i], NULL);
	}
	if (r < 0)
		kernel_pipes_broken(k, "the kernel's pipes could not be watched", false);
}

/*
 * The end of a line. Ends the turn if that was long: the kernel rests until the next round, or, if
 * its cell owes too much, until it does not.
 */
static void look_at_time(struct kernel_pipes *k)
{
	uint64_t took = k->turn_ns ? kernel_share_clock() - k->turn_ns : 0;

	if (took < TURN_NS || k->over || k->draining)
		return;
	uint64_t now_ns = clock_now_ns();

	kernel_share_charge(k->share, took, now_ns);
	k->turn_ns = 0;
	k->resting = true;
	timer_set(k->loop, &k->rest, now_ns + kernel_share_rest(k->share, &k->owing));
	watch_pipes(k);
}

/* A handler may have detached the kernel meanwhile. */
static void end_turn(struct kernel_pipes *k)
{
	if (k->turn_ns && !k->over)
		kernel_share_charge(k->share, kernel_share_clock() - k->turn_ns, clock_now_ns());
	k->turn_ns = 0;
}

/* ---- limits of an idle kernel -------------------------------------------------------------- */

static size_t left(const struct kernel_pipes *k)
{
	return k->line.len - k->taken + k->pending.len;
}

static void on_slow(struct timer *t)
{
	struct kernel_pipes *k = t->arg;

	if (k->deaf)
		kernel_pipes_broken(k, "the kernel closed its channel", false);
	else if (!k->paused && !k->resting && left(k) > KERNEL_IDLE_KEEP)
		kernel_pipes_broken(k, "the kernel left half a message, or does not read", false);
}

void kernel_pipes_check(struct kernel_pipes *k)
{
	if (k->over || k->deaf)
		return;
	if (!k->idle || k->paused || k->resting || left(k) <= KERNEL_IDLE_KEEP)
		timer_cancel(&k->slow);
	else if (left(k) > KERNEL_IDLE_MAX)
		kernel_pipes_broken(k, "the kernel left half a message, or does not read", false);
	else if (!k->slow.loop)
		timer_after(k->loop, &k->slow, KERNEL_SLOW_NS);
}

void kernel_idle(struct kernel_pipes *k, bool idle)
{
	if (k->idle && !idle)
		kernel_share_forgive(k->share, KERNEL_SHARE_GRANT_NS);
	k->idle = idle;
	kernel_pipes_check(k);
}

/* ---- output -------------------------------------------------------------------------------- */

/*
 * Read and pass on output until the pipe is empty or paused, at most *@budget bytes. An empty pipe
 * sets *@budget to 0.
 */
static void read_stream(struct kernel_pipes *k, enum kernel_stream s, size_t *budget)
{
	static char chunk[CHUNK];
	struct watch *w = &k->streams[s];

	while (*budget > 0 && w->fd >= 0 && !stopped(k)) {
		ssize_t n = foreign_read(w->fd, chunk, sizeof(chunk), &k->stalled_ns);

		if (n == -EAGAIN) {
			*budget = 0;
			return;
		}
		if (n <= 0) {
			loop_del(w);
			w->fd = fd_close(w->fd);
			if (n < 0) /* output is lost: the execution must not succeed */
				kernel_pipes_broken(k, "the kernel's output cannot be read", false);
			return;
		}
		*budget -= (size_t)n < *budget ? (size_t)n : *budget;
		k->ops->output(k, s, chunk, (size_t)n);
	}
}

static void on_stream(struct watch *w, uint32_t events)
{
	struct kernel_pipes *k = w->arg;
	size_t budget = CHUNK * 2;

	(void)events;
	read_stream(k, w == &k->streams[STREAM_STDOUT] ? STREAM_STDOUT : STREAM_STDERR, &budget);
}

/* ---- control messages ---------------------------------------------------------------------- */

static void one_line(struct kernel_pipes *k, const char *text, size_t len)
{
	json_t *m =
		schema_depth_ok(text, len, KERNEL_DEPTH_MAX) &&
				schema_values_ok(text, len, KERNEL_VALUES_MAX) ?
			json_alloc_load(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL) :
			NULL;
	const char *type = json_string_value(json_object_get(m, "type"));
	bool torn = k->joined;

	k->joined = false;
	if (type)
		k->ops->message(k, type, m);
	else if (!torn) /* half a line is never a message: its quotes are escaped */
		kernel_pipes_broken(k, "the kernel sent a line that is not a message", false);
	json_decref(m);
}

/* Pass on the output that was printed before the current line. Return: whether all of it was. */
static bool put_output_first(struct kernel_pipes *k)
{
	if (!k->held)
		k->ahead[0] = k->ahead[1] = ROUND_MAX;
	k->held = true;
	read_stream(k, STREAM_STDOUT, &k->ahead[0]);
	read_stream(k, STREAM_STDERR, &k->ahead[1]);
	if (k->over || stopped(k))
		return false;
	k->held = false;
	return true;
}

/* Handle all complete lines. A handler may detach the kernel: then k->over is set. */
static void take_lines(struct kernel_pipes *k)
{
	size_t begin = 0;

	while (!k->over && !stopped(k) && k->scanned < k->line.len) {
		const char *data = k->line.data;
		const char *nl = memchr(data + k->scanned, '\n', k->line.len - k->scanned);

		if (!nl) {
			k->scanned = k->line.len;
			break;
		}
		size_t end = (size_t)(nl - data);

		if (!put_output_first(k))
			break;
		k->scanned = k->taken = end + 1;
		if (end > begin)
			one_line(k, data + begin, end - begin);
		begin = end + 1;
		look_at_time(k);
	}
	k->taken = 0;
	if (k->over)
		return;
	buf_consume(&k->line, begin);
	k->scanned -= begin;
	kernel_pipes_shrink(&k->line);
	kernel_pipes_check(k);
}

static void read_control(struct kernel_pipes *k)
{
	static char chunk[CHUNK];
	size_t budget = ROUND_MAX;

	while (budget > 0 && !k->over && !stopped(k)) {
		ssize_t n = foreign_read(k->out.fd, chunk, sizeof(chunk), &k->stalled_ns);

		if (n == -EAGAIN)
			return;
		if (n == -ETIMEDOUT) {
			kernel_pipes_broken(k, "the kernel's channel blocks the daemon", false);
			return;
		}
		if (n <= 0) {
			kernel_pipes_broken(k, "the kernel closed its channel", true);
			return;
		}
		if (buf_append(&k->line, chunk, (size_t)n) < 0) {
			kernel_pipes_broken(k, "the kernel sent a line without an end", false);
			return;
		}
		budget -= (size_t)n < budget ? (size_t)n : budget;
		take_lines(k);
		if ((size_t)n < sizeof(chunk))
			return;
	}
}

static void on_control(struct watch *w, uint32_t events)
{
	struct kernel_pipes *k = w->arg;

	(void)events;
	k->turn_ns = kernel_share_clock();
	read_control(k);
	end_turn(k);
}

/* ---- pause and drain ----------------------------------------------------------------------- */

void kernel_pipes_drain(struct kernel_pipes *k)
{
	size_t budget[2] = { ROUND_MAX, ROUND_MAX };

	k->draining = true;
	if ((k->paused || k->resting) && !k->over) {
		take_lines(k);
		read_control(k);
	}
	read_stream(k, STREAM_STDOUT, &budget[0]);
	read_stream(k, STREAM_STDERR, &budget[1]);
	k->draining = false;
}

static void on_resume(struct deferred *d)
{
	struct kernel_pipes *k = d->arg;

	if (k->over || k->paused || k->resting)
		return;
	k->turn_ns = kernel_share_clock();
	take_lines(k);
	end_turn(k);
}

static void on_rested(struct timer *t)
{
	struct kernel_pipes *k = t->arg;

	end_rest(k);
	watch_pipes(k);
	on_resume(&k->resume);
}

bool kernel_pipes_wake(struct kernel_pipes *k)
{
	if (k->over || !k->resting || k->share->owed_ns > 2 * KERNEL_SHARE_BURST_NS)
		return false;
	end_rest(k);
	watch_pipes(k);
	if (!k->over)
		loop_defer(k->loop, &k->resume);
	return true;
}

void kernel_pipes_pause(struct kernel_pipes *k, bool pause)
{
	if (k->paused == pause)
		return;
	k->paused = pause;
	watch_pipes(k);
	if (!pause && !k->over)
		loop_defer(k->loop, &k->resume);
}

/* ---- life ---------------------------------------------------------------------------------- */

static int add(struct kernel_pipes *k, struct watch *w, int fd, uint32_t events,
	       void (*fn)(struct watch *, uint32_t), struct err *e)
{
	*w = (struct watch){ .fd = fd, .events = events, .fn = fn, .arg = k };
	if (foreign_check(fd, FOREIGN_PIPE) < 0)
		return err_say(e, -EPROTO, "the cell sent a descriptor that is not a pipe");
	return loop_add(k->loop, w, e);
}

int kernel_pipes_attach(struct kernel_pipes *k, struct loop *loop,
			const struct kernel_pipes_ops *ops, void *owner, const int fds[KERNEL_FDS],
			struct err *e)
{
	*k = (struct kernel_pipes){ .loop = loop, .ops = ops, .owner = owner, .idle = true };
	k->resume = (struct deferred){ .fn = on_resume, .arg = k };
	k->slow = (struct timer){ .fn = on_slow, .arg = k };
	k->rest = (struct timer){ .fn = on_rested, .arg = k };
	k->own.at_ns = clock_now_ns();
	k->share = &k->own;
	buf_init(&k->line, KERNEL_LINE_MAX);
	buf_init(&k->pending, KERNEL_PENDING_MAX);
	k->in.fd = fds[KERNEL_FD_IN];
	k->out.fd = fds[KERNEL_FD_OUT];
	k->streams[0].fd = fds[KERNEL_FD_STDOUT];
	k->streams[1].fd = fds[KERNEL_FD_STDERR];
	int r;

	if ((r = add(k, &k->in, fds[KERNEL_FD_IN], 0, kernel_send_ready, e)) < 0 ||
	    (r = add(k, &k->out, fds[KERNEL_FD_OUT], EPOLLIN, on_control, e)) < 0 ||
	    (r = add(k, &k->streams[0], fds[KERNEL_FD_STDOUT], EPOLLIN, on_stream, e)) < 0 ||
	    (r = add(k, &k->streams[1], fds[KERNEL_FD_STDERR], EPOLLIN, on_stream, e)) < 0)
		kernel_pipes_detach(k);
	return r;
}

void kernel_pipes_detach(struct kernel_pipes *k)
{
	struct watch *all[] = { &k->in, &k->out, &k->streams[0], &k->streams[1] };

	if (!k->loop)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		loop_del(all[i]);
		all[i]->fd = fd_close(all[i]->fd);
	}
	loop_undefer(k->loop, &k->resume);
	timer_cancel(&k->slow);
	end_rest(k);
	k->over = true;
	k->writing = NULL;
	k->scanned = k->taken = 0;
	buf_free(&k->line);
	buf_free(&k->pending);
}
