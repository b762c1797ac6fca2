/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_stdio.c - A server that is a program: a message per line on its input and output, text for
 * people on stderr.
 *
 * Messages that it does not read wait here, up to a limit. Its output is read in shares, so that a
 * flood of one server does not keep the others waiting. Its stderr goes to the log, a few lines a
 * second.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "bridge/bridge_log.h"
#include "bridge/child.h"
#include "bridge/config.h"
#include "bridge/upstream.h"
#include "client/lines.h"
#include "net/loop.h"

#define SHARE (256u << 10)      /* bytes read of one server before the others */
#define UNREAD_MAX (128u << 20) /* bytes that it has not read */
#define SILENCE_NS CLOCK_NS_PER_S
#define CHATTER_LINE 1024u /* of stderr */
#define CHATTER_PER_SECOND 10u
#define CHATTER_BURST 100u

struct stdio_wire {
	struct wire wire;
	struct child *child; /* NULL: it has ended */
	struct watch in, out, err;
	struct buf unread;
	size_t written; /* of it */
	struct lines lines, chatter;
	unsigned int words; /* lines of stderr that may still be logged */
	uint64_t words_at, left_out;
	struct timer silence; /* it closed its output */
};

/* ---- the end ------------------------------------------------------------------------------- */

static void stop(struct watch *w)
{
	loop_del(w);
	w->fd = fd_close(w->fd);
}

static void bury(struct deferred *d)
{
	struct stdio_wire *w = d->arg;

	buf_free(&w->unread);
	lines_free(&w->lines);
	lines_free(&w->chatter);
	free(w);
}

static void close_wire(struct wire *wire)
{
	struct stdio_wire *w = (struct stdio_wire *)wire;

	timer_cancel(&w->silence);
	stop(&w->in);
	stop(&w->out);
	stop(&w->err);
	if (w->child)
		child_end(w->child);
	wire_bury(wire, bury);
}

/* ---- stderr -------------------------------------------------------------------------------- */

static int on_words(void *arg, char *text, size_t len)
{
	struct stdio_wire *w = arg;
	uint64_t now = clock_now_ns(),
		 more = (now - w->words_at) / CLOCK_NS_PER_S * CHATTER_PER_SECOND;

	if (more > 0) {
		w->words = w->words + more > CHATTER_BURST ? CHATTER_BURST :
							     w->words + (unsigned int)more;
		w->words_at = now;
	}
	if (w->words == 0) {
		w->left_out++;
		return 0;
	}
	if (w->left_out > 0) {
		log_text(LOG_WARNING, "mcp_server_stderr", w->wire.up->config->name,
			 "%" PRIu64 " lines were left out", w->left_out);
		w->left_out = 0;
	}
	w->words--;
	log_bytes(LOG_INFO, "mcp_server_stderr", w->wire.up->config->name, text, len);
	return 0;
}

static int on_long_words(void *arg, const struct lines *l)
{
	char text[] = "(a line of more than 1 KiB)";

	(void)l;
	return on_words(arg, text, strlen(text));
}

static void on_err(struct watch *watch, uint32_t events)
{
	struct stdio_wire *w = watch->arg;
	char bytes[16384];
	ssize_t n = read(watch->fd, bytes, sizeof(bytes));

	(void)events;
	if (n > 0)
		(void)lines_feed(&w->chatter, bytes, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		stop(watch);
}

/* ---- stdout -------------------------------------------------------------------------------- */

static int on_line(void *arg, char *text, size_t len)
{
	struct stdio_wire *w = arg;

	answers_message(w->wire.up, text, len);
	return w->wire.dead;
}

/* Only the call that the line answers fails. */
static int on_long(void *arg, const struct lines *l)
{
	struct stdio_wire *w = arg;
	const struct wire_failure f = { .message = "sent a message of more than 64 MiB",
					.too_large = true };

	answers_failure(w->wire.up, lines_id(l), &f);
	return w->wire.dead;
}

/* Read up to @most bytes. False: at the end, or when the wire is closed. */
static bool drain(struct stdio_wire *w, size_t most)
{
	static char bytes[SHARE];

	for (size_t done = 0; done < most;) {
		ssize_t n = TEMP_FAILURE_RETRY(read(w->out.fd, bytes, sizeof(bytes)));

		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0 || lines_feed(&w->lines, bytes, (size_t)n) != 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static void on_silence(struct timer *t)
{
	struct stdio_wire *w = t->arg;

	wire_over(&w->wire, "closed its output");
}

static void on_out(struct watch *watch, uint32_t events)
{
	struct stdio_wire *w = watch->arg;

	(void)events;
	if (drain(w, SHARE))
		return;
	if (w->wire.dead)
		return;
	stop(&w->out);
	/* Its exit status says more than a closed output, if it comes soon. */
	w->silence = (struct timer){ .fn = on_silence, .arg = w };
	timer_set(w->wire.up->base.loop, &w->silence, clock_now_ns() + SILENCE_NS);
}

static void on_exit_(struct child *c, const char *how)
{
	struct stdio_wire *w = c->arg;

	w->child = NULL;
	/* Its last output is in the pipe: a pipe holds no more than this. */
	if (w->out.fd >= 0)
		(void)drain(w, 2 * SHARE + (1u << 20));
	if (!w->wire.dead && w->err.fd >= 0)
		on_err(&w->err, 0);
	wire_over(&w->wire, how);
}

/* ---- stdin --------------------------------------------------------------------------------- */

static void flush(struct stdio_wire *w)
{
	while (w->written < w->unread.len) {
		ssize_t n = TEMP_FAILURE_RETRY(
			write(w->in.fd, w->unread.data + w->written, w->unread.len - w->written));

		if (n < 0 && errno != EAGAIN) {
			/* It reads no more; its end is noticed elsewhere. */
			stop(&w->in);
			return;
		}
		if (n < 0)
			break;
		w->written += (size_t)n;
	}
	if (w->written == w->unread.len) {
		if (w->unread.cap > SHARE)
			buf_free(&w->unread);
		buf_clear(&w->unread);
		w->written = 0;
		loop_mod(&w->in, 0);
	} else {
		loop_mod(&w->in, EPOLLOUT);
	}
}

static void on_in(struct watch *watch, uint32_t events)
{
	struct stdio_wire *w = watch->arg;

	if (events & EPOLLOUT)
		flush(w);
	else
		stop(watch);
}

static int send_message(struct wire *wire, const struct wire_message *m, struct err *e)
{
	struct stdio_wire *w = (struct stdio_wire *)wire;

	if (w->in.fd < 0)
		return err_say(e, -EPIPE, "does not read any more");
	if (w->unread.len + m->len + 1 > UNREAD_MAX)
		return err_say(e, -EBUSY, "does not read what it is sent");
	if (w->written > 0) {
		buf_consume(&w->unread, w->written);
		w->written = 0;
	}
	if (buf_append(&w->unread, m->text, m->len) < 0 || buf_append(&w->unread, "\n", 1) < 0)
		return err_set(e, w->unread.err, "send it");
	flush(w);
	return 0;
}

static const struct wire_ops ops = { .send = send_message, .close = close_wire };

int wire_stdio_open(struct upstream *u, struct err *e)
{
	struct stdio_wire *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(e, -ENOMEM, "start it");
	r = child_start(u->base.children, u->config, &w->child, e);
	if (r < 0) {
		free(w);
		return r;
	}
	struct child *c = w->child;

	w->wire = (struct wire){ .ops = &ops, .up = u };
	w->words = CHATTER_BURST;
	w->words_at = clock_now_ns();
	buf_init(&w->unread, UNREAD_MAX + 1);
	lines_init(&w->lines, on_line, w);
	lines_limit(&w->lines, BRIDGE_MESSAGE_MAX, on_long);
	lines_init(&w->chatter, on_words, w);
	lines_limit(&w->chatter, CHATTER_LINE, on_long_words);
	w->in = (struct watch){ .fd = c->in, .fn = on_in, .arg = w };
	w->out = (struct watch){ .fd = c->out, .events = EPOLLIN, .fn = on_out, .arg = w };
	w->err = (struct watch){ .fd = c->err, .events = EPOLLIN, .fn = on_err, .arg = w };
	c->in = c->out = c->err = -1; /* they are ours now */
	c->on_exit = on_exit_;
	c->arg = w;
	if (loop_add(u->base.loop, &w->in, e) < 0 || loop_add(u->base.loop, &w->out, e) < 0 ||
	    loop_add(u->base.loop, &w->err, e) < 0) {
		close_wire(&w->wire);
		return e->code;
	}
	u->wire = &w->wire;
	return 0;
}
