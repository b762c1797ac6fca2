/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatch.c - From a request to its handler: a table says which requests exist, how many
 * descriptors each may carry and whether it needs a living handle.
 *
 * Everything in a request is checked again here, whatever the client has checked: it may have been
 * taken over by whoever it talks to. Above each handler stands why it is safe even then.
 */
#include "warden/dispatch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/evidence.h"
#include "cell/idmap.h"
#include "cell/spec.h"

#define HANDLE_BITS 12
_Static_assert(WARDEN_CELLS_MAX == 1u << HANDLE_BITS, "a handle is an index and a generation");

uint64_t source_ref(enum source s, uint32_t index)
{
	return (uint64_t)s << 32 | index;
}

static struct cell *cell_of(struct warden *w, uint32_t handle)
{
	struct cell *c = w->cells[handle % WARDEN_CELLS_MAX];

	return c && c->handle == handle ? c : NULL;
}

/* ---- handlers ------------------------------------------------------------------------------- */

struct request {
	const struct warden_req *req;
	struct cell *cell; /* for rows with needs_cell */
	const int *fds;
	size_t n_fds;
	struct warden_reply *reply;
	int reply_fd; /* goes out with the reply, then closed */
};

static int watch(struct warden *w, struct cell *c, uint32_t index, struct err *e)
{
	struct epoll_event init = { .events = EPOLLIN, .data.u64 = source_ref(SOURCE_INIT, index) };
	struct epoll_event memory = { .events = EPOLLIN | EPOLLPRI | EPOLLET,
				      .data.u64 = source_ref(SOURCE_MEMORY, index) };

	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->pidfd, &init) < 0)
		return err_set(e, -errno, "watch the cell");
	if (c->has_cgroup && c->cgroup.oom_fd >= 0 &&
	    epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->cgroup.oom_fd, &memory) < 0)
		return err_set(e, -errno, "watch the cell's memory");
	return 0;
}

/*
 * Safe: the spec is range-checked; destination paths are resolved only inside the new root and
 * without links; host objects are those the client could open; ids and names are our own choice.
 */
static int do_create(struct warden *w, struct request *q, struct err *e)
{
	struct cell_usage ignored;
	uint32_t index = 0;
	int r = spec_check(&q->req->spec, e);

	if (r < 0)
		return r;
	while (index < WARDEN_CELLS_MAX && w->cells[index])
		index++;
	if (index == WARDEN_CELLS_MAX)
		return err_say(e, -EAGAIN, "%u cells exist already", WARDEN_CELLS_MAX);
	_mem_ struct cell *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(e, -ENOMEM, "make a cell");
	r = cell_create(&w->host, &q->req->spec, q->fds, q->n_fds, c, &q->reply_fd, e);
	if (r < 0)
		return r;
	r = watch(w, c, index, e);
	if (r < 0) {
		(void)cell_destroy(c, &ignored, NULL);
		q->reply_fd = fd_close(q->reply_fd);
		return r;
	}
	c->handle = ++w->generation << HANDLE_BITS | index;
	struct idmap ids;

	idmap_choose(c->record.slot, &ids);
	q->reply->cell = c->handle;
	q->reply->host_base = ids.ranged ? ids.base : 0;
	w->cells[index] = c;
	c = NULL;
	return 0;
}

/* Safe: reads numbers of the client's own cell. */
static int do_usage(struct warden *w, struct request *q, struct err *e)
{
	(void)w;
	(void)e;
	cell_usage(q->cell, &q->reply->usage);
	return 0;
}

/* Safe: signals the client's own cell through its pidfd; no pid number is involved. */
static int do_kill(struct warden *w, struct request *q, struct err *e)
{
	(void)w;
	(void)e;
	cell_kill(q->cell, CELL_END_CLIENT);
	return 0;
}

/* Safe: copies the kernel's texts about the client's own cell; the memfd is sealed. */
static int do_evidence(struct warden *w, struct request *q, struct err *e)
{
	(void)w;
	if (q->cell->pid <= 0)
		return err_say(e, -ESRCH, "the cell is over");
	int fd = evidence_collect(q->cell->pid, q->cell->has_cgroup ? &q->cell->cgroup : NULL, e);

	if (fd < 0)
		return fd;
	q->reply_fd = fd;
	return 0;
}

/* Safe: ends the client's own cell. The handle is free afterwards, also when remains stay. */
static int do_destroy(struct warden *w, struct request *q, struct err *e)
{
	int r = cell_destroy(q->cell, &q->reply->usage, e);

	w->cells[q->cell->handle % WARDEN_CELLS_MAX] = NULL;
	free(q->cell);
	return r;
}

static const struct permit {
	bool needs_cell;
	size_t max_fds;
	int (*handler)(struct warden *w, struct request *q, struct err *e);
} permits[WARDEN_OP_MAX_] = {
	[WARDEN_CREATE] = { false, CELL_MOUNTS_MAX + 1, do_create },
	[WARDEN_USAGE] = { true, 0, do_usage },
	[WARDEN_KILL] = { true, 0, do_kill },
	[WARDEN_EVIDENCE] = { true, 0, do_evidence },
	[WARDEN_DESTROY] = { true, 0, do_destroy },
};

static int dispatch(struct warden *w, struct request *q, struct err *e)
{
	const struct warden_req *req = q->req;

	if (req->version != WARDEN_VERSION)
		return err_say(
			e, -EPROTO,
			"caisson and caisson-warden are of different versions; reinstall both");
	if (req->op >= WARDEN_OP_MAX_ || !permits[req->op].handler)
		return err_say(e, -ENOSYS, "unknown request %u", req->op);
	if (q->n_fds > permits[req->op].max_fds)
		return err_say(e, -EINVAL, "too many descriptors with request %u", req->op);
	if (permits[req->op].needs_cell) {
		q->cell = cell_of(w, req->cell);
		if (!q->cell)
			return err_say(e, -ENOENT, "no such cell");
	}
	return permits[req->op].handler(w, q, e);
}

/* ---- one request ---------------------------------------------------------------------------- */

bool dispatch_serve(struct warden *w, int sock)
{
	static struct warden_req req;
	static struct warden_reply reply;
	int fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	struct err e = { 0 };
	ssize_t n = fd_recv(sock, &req, sizeof(req), fds, &n_fds);

	if (n != (ssize_t)sizeof(req)) {
		for (size_t i = 0; n > 0 && i < n_fds; i++)
			fd_close(fds[i]);
		return false;
	}
	memset(&reply, 0, sizeof(reply));
	struct request q = {
		.req = &req, .fds = fds, .n_fds = n_fds, .reply = &reply, .reply_fd = -1
	};

	reply.version = WARDEN_VERSION;
	reply.op = req.op;
	reply.seq = req.seq;
	reply.code = dispatch(w, &q, &e);
	if (reply.code < 0)
		(void)snprintf(reply.msg, sizeof(reply.msg), "%s", e.msg);
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	int r = fd_send(sock, &reply, sizeof(reply), &q.reply_fd, q.reply_fd >= 0 ? 1 : 0);

	fd_close(q.reply_fd);
	return r == 0;
}
