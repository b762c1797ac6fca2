/* SPDX-License-Identifier: Apache-2.0 */
/* buckets.c - Asking caisson-bucket: as many jobs at a time as it takes, the others wait for their
 * turn. */
#include "front/buckets/buckets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "front/support/log.h"

_Static_assert(sizeof(struct bucket_reply) <= PIPE_BUF, "answers are written in one piece");

static void begin_waiting(struct buckets *b);

/* It is over, or was never begun: nothing of it is left. */
static void let_go(struct bucket_job *j)
{
	struct buckets *b = j->all;

	for (struct bucket_job **p = &b->waiting; *p; p = &(*p)->next)
		if (*p == j) {
			*p = j->next;
			break;
		}
	if (j->begun) {
		loop_del(&j->watch);
		j->watch.fd = fd_close(j->watch.fd);
		b->live--;
	}
	for (size_t i = 0; i < j->n_fds; i++)
		fd_close(j->fds[i]);
	j->n_fds = 0;
	j->begun = false;
	j->all = NULL;
}

static void finish(struct bucket_job *j, const struct bucket_reply *r)
{
	struct buckets *b = j->all;

	let_go(j);
	j->done(j, r); /* may be the end of it */
	begin_waiting(b);
}

static void fail(struct bucket_job *j, int code, const char *why)
{
	struct bucket_reply r = { .say = BUCKET_DONE, .code = code };

	(void)snprintf(r.msg, sizeof(r.msg), "%s", why);
	finish(j, &r);
}

static void on_answer(struct watch *w, uint32_t events)
{
	struct bucket_job *j = w->arg;
	static struct bucket_reply r;
	ssize_t n = read(w->fd, &r, sizeof(r));

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(r) || r.version != BUCKET_VERSION) {
		fail(j, -EPIPE, "the transfer was broken off");
		return;
	}
	/* A stranger too: it reads what servers say. */
	r.link[sizeof(r.link) - 1] = r.msg[sizeof(r.msg) - 1] = '\0';
	if (r.say == BUCKET_DONE)
		finish(j, &r);
	else if (j->moved)
		j->moved(j, &r);
}

static void gone(struct buckets *b)
{
	b->fd = fd_close(b->fd);
	log_event(LOG_LEVEL_ERROR, "buckets_gone",
		  F_STR("what", "no bucket can be reached until the daemon is restarted"));
}

static int begin(struct bucket_job *j)
{
	struct buckets *b = j->all;
	int pair[2], fds[3] = { -1, j->fds[0], j->fds[1] };

	if (b->fd < 0)
		return -EPIPE;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	_fd_ int ours = pair[0], theirs = pair[1];

	fds[0] = theirs;
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	int r = fd_send(b->fd, &j->q, sizeof(j->q), fds, 1 + j->n_fds);

	if (r == -EPIPE || r == -ECONNRESET)
		gone(b);
	if (r < 0)
		return r;
	j->watch = (struct watch){ .fd = ours, .events = EPOLLIN, .fn = on_answer, .arg = j };
	r = loop_add(b->loop, &j->watch, NULL);
	if (r < 0)
		return r;
	(void)TAKE_FD(ours);
	for (size_t i = 0; i < j->n_fds; i++)
		fd_close(j->fds[i]);
	j->n_fds = 0;
	j->begun = true;
	b->live++;
	return 0;
}

static void begin_waiting(struct buckets *b)
{
	while (b->waiting && b->live < BUCKET_JOBS_MAX) {
		struct bucket_job *j = b->waiting;

		b->waiting = j->next;
		j->next = NULL;
		int r = begin(j);

		if (r == 0)
			continue;
		fail(j, r, "the buckets can not be reached from here any more");
		return; /* that one has seen to the rest */
	}
}

int bucket_ask(struct buckets *b, struct bucket_job *j, const struct bucket_req *q, int *fds,
	       size_t n)
{
	struct bucket_job **last = &b->waiting;
	int r = 0;

	j->all = b;
	j->q = *q;
	j->q.version = BUCKET_VERSION;
	j->next = NULL;
	j->begun = false;
	j->n_fds = n;
	for (size_t i = 0; i < n; i++)
		j->fds[i] = TAKE_FD(fds[i]);
	if (b->live < BUCKET_JOBS_MAX && !b->waiting) {
		r = begin(j);
		if (r < 0)
			let_go(j);
		return r;
	}
	while (*last)
		last = &(*last)->next;
	*last = j;
	return 0;
}

void bucket_stop(struct bucket_job *j)
{
	struct buckets *b = j->all;

	if (!b)
		return;
	let_go(j);
	begin_waiting(b);
}

void buckets_free(struct buckets *b)
{
	b->fd = fd_close(b->fd);
}
