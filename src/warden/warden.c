/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden.c - caisson-warden: the only process with privileges. Makes and ends cells for one client.
 *
 * Theory of operation. One socket (descriptor 3) to one client, an epoll loop over that socket and
 * over each cell's pid 1 and out-of-memory descriptor. A request is a fixed-size struct; a table
 * says which exist, how many descriptors each may carry and whether it needs a living handle, and
 * everything in it is checked again here, whatever the client has checked. The client may be taken
 * over by whoever it talks to: with this socket it can make cells out of files it can open itself,
 * and end its own cells. Nothing else is on offer.
 *
 * When the client goes away every cell is destroyed. When the warden is killed, its cells die with
 * it (parent-death signal) and the next warden sweeps what the journal says was left.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/caps.h"
#include "cell/evidence.h"
#include "cell/spec.h"
#include "warden/cell.h"
#include "wire/warden.h"

/*
 * What the warden keeps of root's capabilities:
 *   SYS_ADMIN      namespaces, mounts of what the client opened, id-mapped mounts
 *   SETUID SETGID  writing id maps for ranges that are not our own id
 *   SETPCAP        handing the child a reduced bounding set
 *   KILL           signalling cells, which are other users
 *   SYS_PTRACE DAC_READ_SEARCH   reading /proc of cells for receipts
 *   DAC_OVERRIDE   cgroup directories that a service manager gave to another user
 */
#define WARDEN_CAPS                                                                                \
	(1ull << CAP_SYS_ADMIN | 1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_SETPCAP |   \
	 1ull << CAP_KILL | 1ull << CAP_SYS_PTRACE | 1ull << CAP_DAC_READ_SEARCH |                 \
	 1ull << CAP_DAC_OVERRIDE)

#define HANDLE_BITS 12
_Static_assert(WARDEN_CELLS_MAX == 1u << HANDLE_BITS, "a handle is an index and a generation");

enum source { SOURCE_CLIENT, SOURCE_INIT, SOURCE_MEMORY };

struct warden {
	struct cell_host host;
	int epoll;
	uint32_t generation;
	struct cell *cells[WARDEN_CELLS_MAX];
};

static uint64_t ref_of(enum source s, uint32_t index)
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
	struct epoll_event init = { .events = EPOLLIN, .data.u64 = ref_of(SOURCE_INIT, index) };
	struct epoll_event memory = { .events = EPOLLIN | EPOLLPRI | EPOLLET,
				      .data.u64 = ref_of(SOURCE_MEMORY, index) };

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
		return r;
	}
	c->handle = ++w->generation << HANDLE_BITS | index;
	q->reply->cell = c->handle;
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
		return err_say(e, -EPROTO, "caisson and caisson-warden are of different versions; reinstall both");
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

/* ---- the loop ------------------------------------------------------------------------------- */

/* One request, one reply. False: the client is gone or talks nonsense. */
static bool serve(struct warden *w)
{
	static struct warden_req req;
	static struct warden_reply reply;
	int fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	struct err e = { 0 };
	ssize_t n = fd_recv(WARDEN_FD, &req, sizeof(req), fds, &n_fds);

	if (n != (ssize_t)sizeof(req)) {
		for (size_t i = 0; n > 0 && i < n_fds; i++)
			fd_close(fds[i]);
		return false;
	}
	memset(&reply, 0, sizeof(reply));
	struct request q = { .req = &req, .fds = fds, .n_fds = n_fds, .reply = &reply, .reply_fd = -1 };

	reply.version = WARDEN_VERSION;
	reply.op = req.op;
	reply.seq = req.seq;
	reply.code = dispatch(w, &q, &e);
	if (reply.code < 0)
		(void)snprintf(reply.msg, sizeof(reply.msg), "%s", e.msg);
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	int r = fd_send(WARDEN_FD, &reply, sizeof(reply), &q.reply_fd, q.reply_fd >= 0 ? 1 : 0);

	fd_close(q.reply_fd);
	return r == 0;
}

/* Deadlines of all cells; how long epoll may sleep. */
static int check_cells(struct warden *w)
{
	uint64_t now = clock_now_ns(), next = 0;

	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++) {
		struct cell *c = w->cells[i];

		if (!c || !c->check_ns)
			continue;
		if (now >= c->check_ns)
			c->check_ns = cell_check(c, now);
		if (c->check_ns && (!next || c->check_ns < next))
			next = c->check_ns;
	}
	if (!next)
		return -1;
	return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

static void loop(struct warden *w)
{
	for (;;) {
		struct epoll_event ev[16];
		int n = epoll_wait(w->epoll, ev, ARRAY_SIZE(ev), check_cells(w));

		for (int i = 0; i < n; i++) {
			enum source source = (enum source)(ev[i].data.u64 >> 32);
			struct cell *c = w->cells[(uint32_t)ev[i].data.u64 % WARDEN_CELLS_MAX];

			if (source == SOURCE_INIT && c) {
				/* The descriptor stays readable for ever after: once is enough. */
				(void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->pidfd, NULL);
				cell_reaped(c);
			} else if (source == SOURCE_MEMORY && c) {
				cell_memory_event(c);
			}
		}
		for (int i = 0; i < n; i++)
			if (ev[i].data.u64 >> 32 == SOURCE_CLIENT && !serve(w))
				return;
	}
}

/* ---- start and end -------------------------------------------------------------------------- */

/* Init lies beside us, or where both were installed. */
static int find_init(char *path, size_t size, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", path, size - sizeof("caisson-init"));

	if (n < 0)
		return err_set(e, -errno, "find caisson-warden's own directory");
	path[n] = '\0';
	char *slash = strrchr(path, '/');

	if (!slash)
		return err_say(e, -ENOENT, "caisson-warden has no directory");
	memcpy(slash + 1, "caisson-init", sizeof("caisson-init"));
	if (access(path, X_OK) < 0)
		return err_set(e, -errno, "find %s", path);
	return 0;
}

static int harden(struct err *e)
{
	struct rlimit core = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &core);
	(void)signal(SIGPIPE, SIG_IGN);
	/* Ctrl-C goes to the whole foreground group; ending cells is the client's decision. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "set no-new-privileges");
	if (geteuid() == 0) {
		int r = caps_keep(WARDEN_CAPS, 0);

		if (r < 0)
			return err_set(e, r, "drop capabilities");
	}
	return 0;
}

static int start(struct warden *w, const char *state, struct err *e)
{
	struct sweep_result swept;
	struct epoll_event client = { .events = EPOLLIN, .data.u64 = ref_of(SOURCE_CLIENT, 0) };
	struct err site_error = { 0 };
	int r = harden(e);

	if (r == 0)
		r = find_init(w->host.init_path, sizeof(w->host.init_path), e);
	if (r < 0)
		return r;
	w->host.records = record_dir(state, e);
	if (w->host.records < 0)
		return w->host.records;
	r = record_sweep(w->host.records, &swept, e);
	if (r < 0)
		return r;
	w->host.site_code = cgroup_site_find(&w->host.site, &site_error);
	(void)snprintf(w->host.site_msg, sizeof(w->host.site_msg), "%s", site_error.msg);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, WARDEN_FD, &client) < 0)
		return err_set(e, -errno, "watch the client");
	return fcntl(WARDEN_FD, F_SETFD, FD_CLOEXEC) < 0 ? err_set(e, -errno, "fd %d", WARDEN_FD) : 0;
}

/* The client learns why there is no warden from the answer to its first request. */
static int refuse(const struct err *e)
{
	struct warden_req req;
	struct warden_reply reply = { .version = WARDEN_VERSION, .code = e->code };
	int fds[FD_PASS_MAX];
	size_t n_fds = ARRAY_SIZE(fds);

	if (fd_recv(WARDEN_FD, &req, sizeof(req), fds, &n_fds) == (ssize_t)sizeof(req)) {
		reply.op = req.op;
		reply.seq = req.seq;
		(void)snprintf(reply.msg, sizeof(reply.msg), "%s", e->msg);
		(void)fd_send(WARDEN_FD, &reply, sizeof(reply), NULL, 0);
	}
	return 1;
}

int main(int argc, char **argv)
{
	static struct warden w;
	struct err e = { 0 };

	if (argc != 2) {
		(void)fprintf(stderr, "caisson-warden is started by caisson; usage: caisson-warden STATE-DIR 3<>SOCKET\n");
		return 125;
	}
	if (start(&w, argv[1], &e) < 0)
		return refuse(&e);
	loop(&w);
	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++) {
		struct cell_usage ignored;

		if (w.cells[i]) {
			(void)cell_destroy(w.cells[i], &ignored, NULL);
			free(w.cells[i]);
		}
	}
	return 0;
}
