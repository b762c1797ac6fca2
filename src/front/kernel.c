/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - Reading and writing a kernel's pipes.
 *
 * All four are non-blocking on our side (the flag is the open file's, and each end of a pipe is one
 * of its own, so the guest can not change ours). A control line that is not complete yet costs at
 * most KERNEL_LINE_MAX; output is handed up as it comes and is bounded by whoever takes it.
 */
#include "front/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "front/schema.h"

#define CHUNK 65536u
#define ROUND_MAX (1u << 20) /* bytes of one stream per round */
#define PENDING_MAX (20u << 20)

static void broken(struct kernel *k, const char *why, bool closed)
{
	if (k->over)
		return;
	k->over = true;
	loop_del(&k->in);
	loop_del(&k->out);
	k->ops->broken(k, why, closed);
}

/* ---- control ----------------------------------------------------------------------------------- */

/* A value costs some 50 bytes when it is parsed, and two in the text: bound them before that. */
static bool few_values(const char *text, size_t len)
{
	size_t n = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == ',' || text[i] == '[' || text[i] == '{'))
			n++;
	}
	return n <= KERNEL_VALUES_MAX;
}

static void one_line(struct kernel *k, const char *text, size_t len)
{
	json_t *m = schema_depth_ok(text, len, KERNEL_DEPTH_MAX) && few_values(text, len) ?
			    json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL) :
			    NULL;
	const char *type = json_string_value(json_object_get(m, "type"));

	if (!type)
		broken(k, "the kernel sent a line that is no message", false);
	else
		k->ops->message(k, type, m);
	json_decref(m);
}

/* All complete lines. A handler may detach the kernel: then line is empty and we stop. */
static void take_lines(struct kernel *k)
{
	size_t begin = 0;

	while (!k->over && k->scanned < k->line.len) {
		const char *data = k->line.data;
		const char *nl = memchr(data + k->scanned, '\n', k->line.len - k->scanned);

		if (!nl) {
			k->scanned = k->line.len;
			break;
		}
		size_t end = (size_t)(nl - data);

		k->scanned = end + 1;
		if (end > begin)
			one_line(k, data + begin, end - begin);
		begin = end + 1;
	}
	if (k->over)
		return;
	buf_consume(&k->line, begin);
	k->scanned -= begin;
	if (k->line.len == 0 && k->line.cap > CHUNK)
		buf_free(&k->line); /* a large picture was there; an idle kernel shall be small */
}

static void on_control(struct watch *w, uint32_t events)
{
	static char chunk[CHUNK];
	struct kernel *k = w->arg;
	size_t budget = ROUND_MAX;

	(void)events;
	while (budget > 0 && !k->over) {
		ssize_t n = read(w->fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			broken(k, "the kernel closed its channel", true);
			return;
		}
		if (buf_append(&k->line, chunk, (size_t)n) < 0) {
			broken(k, "the kernel sent a line without an end", false);
			return;
		}
		budget -= (size_t)n < budget ? (size_t)n : budget;
		take_lines(k);
		if ((size_t)n < sizeof(chunk))
			return;
	}
}

static void flush(struct kernel *k)
{
	while (k->pending.len > 0) {
		ssize_t n = write(k->in.fd, k->pending.data, k->pending.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			loop_mod(&k->in, EPOLLOUT);
			return;
		}
		if (n < 0) { /* it is going; the other pipe or its pidfd will tell */
			buf_clear(&k->pending);
			break;
		}
		buf_consume(&k->pending, (size_t)n);
	}
	loop_mod(&k->in, 0);
}

static void on_writable(struct watch *w, uint32_t events)
{
	struct kernel *k = w->arg;

	if (events & (EPOLLERR | EPOLLHUP)) {
		buf_clear(&k->pending);
		loop_del(&k->in);
		return;
	}
	flush(k);
}

int kernel_send(struct kernel *k, const struct buf *json, struct err *e)
{
	if (k->over || k->in.fd < 0 || !k->in.loop)
		return err_say(e, -EPIPE, "the kernel is gone");
	if (buf_append(&k->pending, json->data, json->len) < 0 || buf_puts(&k->pending, "\n") < 0)
		return err_say(e, -ENOBUFS, "the kernel does not take its messages");
	flush(k);
	return 0;
}

/* ---- output ------------------------------------------------------------------------------------ */

/* Until it would block, at most @budget bytes. */
static void read_stream(struct kernel *k, enum kernel_stream s, size_t budget)
{
	static char chunk[CHUNK];
	struct watch *w = &k->streams[s];

	while (budget > 0 && w->fd >= 0) {
		ssize_t n = read(w->fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			loop_del(w);
			w->fd = fd_close(w->fd);
			return;
		}
		budget -= (size_t)n < budget ? (size_t)n : budget;
		k->ops->output(k, s, chunk, (size_t)n);
		if (k->paused)
			return;
	}
}

static void on_stdout(struct watch *w, uint32_t events)
{
	(void)events;
	read_stream(w->arg, STREAM_STDOUT, CHUNK * 2);
}

static void on_stderr(struct watch *w, uint32_t events)
{
	(void)events;
	read_stream(w->arg, STREAM_STDERR, CHUNK * 2);
}

void kernel_drain(struct kernel *k)
{
	bool paused = k->paused;

	/* What is already in a pipe is bounded, and belongs before what comes after it. */
	k->paused = false;
	read_stream(k, STREAM_STDOUT, ROUND_MAX);
	read_stream(k, STREAM_STDERR, ROUND_MAX);
	k->paused = k->paused || paused;
}

void kernel_pause(struct kernel *k, bool pause)
{
	if (k->paused == pause)
		return;
	k->paused = pause;
	for (size_t s = 0; s < ARRAY_SIZE(k->streams); s++)
		if (k->streams[s].loop)
			loop_mod(&k->streams[s], pause ? 0 : EPOLLIN);
}

/* ---- life -------------------------------------------------------------------------------------- */

static int add(struct kernel *k, struct watch *w, int fd, uint32_t events,
	       void (*fn)(struct watch *, uint32_t), struct err *e)
{
	*w = (struct watch){ .fd = fd, .events = events, .fn = fn, .arg = k };
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "set up a kernel's pipe");
	return loop_add(k->loop, w, e);
}

int kernel_attach(struct kernel *k, struct loop *loop, const struct language *language,
		  const struct kernel_ops *ops, void *owner, const int fds[KERNEL_FDS],
		  struct err *e)
{
	*k = (struct kernel){ .loop = loop, .ops = ops, .owner = owner, .language = language };
	buf_init(&k->line, KERNEL_LINE_MAX);
	buf_init(&k->pending, PENDING_MAX);
	k->in.fd = fds[KERNEL_FD_IN];
	k->out.fd = fds[KERNEL_FD_OUT];
	k->streams[0].fd = fds[KERNEL_FD_STDOUT];
	k->streams[1].fd = fds[KERNEL_FD_STDERR];
	int r = add(k, &k->in, fds[KERNEL_FD_IN], 0, on_writable, e);

	if (r == 0)
		r = add(k, &k->out, fds[KERNEL_FD_OUT], EPOLLIN, on_control, e);
	if (r == 0)
		r = add(k, &k->streams[0], fds[KERNEL_FD_STDOUT], EPOLLIN, on_stdout, e);
	if (r == 0)
		r = add(k, &k->streams[1], fds[KERNEL_FD_STDERR], EPOLLIN, on_stderr, e);
	if (r < 0)
		kernel_detach(k);
	return r;
}

void kernel_detach(struct kernel *k)
{
	struct watch *all[] = { &k->in, &k->out, &k->streams[0], &k->streams[1] };

	if (!k->loop)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		loop_del(all[i]);
		all[i]->fd = fd_close(all[i]->fd);
	}
	k->over = true;
	k->scanned = 0;
	buf_free(&k->line);
	buf_free(&k->pending);
}
