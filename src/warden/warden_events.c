/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_events.c - Events: a cell is made, runs out of memory or dies, a kernel ends, a zygote
 * answers or dies, a deadline passes. Requests that waited for an event are answered here.
 * Processes that died are collected in reap.c.
 */
#include "warden/dispatch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"

#define SLEEP_MAX_MS 3600000u
#define KERNEL_AGAIN_NS 2000000u
#define REMOVE_AGAIN_NS 1000000u
#define STRAYS_NS 2000000000u

bool answer(struct warden *w, enum warden_op op, uint64_t seq, int code, const struct err *e,
	    struct warden_reply *reply, const int *fds, size_t n_fds)
{
	reply->version = WARDEN_VERSION;
	reply->op = op;
	reply->seq = seq;
	reply->code = code;
	if (code < 0)
		(void)snprintf(reply->msg, sizeof(reply->msg), "%s", e->msg);
	/* A lost answer would leave a request waiting for ever: no other answer follows it. */
	if (!w->deaf)
		w->deaf = fd_send(w->sock, reply, sizeof(*reply), fds, n_fds) < 0;
	return !w->deaf;
}

static void answer_failed(struct warden *w, enum warden_op op, uint64_t seq, const struct err *e)
{
	struct warden_reply reply = { 0 };

	(void)answer(w, op, seq, e->code, e, &reply, NULL, 0);
}

int watch(struct warden *w, int fd, enum source s, uint32_t index, uint32_t serial, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = source_ref(s, index, serial) };

	if (s == SOURCE_MEMORY)
		ev.events |= EPOLLPRI | EPOLLET;
	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ?
		       err_set(e, -errno, "watch a descriptor") :
		       0;
}

/* ---- cells ----------------------------------------------------------------------------------- */

void check_before(struct warden *w, uint64_t at_ns)
{
	if (at_ns && (!w->next_check_ns || at_ns < w->next_check_ns))
		w->next_check_ns = at_ns;
}

void killed(struct warden *w, struct cell *c)
{
	uint64_t at = clock_now_ns() + STRAY_AGAIN_NS;

	if (!c->check_ns || at < c->check_ns)
		c->check_ns = at;
	check_before(w, c->check_ns);
}

void destroy_deadline(struct warden *w, struct cell *c)
{
	c->reap_ns = clock_now_ns() + CELL_REAP_MS * CLOCK_NS_PER_MS;
	killed(w, c);
}

static void forget(struct warden *w, struct cell *c)
{
	w->cells[c->index] = NULL;
	free(c);
}

static int watch_cell(struct warden *w, struct cell *c, struct err *e)
{
	int r = watch(w, c->l.pidfd, SOURCE_INIT, c->index, c->serial, e);

	if (r == 0 && c->has_cgroup && c->cgroup.oom_fd >= 0)
		r = watch(w, c->cgroup.oom_fd, SOURCE_MEMORY, c->index, c->serial, e);
	return r;
}

static void cell_is_made(struct warden *w, struct cell *c)
{
	struct warden_reply reply = { 0 };
	struct err e = { 0 };
	uint64_t seq = c->create_seq;
	int r = cell_made(c, &e);

	c->create_seq = 0;
	if (r == 0 && (r = watch_cell(w, c, &e)) < 0)
		cell_destroy(c, &w->remains);
	if (r < 0) {
		forget(w, c);
		answer_failed(w, WARDEN_CREATE, seq, &e);
		return;
	}
	check_before(w, c->check_ns);
	c->handle = new_handle(w, c->index);
	reply.cell = c->handle;
	reply.host_base = c->agent ? c->agent - c->config.uid : 0;
	int gauges[GAUGE_MAX_], fds[1 + GAUGE_MAX_] = { c->l.channel_fd };
	size_t n = 1;

	reply.gauges = c->want_gauges && c->has_cgroup ? cgroup_gauges(&c->cgroup, gauges) : 0;
	for (size_t i = 0; i < GAUGE_MAX_; i++)
		if (reply.gauges & 1u << i)
			fds[n++] = gauges[i];
	(void)answer(w, WARDEN_CREATE, seq, 0, &e, &reply, fds, n);
	while (n > 0)
		fd_close(fds[--n]);
	c->l.channel_fd = -1;
}

/* Answer a request for a kernel that will not come. */
static void refuse_kernel(struct warden *w, struct cell *c, int code, const char *why)
{
	struct err e = { 0 };

	cell_line_close(c);
	if (!c->kernel_seq)
		return;
	(void)err_say(&e, code, "%s", why);
	answer_failed(w, WARDEN_KERNEL, c->kernel_seq, &e);
	c->kernel_seq = 0;
}

static void answer_destroy(struct warden *w, struct cell *c, int r, const struct err *e,
			   struct warden_reply *reply)
{
	refuse_kernel(w, c, -ESRCH, "the cell was destroyed");
	if (c->destroy_seq != WARDEN_NOBODY)
		(void)answer(w, WARDEN_DESTROY, c->destroy_seq, r, e, reply, NULL, 0);
	forget(w, c);
}

void finish_destroy(struct warden *w, struct cell *c)
{
	struct warden_reply reply = { 0 };
	struct err e = { 0 };
	int r = cell_remove(c, &reply.usage, &e);

	if (r != -EAGAIN) {
		answer_destroy(w, c, r, &e, &reply);
		return;
	}
	c->check_ns = clock_now_ns() + REMOVE_AGAIN_NS;
	check_before(w, c->check_ns);
}

/* It does not die, or what is in its cgroup does not. */
static void give_up(struct warden *w, struct cell *c)
{
	struct warden_reply reply = { 0 };
	struct err e = { 0 };
	int r = err_say(&e, -EBUSY, CELL_STUCK);

	if (c->counted)
		reply.usage = c->final;
	else
		cell_usage(c, &reply.usage);
	cell_abandon(c, &w->remains);
	check_before(w, clock_now_ns());
	answer_destroy(w, c, r, &e, &reply);
}

void end_unclaimed(struct warden *w, struct cell *c)
{
	cell_kill(c, CELL_END_CLIENT);
	refuse_kernel(w, c, -ESRCH, "the cell was destroyed");
	if (c->plan || c->l.pid <= 0) { /* in the making, or over already: nothing to wait for */
		cell_destroy(c, &w->remains);
		forget(w, c);
		return;
	}
	c->handle = 0;
	c->destroy_seq = WARDEN_NOBODY;
	destroy_deadline(w, c);
}

void init_ended(struct warden *w, struct cell *c)
{
	/* The descriptor stays readable for ever after: once is enough. */
	(void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->l.pidfd, NULL);
	cell_reaped(c);
	if (c->destroy_seq)
		finish_destroy(w, c);
	else
		refuse_kernel(w, c, -ESRCH, "the cell is over");
}

/*
 * A dead kernel that cannot be collected yet, because a debugger holds it, is looked at again
 * later: its descriptor stays readable, and would wake the loop with every turn.
 */
static void kernel_ended(struct warden *w, struct cell *c)
{
	if (c->kernel != KERNEL_RUNS || cell_kernel_reaped(c) == 0)
		return;
	uint64_t at = clock_now_ns() + (KERNEL_AGAIN_NS << c->kernel_tries);

	(void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->kernel_pidfd, NULL);
	c->kernel_tries += c->kernel_tries < 9 ? 1 : 0;
	if (!c->check_ns || at < c->check_ns)
		c->check_ns = at;
	check_before(w, c->check_ns);
}

/* ---- zygotes --------------------------------------------------------------------------------- */

static void zygote_is_made(struct warden *w, struct zygote *z)
{
	struct warden_reply reply = { 0 };
	struct err e = { 0 };
	uint64_t seq = z->create_seq;
	int r = zygote_made(z, &e);

	if (r == 0 && (r = watch(w, z->l.channel_fd, SOURCE_ZYGOTE, z->index, z->serial, &e)) < 0)
		zygote_remove(w, z);
	if (r < 0) {
		w->zygotes[z->index] = NULL;
		free(z);
		answer_failed(w, WARDEN_ZYGOTE, seq, &e);
		return;
	}
	z->handle = new_handle(w, z->index);
	reply.zygote = z->handle;
	(void)answer(w, WARDEN_ZYGOTE, seq, 0, &e, &reply, &z->l.status_fd, 1);
	z->l.status_fd = fd_close(z->l.status_fd);
}

void zygote_remove(struct warden *w, struct zygote *z)
{
	pid_t pid = zygote_end(z, &w->remains);

	w->zygotes[z->index] = NULL;
	reap_add_stray(w, pid);
	w->strays_until_ns = clock_now_ns() + STRAYS_NS;
	check_before(w, clock_now_ns() + REMOVE_AGAIN_NS);
}

void zygote_gone(struct warden *w, struct zygote *z)
{
	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++)
		if (w->cells[i] && w->cells[i]->zygote == z->handle && w->cells[i]->kernel_seq)
			refuse_kernel(w, w->cells[i], -EPIPE, "the zygote died");
	zygote_remove(w, z);
	free(z);
	reap_strays(w);
}

static void adopt_kernel(struct warden *w, struct cell *c, pid_t pid)
{
	struct warden_reply reply = { 0 };
	struct err e = { 0 };
	uint64_t seq = c->kernel_seq;
	int r = zygote_adopt(c, pid, &e);

	if (r == 0)
		r = watch(w, c->kernel_pidfd, SOURCE_KERNEL, c->index, c->serial, &e);
	if (r < 0) {
		refuse_kernel(w, c, r, e.msg);
		return;
	}
	int fds[2 + KERNEL_PIPES] = { c->hello_fd, c->kernel_pidfd };

	memcpy(&fds[2], c->pipes, sizeof(c->pipes));
	reply.cell = c->handle;
	c->kernel_seq = 0;
	(void)answer(w, WARDEN_KERNEL, seq, 0, &e, &reply, fds, ARRAY_SIZE(fds));
	cell_line_close(c);
}

static void zygote_speaks(struct warden *w, struct zygote *z)
{
	uint32_t handle;
	int code;
	pid_t pid;
	int r = zygote_answer(z, &handle, &code, &pid);

	if (r == -EAGAIN)
		return;
	if (r == 0) {
		zygote_gone(w, z);
		return;
	}
	struct cell *c = cell_of(w, handle);

	/* The cell may be gone since: its kernel went with it. */
	if (!c || c->zygote != z->handle || !c->kernel_seq) {
		if (code == 0)
			reap_add_stray(w, pid);
		reap_strays(w);
	} else if (code < 0) {
		refuse_kernel(w, c, code, "the zygote could not fork a kernel");
	} else {
		adopt_kernel(w, c, pid);
	}
}

/* ---- all of them --------------------------------------------------------------------------- */

void dispatch_event(struct warden *w, uint64_t ref)
{
	enum source source = source_of(ref);
	uint32_t index = ref >> 32 & 0xfffffff, serial = (uint32_t)ref;
	struct cell *c = w->cells[index % WARDEN_CELLS_MAX];
	struct zygote *z = w->zygotes[index % WARDEN_ZYGOTES_MAX];

	/* The entry that was watched may be gone since, and another one in its place. */
	c = c && c->serial == serial ? c : NULL;
	z = z && z->serial == serial ? z : NULL;
	switch (source) {
	case SOURCE_MADE:
		if (c && c->plan)
			cell_is_made(w, c);
		break;
	case SOURCE_INIT:
		if (c && c->l.pid > 0 && !c->plan)
			init_ended(w, c);
		break;
	case SOURCE_MEMORY:
		if (c && c->has_cgroup)
			cell_memory_event(c);
		if (c && c->end != CELL_RUNNING)
			killed(w, c);
		break;
	case SOURCE_KERNEL:
		if (c)
			kernel_ended(w, c);
		break;
	case SOURCE_ZYGOTE_MADE:
		if (z && z->plan)
			zygote_is_made(w, z);
		break;
	case SOURCE_ZYGOTE:
		if (z && !z->plan)
			zygote_speaks(w, z);
		break;
	case SOURCE_CLIENT:
	case SOURCE_MAX_:
		break;
	}
}

/*
 * A zygote that does not answer is stuck, with whatever else was asked of it. It is ended, so that
 * no late answer can be taken for that to another question.
 */
static void kernel_is_late(struct warden *w, struct cell *c)
{
	struct zygote *z = zygote_of(w, c->zygote);

	refuse_kernel(w, c, -ETIMEDOUT, "the zygote did not answer in time");
	if (z)
		zygote_gone(w, z);
}

static void check_cell(struct warden *w, struct cell *c, uint64_t now)
{
	if (c->plan) {
		launch_abort(&c->l); /* not made within LAUNCH_DEADLINE_NS */
		struct err e = { 0 };
		uint64_t seq = c->create_seq;

		cell_destroy(c, &w->remains);
		forget(w, c);
		(void)err_say(&e, -ETIMEDOUT, "the cell was not ready in time");
		answer_failed(w, WARDEN_CREATE, seq, &e);
	} else if (c->destroy_seq && now >= c->reap_ns) {
		give_up(w, c);
	} else if (c->destroy_seq && c->l.pid <= 0) {
		finish_destroy(w, c);
	} else if (c->kernel_seq && now >= c->kernel_due_ns) {
		c->check_ns = now; /* for its limits, in the next round */
		check_before(w, now);
		kernel_is_late(w, c);
	} else {
		c->check_ns = cell_check(c, now);
		if (c->kernel_tries)
			kernel_ended(w, c);
		if (c->kernel_seq && (!c->check_ns || c->kernel_due_ns < c->check_ns))
			c->check_ns = c->kernel_due_ns;
		check_before(w, c->check_ns);
	}
}

static void check_zygote(struct warden *w, struct zygote *z, uint64_t now)
{
	struct err e = { 0 };

	if (now < z->deadline_ns) {
		check_before(w, z->deadline_ns);
		return;
	}
	zygote_remove(w, z);
	(void)err_say(&e, -ETIMEDOUT, "the zygote was not ready in time");
	answer_failed(w, WARDEN_ZYGOTE, z->create_seq, &e);
	free(z);
}

int dispatch_check(struct warden *w)
{
	uint64_t now = clock_now_ns();

	if (w->next_check_ns && now >= w->next_check_ns) {
		bool dying = false;

		w->next_check_ns = 0;
		for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++) {
			struct cell *c = w->cells[i];

			dying |= c && c->destroy_seq;
			if (c && c->check_ns && now >= c->check_ns)
				check_cell(w, c, now);
			else if (c)
				check_before(w, c->check_ns);
		}
		for (uint32_t i = 0; i < WARDEN_ZYGOTES_MAX; i++)
			if (w->zygotes[i] && w->zygotes[i]->plan)
				check_zygote(w, w->zygotes[i], now);
		/* Also those that were not reported, because their zygote died first. */
		if (dying || w->n_strays > 0 || w->remains.n > 0 || now < w->strays_until_ns)
			reap_strays(w);
		check_before(w, remains_check(&w->remains, now));
	}
	if (!w->next_check_ns)
		return -1;
	if (w->next_check_ns <= now)
		return 0;
	uint64_t ms = (w->next_check_ns - now) / CLOCK_NS_PER_MS + 1;

	return ms > SLEEP_MAX_MS ? (int)SLEEP_MAX_MS : (int)ms;
}
