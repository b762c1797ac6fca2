/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatch.c - From a request to its handler: a table says which requests exist, how many
 * descriptors each may carry and whether it needs a living handle.
 *
 * Everything in a request is checked here, also what the client has checked: it may have been taken
 * over by an attacker. Above each handler stands why it is safe even then.
 *
 * A handler answers at once, or returns LATER: then the cell or zygote remembers the number of the
 * request, and warden_events.c answers it.
 */
#include "warden/dispatch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/evidence.h"
#include "cell/spec.h"

#define LATER 1
#define KERNEL_NS (5 * CLOCK_NS_PER_S)
#define HANDLE_BITS 12
_Static_assert(WARDEN_CELLS_MAX == 1u << HANDLE_BITS, "a handle is an index and a generation");
_Static_assert(WARDEN_ZYGOTES_MAX <= WARDEN_CELLS_MAX, "zygotes have handles of the same form");

uint64_t source_ref(enum source s, uint32_t index, uint32_t serial)
{
	return (uint64_t)s << 60 | (uint64_t)index << 32 | serial;
}

enum source source_of(uint64_t ref)
{
	return (enum source)(ref >> 60);
}

struct cell *cell_of(struct warden *w, uint32_t handle)
{
	struct cell *c = w->cells[handle % WARDEN_CELLS_MAX];

	return handle && c && c->handle == handle ? c : NULL;
}

struct zygote *zygote_of(struct warden *w, uint32_t handle)
{
	uint32_t index = handle % WARDEN_CELLS_MAX;
	struct zygote *z = index < WARDEN_ZYGOTES_MAX ? w->zygotes[index] : NULL;

	return handle && z && z->handle == handle ? z : NULL;
}

uint32_t new_handle(struct warden *w, uint32_t index)
{
	if ((++w->generation << HANDLE_BITS) == 0)
		w->generation = 1;
	return w->generation << HANDLE_BITS | index;
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

/*
 * Safe: the spec is range-checked; destination paths are resolved only inside the new root and
 * without links; host objects are those the client could open; ids and names are our own choice. A
 * zygote that may enter is the client's own.
 */
static int do_create(struct warden *w, struct request *q, struct err *e)
{
	const struct zygote *z = zygote_of(w, q->req->zygote);
	uint32_t index = 0;
	int r = spec_check(&q->req->spec, e);

	if (r < 0)
		return r;
	if (q->req->zygote && (!z || z->plan))
		return err_say(e, -ENOENT, "no such zygote");
	while (index < WARDEN_CELLS_MAX && w->cells[index])
		index++;
	if (index == WARDEN_CELLS_MAX)
		return err_say(e, -EAGAIN, "%u cells exist already", WARDEN_CELLS_MAX);
	_mem_ struct cell *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(e, -ENOMEM, "make a cell");
	c->index = index;
	c->serial = ++w->serial;
	c->epoll = w->epoll;
	c->zygote = q->req->zygote;
	c->create_seq = q->req->seq;
	c->want_gauges = q->req->want_gauges == 1;
	c->want_live = q->req->want_live == 1;
	r = cell_begin(&w->host, &q->req->spec, z ? z->uid : 0, q->fds, q->n_fds, c, e);
	if (r < 0)
		return r;
	r = watch(w, c->l.sync_fd, SOURCE_MADE, index, c->serial, e);
	if (r < 0) {
		cell_destroy(c, &w->remains);
		return r;
	}
	check_before(w, c->check_ns);
	w->cells[index] = c;
	c = NULL;
	return LATER;
}

/* Safe: reads numbers of the client's own cell. */
static int do_usage(struct warden *w, struct request *q, struct err *e)
{
	(void)e;
	if (q->cell->kernel == KERNEL_RUNS) {
		reap_threads(w);
		(void)cell_kernel_reaped(q->cell);
	}
	cell_usage(q->cell, &q->reply->usage);
	/* The out-of-memory killer took a process and its event has yet to reach us: a cell that
	 * dies as one ends before we answer, so that no client reads of one that runs on without
	 * its interpreter. */
	if (q->reply->usage.end == CELL_RUNNING && q->reply->usage.oom_kills > 0 &&
	    q->cell->spec.limits.oom == CELL_OOM_CELL) {
		cell_memory_event(q->cell);
		killed(w, q->cell);
		cell_usage(q->cell, &q->reply->usage);
	}
	return 0;
}

/* Safe: signals the client's own cell through its pidfd; no pid number is involved. */
static int do_kill(struct warden *w, struct request *q, struct err *e)
{
	(void)e;
	cell_kill(q->cell, CELL_END_CLIENT);
	killed(w, q->cell);
	return 0;
}

/* Safe: copies texts of /proc about the client's own cell; the memfd is sealed. */
static int do_evidence(struct warden *w, struct request *q, struct err *e)
{
	(void)w;
	if (q->cell->l.pid <= 0)
		return err_say(e, -ESRCH, "the cell is over");
	/* A zygote's kernel is not a child of pid 1, but of the warden. */
	int fd = evidence_collect(q->cell->l.pid,
				  q->cell->kernel == KERNEL_RUNS ? q->cell->kernel_pid : 0,
				  q->cell->has_cgroup ? &q->cell->cgroup : NULL, e);

	if (fd < 0)
		return fd;
	q->reply_fd = fd;
	return 0;
}

/* Safe: ends the client's own cell. The handle is free at once, also when remains stay. */
static int do_destroy(struct warden *w, struct request *q, struct err *e)
{
	struct cell *c = q->cell;

	(void)e;
	cell_kill(c, CELL_END_CLIENT);
	c->handle = 0;
	c->destroy_seq = q->req->seq;
	destroy_deadline(w, c);
	if (c->l.pid <= 0)
		finish_destroy(w, c);
	return LATER;
}

/*
 * Safe: it is the machine's own python with a user of its own and no capability, and the program
 * that it runs lies beside the warden. A zygote of another image is refused to every client: a
 * zygote may enter its cells with every capability that counts there, and an image's python is a
 * stranger's program.
 */
static int do_zygote(struct warden *w, struct request *q, struct err *e)
{
	uint32_t index = 0;
	int r = spec_check(&q->req->spec, e);

	if (r < 0)
		return r;
	if (q->req->spec.n_mounts > 0)
		return err_say(e, -EINVAL, "a zygote has no mounts");
	if (q->req->spec.image != CELL_IMAGE_HOST)
		return err_say(e, -EPERM,
			       "a zygote can only be of the image host; init starts the kernels "
			       "of others");
	while (index < WARDEN_ZYGOTES_MAX && w->zygotes[index])
		index++;
	if (remains_full(&w->remains))
		return err_say(e, -EAGAIN, "%zu zygotes and cells do not die", w->remains.n);
	if (index == WARDEN_ZYGOTES_MAX)
		return err_say(e, -EAGAIN, "%u zygotes exist already", WARDEN_ZYGOTES_MAX);
	_mem_ struct zygote *z = calloc(1, sizeof(*z));

	if (!z)
		return err_set(e, -ENOMEM, "make a zygote");
	z->index = index;
	z->serial = ++w->serial;
	z->epoll = w->epoll;
	z->create_seq = q->req->seq;
	r = zygote_begin(&w->host, &q->req->spec, z, e);
	if (r < 0)
		return r;
	r = watch(w, z->l.sync_fd, SOURCE_ZYGOTE_MADE, index, z->serial, e);
	if (r < 0) {
		zygote_remove(w, z);
		return r;
	}
	z->deadline_ns = clock_now_ns() + LAUNCH_DEADLINE_NS;
	check_before(w, z->deadline_ns);
	w->zygotes[index] = z;
	z = NULL;
	return LATER;
}

/* Safe: only into a cell that was made for this zygote, one at a time, both the client's own. */
static int do_kernel(struct warden *w, struct request *q, struct err *e)
{
	struct zygote *z = zygote_of(w, q->req->zygote);
	struct cell *c = q->cell;

	if (!z || z->plan || c->zygote != z->handle)
		return err_say(e, -ENOENT, "the cell has no such zygote");
	if (c->l.pid <= 0)
		return err_say(e, -ESRCH, "the cell is over");
	if (c->kernel == KERNEL_RUNS)
		(void)cell_kernel_reaped(c);
	if (c->kernel_seq || c->kernel == KERNEL_RUNS)
		return err_say(e, -EBUSY, "the cell has a kernel");
	int r = zygote_fork(z, c, e);

	if (r < 0)
		return r;
	c->kernel_seq = q->req->seq;
	c->kernel_due_ns = clock_now_ns() + KERNEL_NS;
	if (!c->check_ns || c->kernel_due_ns < c->check_ns)
		c->check_ns = c->kernel_due_ns;
	check_before(w, c->check_ns);
	return LATER;
}

/* Safe: ends the client's own zygote. */
static int do_retire(struct warden *w, struct request *q, struct err *e)
{
	struct zygote *z = zygote_of(w, q->req->zygote);

	if (!z || z->plan)
		return err_say(e, -ENOENT, "no such zygote");
	zygote_gone(w, z);
	return 0;
}

/* Safe: a mark on the client's own cell. */
static int do_claim(struct warden *w, struct request *q, struct err *e)
{
	(void)w;
	(void)e;
	q->cell->claimed = true;
	return 0;
}

/*
 * Safe: ends the client's own cells and zygotes. After this every cell and zygote of an earlier
 * client on this socket, made or in the making, is gone or was named by a claim: none is left
 * unknown.
 */
static int do_rest(struct warden *w, struct request *q, struct err *e)
{
	(void)q;
	(void)e;
	for (uint32_t i = 0; i < WARDEN_ZYGOTES_MAX; i++)
		if (w->zygotes[i])
			zygote_gone(w, w->zygotes[i]);
	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++) {
		struct cell *c = w->cells[i];

		if (c && !c->claimed && !c->destroy_seq)
			end_unclaimed(w, c);
		else if (c)
			c->claimed = false;
	}
	return 0;
}

static const struct permit {
	bool needs_cell;
	size_t max_fds;
	int (*handler)(struct warden *w, struct request *q, struct err *e);
} permits[WARDEN_OP_MAX_] = {
	[WARDEN_CREATE] = { false, CELL_FDS_MAX, do_create },
	[WARDEN_USAGE] = { true, 0, do_usage },
	[WARDEN_KILL] = { true, 0, do_kill },
	[WARDEN_EVIDENCE] = { true, 0, do_evidence },
	[WARDEN_DESTROY] = { true, 0, do_destroy },
	[WARDEN_ZYGOTE] = { false, 0, do_zygote },
	[WARDEN_KERNEL] = { true, 0, do_kernel },
	[WARDEN_RETIRE] = { false, 0, do_retire },
	[WARDEN_CLAIM] = { true, 0, do_claim },
	[WARDEN_REST] = { false, 0, do_rest },
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
	if (req->seq == 0 || req->seq == WARDEN_NOBODY)
		return err_say(e, -EINVAL, "a request must have a number");
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

bool dispatch_serve(struct warden *w)
{
	static struct warden_req req;
	static struct warden_reply reply;
	int fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	struct err e = { 0 };
	ssize_t n = fd_recv(w->sock, &req, sizeof(req), fds, &n_fds);

	if (n != (ssize_t)sizeof(req)) {
		fd_close_all(fds, n > 0 ? n_fds : 0);
		return false;
	}
	memset(&reply, 0, sizeof(reply));
	struct request q = {
		.req = &req, .fds = fds, .n_fds = n_fds, .reply = &reply, .reply_fd = -1
	};
	int r = dispatch(w, &q, &e);

	fd_close_all(fds, n_fds);
	if (r == LATER)
		return true;
	bool sent = answer(w, (enum warden_op)req.op, req.seq, r, &e, &reply, &q.reply_fd,
			   q.reply_fd >= 0 ? 1 : 0);

	fd_close(q.reply_fd);
	return sent;
}
