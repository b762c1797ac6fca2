/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_io.c - The streams of a command: pipes, or a terminal.
 *
 * No call blocks, whatever pid 1 does with copies of the descriptors that it may have kept
 * (base/foreign.h). Output is read in rounds, so that a flood of one command leaves time for
 * others, and not at all while its listener is congested; the pipe then fills up, and the program
 * waits. Input waits in a buffer until the program reads it. A terminal is one descriptor for both
 * ways, and it is closed only when the command has ended: closing the master hangs up, and a
 * program that has closed the other side (as cat does, just before it exits) would die of SIGHUP
 * instead of exiting with 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "front/sandbox/command.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/metrics.h"

#define READ_BYTES 65536u
#define ROUNDS 4u
#define PIPE_BYTES (256 << 10)
#define PIPE_MOST (1u << 20) /* no pipe of a guest holds more */
#define INPUT_STEP 65536u
#define SLOW_NS (2 * CLOCK_NS_PER_MS)
/* So that the terminals of a cell take at most a ninth of the daemon's time. */
#define REST_TIMES 8u
#define DRAIN_NS (100 * CLOCK_NS_PER_MS)
#define DRAIN_TIRED_NS (10 * CLOCK_NS_PER_MS) /* of a terminal in a cell whose terminals rest */
#define END_OF_INPUT "\x04"                   /* Ctrl-D, on a terminal */

static char chunk[READ_BYTES]; /* one thread uses it, and no function keeps a pointer into it */

/* ---- output -------------------------------------------------------------------------------- */

static void close_watch(struct watch *w)
{
	loop_del(w);
	w->fd = fd_close(w->fd);
}

/* The events of a stream that the loop should report in the present state. */
static uint32_t interest(const struct command *c, const struct watch *w)
{
	uint32_t events = c->paused ? 0 : EPOLLIN;

	if (c->pty && w == &c->out[0] && c->input.len > 0)
		events |= EPOLLOUT;
	/* A terminal that no process has open reports that all the time. Edge-triggered, it reports
	 * only that a process has opened it again. */
	if (c->deserted)
		events |= EPOLLET;
	return events;
}

static void set_interest(struct command *c)
{
	for (size_t i = 0; i < COMMAND_STREAMS; i++)
		if (c->out[i].fd >= 0 && c->out[i].loop)
			loop_mod(&c->out[i], interest(c, &c->out[i]));
}

static void set_deserted(struct command *c, bool yes)
{
	if (c->deserted == yes)
		return;
	c->deserted = yes;
	set_interest(c);
}

/*
 * A pipe made calls of the daemon wait: an attacker has taken over pid 1, which still holds the
 * pipe. The cell is given up.
 */
static void makes_us_wait(struct command *c)
{
	command_io_close(c);
	if (c->cell)
		cell_refuse(c->cell, "a pipe of it makes the daemon wait");
}

static void on_rested(struct timer *t)
{
	struct command *c = t->arg;

	if (c->out[0].fd >= 0 && !c->out[0].loop) {
		c->out[0].events = interest(c, &c->out[0]);
		(void)loop_add(c->sandboxes->loop, &c->out[0], NULL);
	}
}

/*
 * Whether the terminal has to rest, because it or another one of the cell was slow. If so, it is
 * not watched until the cell has made up for the time that it took.
 */
static bool rests(struct command *c)
{
	if (!c->pty || !c->cell || c->cell->rest_until_ns <= c->sandboxes->loop->now_ns)
		return false;
	loop_del(&c->out[0]);
	c->rest.fn = on_rested;
	c->rest.arg = c;
	timer_set(c->sandboxes->loop, &c->rest, c->cell->rest_until_ns);
	return true;
}

static void note_time(struct command *c, uint64_t began_ns)
{
	uint64_t now = clock_now_ns();

	if (c->pty && c->cell && now - began_ns > SLOW_NS)
		c->cell->rest_until_ns = now + REST_TIMES * (now - began_ns);
}

/*
 * The counter for the time that calls wait for the cell. It does not count for a terminal, which
 * can be slow with an honest peer, too (base/foreign.h), nor after the end of the cell, when no
 * peer is left to wait for.
 */
static uint64_t *cost(const struct command *c)
{
	static uint64_t none;

	none = 0;
	return c->cell && !c->pty ? &c->cell->stalled_ns : &none;
}

/*
 * Read once, up to @most bytes, and pass them on. 1: there may be more, 0: not now, -1: it has
 * ended.
 */
static int take(struct command *c, struct watch *w, size_t most)
{
	enum command_stream stream = w == &c->out[0] ? COMMAND_STDOUT : COMMAND_STDERR;
	uint64_t began_ns = c->pty ? clock_now_ns() : 0;
	ssize_t n =
		foreign_read(w->fd, chunk, most < sizeof(chunk) ? most : sizeof(chunk), cost(c));

	note_time(c, began_ns);
	if (n > 0) {
		c->bytes[stream] += (uint64_t)n;
		metric_add(M_OUTPUT_BYTES, (uint64_t)n);
		c->ops->output(c, stream, chunk, (size_t)n);
		set_deserted(c, false);
		return 1;
	}
	if (n == -EAGAIN)
		return 0;
	if (n == -ETIMEDOUT)
		makes_us_wait(c);
	else if (c->pty) /* EIO: no process has it open now; one may open it again */
		set_deserted(c, true);
	else
		close_watch(w);
	return -1;
}

static void on_output(struct command *c, struct watch *w, bool hung_up)
{
	for (unsigned int i = 0; i < ROUNDS && w->fd >= 0; i++) {
		if (take(c, w, sizeof(chunk)) != 1 || rests(c))
			break;
		/* After a hang-up no process writes any more: the rest is bounded, and a paused
		 * watch would be a busy loop. */
		if (!hung_up && c->phase == COMMAND_RUNNING && c->ops->congested &&
		    c->ops->congested(c)) {
			c->paused = true;
			set_interest(c);
			break;
		}
	}
}

void command_resume(struct command *c)
{
	if (!c->paused)
		return;
	c->paused = false;
	set_interest(c);
}

static void drain_one(struct command *c, struct watch *w)
{
	bool tired = c->cell && c->cell->rest_until_ns > c->sandboxes->loop->now_ns;
	uint64_t until_ns = clock_now_ns() + (tired ? DRAIN_TIRED_NS : DRAIN_NS);
	int left = 0;

	if (w->fd < 0)
		return;
	/* Other processes may go on writing: take the bytes that are there now, and no more than a
	 * pipe can hold. */
	if (c->pty || ioctl(w->fd, FIONREAD, &left) < 0 || left < 0)
		left = PIPE_MOST;
	while (left > 0 && w->fd >= 0) {
		uint64_t before = c->bytes[0] + c->bytes[1];

		if (take(c, w, (size_t)left) != 1 || (c->pty && clock_now_ns() > until_ns))
			break;
		left -= (int)(c->bytes[0] + c->bytes[1] - before);
	}
}

void command_io_drain(struct command *c)
{
	for (size_t i = 0; i < COMMAND_STREAMS; i++)
		drain_one(c, &c->out[i]);
	command_io_close(c);
}

void command_io_close(struct command *c)
{
	timer_cancel(&c->rest);
	close_watch(&c->in);
	for (size_t i = 0; i < COMMAND_STREAMS; i++)
		close_watch(&c->out[i]);
	buf_free(&c->input);
}

/* ---- input --------------------------------------------------------------------------------- */

static int input_fd(const struct command *c)
{
	return c->pty ? c->out[0].fd : c->in.fd;
}

bool command_input_open(const struct command *c)
{
	return !c->input_end && (c->pid == 0 ? c->phase < COMMAND_RUNNING : input_fd(c) >= 0);
}

/* Write as much as fits now; the loop reports when more fits. */
static void flush_input(struct command *c)
{
	int fd = input_fd(c);
	size_t at = 0;

	while (fd >= 0 && at < c->input.len && !rests(c)) {
		size_t left = c->input.len - at;
		uint64_t began_ns = c->pty ? clock_now_ns() : 0;
		ssize_t n = foreign_write(fd, c->input.data + at,
					  left < INPUT_STEP ? left : INPUT_STEP, cost(c));

		note_time(c, began_ns);
		if (n == -EAGAIN)
			break;
		if (n == -ETIMEDOUT)
			makes_us_wait(c);
		if (n <= 0) {
			/* The program does not read any more. The end of a terminal shows when it
			 * is read. */
			at = c->input.len;
			c->input_end = true;
			break;
		}
		at += (size_t)n;
	}
	buf_consume(&c->input, at);
	if (c->pty)
		set_interest(c);
	else if (c->input.len == 0 && c->input_end)
		close_watch(&c->in);
	else if (c->in.loop)
		loop_mod(&c->in, c->input.len ? EPOLLOUT : 0);
	if (at > 0 && c->input.len == 0 && c->ops->input_ready)
		c->ops->input_ready(c);
}

static void on_in(struct watch *w, uint32_t events)
{
	struct command *c = w->arg;

	if (events & EPOLLERR) { /* no process has the other end any more */
		c->input_end = true;
		buf_clear(&c->input);
		close_watch(w);
		return;
	}
	flush_input(c);
}

int command_input(struct command *c, const void *data, size_t len)
{
	if (!command_input_open(c))
		return -EPIPE;
	if (len > COMMAND_INPUT_MAX || c->input.len + len > COMMAND_INPUT_MAX)
		return -EAGAIN;
	if (buf_append(&c->input, data, len) < 0)
		return -ENOMEM;
	if (c->pid)
		flush_input(c);
	return 0;
}

bool command_preset(struct command *c, const void *data, size_t len)
{
	buf_init(&c->input, len);
	return buf_append(&c->input, data, len) == 0;
}

void command_input_end(struct command *c)
{
	if (c->pty) {
		(void)command_input(c, END_OF_INPUT, 1);
		return;
	}
	c->input_end = true;
	if (c->pid)
		flush_input(c);
}

void command_resize(struct command *c, uint16_t rows, uint16_t cols)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };

	c->rows = rows;
	c->cols = cols;
	if (c->pty && c->out[0].fd >= 0)
		(void)ioctl(c->out[0].fd, TIOCSWINSZ, &size);
}

/* ---- start --------------------------------------------------------------------------------- */

static void on_out(struct watch *w, uint32_t events)
{
	struct command *c = w->arg;

	if (rests(c))
		return;
	if (c->pty && events & EPOLLOUT)
		flush_input(c);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		on_output(c, w, events & (EPOLLHUP | EPOLLERR));
}

static int add(struct command *c, struct watch *w, int *fd, uint32_t events,
	       void (*fn)(struct watch *w, uint32_t events))
{
	*w = (struct watch){ .fd = *fd, .events = events, .fn = fn, .arg = c };
	*fd = -1;
	return loop_add(c->sandboxes->loop, w, NULL);
}

int command_io_begin(struct command *c, int *fds, size_t n_fds)
{
	if (n_fds != (c->pty ? 1u : 3u))
		return -EPROTO;
	if (c->input.max < COMMAND_INPUT_MAX)
		c->input.max = COMMAND_INPUT_MAX;
	if (c->pty)
		return add(c, &c->out[0], &fds[0], EPOLLIN, on_out);
	int r = add(c, &c->in, &fds[0], EPOLLOUT, on_in);

	for (size_t i = 0; r >= 0 && i < COMMAND_STREAMS; i++) {
		r = add(c, &c->out[i], &fds[i + 1], EPOLLIN, on_out);
		/* A larger pipe means fewer context switches for a program that writes much. The
		 * call fails, without harm, if the user of the pipe may not have so much. */
		(void)fcntl(c->out[i].fd, F_SETPIPE_SZ, PIPE_BYTES);
	}
	return r;
}
