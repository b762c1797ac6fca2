/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_link.c - One socket, a list of requests under way, and a queue for a full socket.
 *
 * Messages are packets, so a service that is killed leaves no half message. If it has a supervisor
 * (base/supervise.h), its successor is on the same socket and sends a message of a certain kind;
 * the service's receive() then fails earlier requests with service_link_fail(). If the other end is
 * closed, gone() is called once.
 */
#include "front/support/service_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"

#define PER_EVENT 64 /* messages: then other watches of the loop have their turn */

struct service_request {
	struct service_request *next;
	size_t n_fds;
	int fds[FD_PASS_MAX];
	uint64_t data[]; /* request_size bytes */
};

/* ---- requests under way ------------------------------------------------------------------- */

struct service_call *service_link_take(struct service_link *l, uint64_t seq)
{
	for (struct service_call **p = &l->calls; *p; p = &(*p)->next)
		if ((*p)->seq == seq) {
			struct service_call *c = *p;

			*p = c->next;
			c->seq = 0;
			return c;
		}
	return NULL;
}

void service_link_forget(struct service_link *l, struct service_call *c)
{
	if (c->seq)
		(void)service_link_take(l, c->seq);
}

void service_link_fail(struct service_link *l, uint64_t until, int code, const char *why)
{
	struct service_call *c;

	do {
		for (c = l->calls; c && c->seq > until;)
			c = c->next;
		if (c)
			l->service->fail(service_link_take(l, c->seq), code, why);
	} while (c);
}

/* ---- in ----------------------------------------------------------------------------------- */

static void gone(struct service_link *l)
{
	service_link_close(l);
	l->service->gone(l);
}

/* One message. False: no message is waiting. */
static bool receive(struct service_link *l)
{
	static _Alignas(uint64_t) char message[SERVICE_MESSAGE_MAX];
	const struct service *s = l->service;
	int fds[SERVICE_FDS_MAX];
	size_t n_fds = s->fds_max;
	uint32_t version = 0;

	memset(message, 0, sizeof(version));
	ssize_t n = fd_recv(l->watch.fd, message, s->message_size, fds, &n_fds);

	if (n == -EAGAIN)
		return false;
	memcpy(&version, message, sizeof(version));
	/* Our table has no room for the descriptors: only this request fails. */
	if (n == -EMSGSIZE && s->loses_fds)
		n = (ssize_t)s->message_size;
	if (n == (ssize_t)s->message_size && version == s->version)
		s->receive(l, message, fds, n_fds);
	else
		gone(l);
	for (size_t i = 0; n > 0 && i < n_fds; i++)
		foreign_close(fds[i]);
	return l->watch.fd >= 0;
}

/* ---- out ---------------------------------------------------------------------------------- */

static void free_request(struct service_request *q)
{
	while (q->n_fds > 0)
		foreign_close(q->fds[--q->n_fds]);
	free(q);
}

static struct service_request *unqueue(struct service_link *l)
{
	struct service_request *q = l->out;

	l->out = q->next;
	l->n_out--;
	if (!l->out)
		l->out_tail = &l->out;
	return q;
}

void service_link_drop_queue(struct service_link *l)
{
	while (l->out)
		free_request(unqueue(l));
}

static uint64_t *seq_of(const struct service_link *l, void *request)
{
	return (uint64_t *)(void *)((char *)request + l->service->seq_at);
}

static void flush(struct service_link *l)
{
	while (l->out) {
		struct service_request *q = l->out;
		uint64_t seq = *seq_of(l, q->data);
		int r = fd_send(l->watch.fd, q->data, l->service->request_size, q->fds, q->n_fds);

		if (r == -EAGAIN)
			return;
		free_request(unqueue(l));
		if (r < 0 && r != -EPIPE && r != -ECONNRESET) {
			struct service_call *c = service_link_take(l, seq);

			if (c)
				l->service->fail(c, r, "the request could not be sent");
		}
	}
	loop_mod(&l->watch, EPOLLIN);
}

static int enqueue(struct service_link *l, const void *request, const int *fds, size_t n_fds)
{
	const size_t size = l->service->request_size;

	if (l->n_out >= l->service->queue_max)
		return -EAGAIN;
	struct service_request *q = calloc(1, sizeof(*q) + size);

	if (!q)
		return -ENOMEM;
	memcpy(q->data, request, size);
	for (; q->n_fds < n_fds && q->n_fds < FD_PASS_MAX; q->n_fds++) {
		q->fds[q->n_fds] = fcntl(fds[q->n_fds], F_DUPFD_CLOEXEC, 3);
		if (q->fds[q->n_fds] < 0) {
			int r = -errno;

			free_request(q);
			return r;
		}
	}
	*l->out_tail = q;
	l->out_tail = &q->next;
	l->n_out++;
	loop_mod(&l->watch, EPOLLIN | EPOLLOUT);
	return 0;
}

int service_link_ask(struct service_link *l, struct service_call *c, void *request, const int *fds,
		     size_t n_fds, struct err *e)
{
	const struct service *s = l->service;
	uint64_t seq;

	if (l->watch.fd < 0)
		return err_say(e, -EPIPE, "%s is gone", s ? s->name : "the service");
	memcpy(request, &s->version, sizeof(s->version));
	*seq_of(l, request) = seq = ++l->seq;
	int r = l->out ? -EAGAIN : fd_send(l->watch.fd, request, s->request_size, fds, n_fds);

	if (r == -EAGAIN)
		r = enqueue(l, request, fds, n_fds);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return err_set(e, r, "ask %s", s->name);
	if (c) {
		c->seq = seq;
		c->next = l->calls;
		l->calls = c;
	}
	return 0;
}

int service_link_wait(struct service_link *l, void *request, int fd, void *ret)
{
	const struct service *s = l->service;
	size_t n_fds = 0;
	uint32_t version = 0;
	int r = service_link_ask(l, NULL, request, &fd, fd >= 0 ? 1 : 0, NULL);

	if (r < 0)
		return r;
	ssize_t n = fd_recv(l->watch.fd, ret, s->message_size, NULL, &n_fds);

	if (n == (ssize_t)s->message_size)
		memcpy(&version, ret, sizeof(version));
	/* A successor's message has another number: this start fails, and the next one succeeds. */
	return version == s->version && *seq_of(l, ret) == l->seq ? 0 : -EPIPE;
}

/* ---- begin and end ------------------------------------------------------------------------ */

static void on_event(struct watch *w, uint32_t events)
{
	struct service_link *l = w->arg;

	if (events & EPOLLOUT)
		flush(l);
	for (int i = 0; i < PER_EVENT && l->watch.fd >= 0; i++)
		if (!receive(l))
			return;
}

void service_link_init(struct service_link *l, const struct service *s, int fd)
{
	*l = (struct service_link){ .service = s,
				    .watch = { .fd = fd, .events = EPOLLIN, .fn = on_event } };
	l->watch.arg = l;
	l->out_tail = &l->out;
}

int service_link_start(struct service_link *l, struct loop *loop, struct err *e)
{
	if (fcntl(l->watch.fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "set up the socket to %s", l->service->name);
	return loop_add(loop, &l->watch, e);
}

void service_link_close(struct service_link *l)
{
	loop_del(&l->watch);
	l->watch.fd = fd_close(l->watch.fd);
	service_link_drop_queue(l);
}

void service_link_free(struct service_link *l)
{
	service_link_close(l);
	while (l->calls)
		(void)service_link_take(l, l->calls->seq);
}

int service_open_dir(const char *state, const char *name, struct err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	_fd_ int top = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0 || (mkdirat(top, name, 0700) < 0 && errno != EEXIST))
		return err_set(e, -errno, "--state: make %s/%s", state, name);
	int fd = openat(top, name, flags);

	if (fd < 0 && errno == EACCES && fchmodat(top, name, 0700, 0) == 0)
		fd = openat(top, name, flags);
	return fd < 0 ? err_set(e, -errno, "--state: open %s/%s", state, name) : fd;
}
