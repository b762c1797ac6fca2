/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_warden.c - The warden's protocol: any bytes as requests, over a real socket.
 *
 * The input is a list of steps; each is one message, made of a valid beginning that the input chose
 * and bytes of its own laid over it. What stands behind the requests (src/warden/cell.c, evidence)
 * is replaced by what follows here: it makes descriptors instead of cells, fails when the spec says
 * so, and knows which cells live. A model of a few lines says what each answer has to be.
 *
 * Checked: no request gets further than the permit table and spec_check() allow, every answer is
 * whole and repeats its request, a handle that was destroyed never names anything again, and no
 * descriptor is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/evidence.h"
#include "cell/spec.h"
#include "warden/dispatch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 48
#define INPUT_EPOLL_BROKEN 1u

struct step {
	uint8_t op;     /* the request's, unless the overlay writes another */
	uint8_t shape;  /* enum shape */
	uint8_t n_fds;  /* modulo FD_PASS_MAX + 1 */
	uint8_t target; /* which of the living or the dead cells */
	uint8_t off[2]; /* where the overlay goes */
	uint8_t len;    /* of the overlay, which follows */
};

enum shape {
	SHAPE_SPEC = 1u << 0,  /* a good spec; otherwise zeros */
	SHAPE_LIVE = 1u << 1,  /* the handle of a living cell */
	SHAPE_DEAD = 1u << 2,  /* of one that was destroyed */
	SHAPE_SHORT = 1u << 3, /* cut at the overlay */
	SHAPE_LONG = 1u << 4,  /* one byte too many */
};

static struct warden w;
static uint32_t live[STEPS_MAX], dead[STEPS_MAX];
static size_t n_live, n_dead;
static unsigned int n_cells; /* as the replacements below count them */

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* ---- what stands behind the requests --------------------------------------------------------- */

static int create_result(const struct cell_spec *spec)
{
	return spec->limits.pids % 5 == 2 ? -EBUSY : 0;
}

static bool ends_at_once(const struct cell_limits *l)
{
	return l->files % 3 == 2;
}

static int destroy_result(const struct cell_limits *l)
{
	return l->inodes % 4 == 3 ? -EBUSY : 0;
}

int cell_create(struct cell_host *h, const struct cell_spec *spec, const int *fds, size_t n_fds,
		struct cell *ret, int *ret_channel, struct err *e)
{
	int r = create_result(spec);

	require(h == &w.host);
	require(spec_check(spec, NULL) == 0);
	require(n_fds <= CELL_MOUNTS_MAX + 1);
	for (size_t i = 0; i < n_fds; i++)
		require(fcntl(fds[i], F_GETFD) == FD_CLOEXEC);
	if (r < 0)
		return err_set(e, r, "make a cell");
	memset(ret, 0, sizeof(*ret));
	ret->limits = spec->limits;
	ret->pid = ends_at_once(&spec->limits) ? 0 : 1;
	ret->pidfd = eventfd(0, EFD_CLOEXEC);
	ret->has_cgroup = !(spec->without & CELL_WITHOUT_CGROUP);
	ret->cgroup.oom_fd = ret->has_cgroup ? eventfd(0, EFD_CLOEXEC) : -1;
	*ret_channel = eventfd(0, EFD_CLOEXEC);
	n_cells++;
	return 0;
}

static void check_living(const struct cell *c)
{
	require(c->pidfd >= 0 && n_cells > 0);
}

void cell_kill(struct cell *c, enum cell_end why)
{
	check_living(c);
	require(why == CELL_END_CLIENT);
	c->end = why;
}

void cell_usage(const struct cell *c, struct cell_usage *ret)
{
	check_living(c);
	*ret = (struct cell_usage){ .end = c->end, .cpu_ns = c->limits.pids };
}

int cell_destroy(struct cell *c, struct cell_usage *ret, struct err *e)
{
	int r = destroy_result(&c->limits);

	cell_usage(c, ret);
	c->pidfd = fd_close(c->pidfd);
	if (c->has_cgroup)
		fd_close(c->cgroup.oom_fd);
	n_cells--;
	return r < 0 ? err_set(e, r, "end a cell") : 0;
}

int evidence_collect(pid_t init, const struct cgroup *cgroup, struct err *e)
{
	(void)cgroup;
	(void)e;
	require(init == 1);
	return eventfd(0, EFD_CLOEXEC);
}

/* ---- the model ------------------------------------------------------------------------------- */

static size_t find(const uint32_t *list, size_t n, uint32_t handle)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == handle)
			return i;
	return n;
}

static const struct cell *living(uint32_t handle)
{
	return find(live, n_live, handle) < n_live ? w.cells[handle % WARDEN_CELLS_MAX] : NULL;
}

/* What the answer to a whole request has to be. */
static int expected(const struct warden_req *req, size_t n_fds)
{
	const struct cell *c = living(req->cell);

	if (req->version != WARDEN_VERSION)
		return -EPROTO;
	if (req->op == 0 || req->op >= WARDEN_OP_MAX_)
		return -ENOSYS;
	if (n_fds > (req->op == WARDEN_CREATE ? CELL_MOUNTS_MAX + 1 : 0))
		return -EINVAL;
	if (req->op == WARDEN_CREATE) {
		if (spec_check(&req->spec, NULL) < 0)
			return -EINVAL;
		int r = create_result(&req->spec);

		return r < 0 ? r : w.epoll < 0 ? -EBADF : 0;
	}
	if (!c)
		return -ENOENT;
	if (req->op == WARDEN_EVIDENCE && c->pid <= 0)
		return -ESRCH;
	return req->op == WARDEN_DESTROY ? destroy_result(&c->limits) : 0;
}

/* Hear the answer and compare; keep the lists of the living and the dead. */
static void check_reply(int sock, const struct warden_req *req, int code)
{
	static struct warden_reply reply;
	size_t n_fds = 2;
	int fds[2];

	require(fd_recv(sock, &reply, sizeof(reply), fds, &n_fds) == (ssize_t)sizeof(reply));
	require(reply.version == WARDEN_VERSION && reply.op == req->op && reply.seq == req->seq);
	require(reply.code == code);
	require(memchr(reply.msg, '\0', sizeof(reply.msg)) != NULL);
	require((reply.msg[0] != '\0') == (code < 0));
	bool carries = req->op == WARDEN_CREATE || req->op == WARDEN_EVIDENCE;

	require(n_fds == (code == 0 && carries ? 1 : 0));
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	if (req->op == WARDEN_CREATE && code == 0) {
		require(find(live, n_live, reply.cell) == n_live);
		require(find(dead, n_dead, reply.cell) == n_dead);
		live[n_live++] = reply.cell;
	}
}

static void forget(uint32_t handle)
{
	size_t i = find(live, n_live, handle);

	live[i] = live[--n_live];
	dead[n_dead++] = handle;
	require(w.cells[handle % WARDEN_CELLS_MAX] == NULL);
}

/* ---- one input ------------------------------------------------------------------------------- */

static void make_request(const struct step *s, const uint8_t *overlay, struct warden_req *req)
{
	size_t off = (size_t)(s->off[0] | s->off[1] << 8) % sizeof(*req);
	size_t room = sizeof(*req) - off;

	memset(req, 0, sizeof(*req));
	req->version = WARDEN_VERSION;
	req->op = s->op;
	req->seq = (uint64_t)s->target << 40 | s->len;
	if (s->shape & SHAPE_SPEC)
		spec_default(&req->spec);
	if (s->shape & SHAPE_LIVE && n_live)
		req->cell = live[s->target % n_live];
	if (s->shape & SHAPE_DEAD && n_dead)
		req->cell = dead[s->target % n_dead];
	if (s->len)
		memcpy((char *)req + off, overlay, s->len < room ? s->len : room);
}

/* Send it and let it be served. False: the conversation is over. */
static bool run_step(const int pair[2], const struct step *s, const uint8_t *overlay)
{
	static union {
		struct warden_req req;
		char bytes[sizeof(struct warden_req) + 1];
	} m;
	size_t n_fds = s->n_fds % (FD_PASS_MAX + 1), len = sizeof(m.req);
	int fds[FD_PASS_MAX];

	make_request(s, overlay, &m.req);
	if (s->shape & SHAPE_SHORT)
		len = 1 + (size_t)(s->off[0] | s->off[1] << 8) % (sizeof(m.req) - 1);
	else if (s->shape & SHAPE_LONG)
		len++;
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = pair[0];
	require(fd_send(pair[0], &m, len, fds, n_fds) == 0);
	int code = expected(&m.req, n_fds);
	bool was_living = living(m.req.cell) != NULL;
	bool served = dispatch_serve(&w, pair[1]);

	require(served == (len == sizeof(m.req)));
	if (!served)
		return false;
	check_reply(pair[0], &m.req, code);
	if (m.req.op == WARDEN_DESTROY && was_living && (code == 0 || code == -EBUSY))
		forget(m.req.cell);
	require(n_cells == n_live);
	return true;
}

static void run_steps(const int pair[2], const uint8_t *data, size_t size)
{
	for (int i = 0; i < STEPS_MAX; i++) {
		struct step s;

		if (size < sizeof(s))
			return;
		memcpy(&s, data, sizeof(s));
		data += sizeof(s);
		size -= sizeof(s);
		s.len = s.len < size ? s.len : (uint8_t)size;
		if (!run_step(pair, &s, data))
			return;
		data += s.len;
		size -= s.len;
	}
}

static void end_cells(void)
{
	for (size_t i = 0; i < n_live; i++) {
		struct cell **c = &w.cells[live[i] % WARDEN_CELLS_MAX];
		struct cell_usage ignored;

		require(*c && (*c)->handle == live[i]);
		(void)cell_destroy(*c, &ignored, NULL);
		free(*c);
		*c = NULL;
	}
	for (size_t i = 0; i < WARDEN_CELLS_MAX; i++)
		require(w.cells[i] == NULL);
	require(n_cells == 0);
	n_live = n_dead = 0;
}

/* The lowest free descriptor: the same before and after when none leaked. */
static int lowest_free(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	require(fd >= 0);
	(void)close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int pair[2], before = lowest_free();

	if (size == 0)
		return 0;
	require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	w.epoll = data[0] & INPUT_EPOLL_BROKEN ? -1 : epoll_create1(EPOLL_CLOEXEC);
	w.generation = 0;
	run_steps(pair, data + 1, size - 1);
	end_cells();
	fd_close(w.epoll);
	fd_close(pair[0]);
	fd_close(pair[1]);
	require(lowest_free() == before);
	return 0;
}
