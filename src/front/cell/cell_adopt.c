/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_adopt.c - A cell that a former front had: it lives, and most of its kernels can be used.
 *
 * A kernel that was idle is taken as it is. One that was busy worked for a client who is gone: it
 * is interrupted, and used when it rests (kernel_settle.c). One that has half a message in its pipe
 * can not be spoken to any more and is killed. Everything else that pid 1 had started for the
 * former front, whose other ends went with it, is killed too; what the sandbox's code started by
 * itself goes on.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "base/fd.h"
#include "client/init_client.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/cell/keep.h"
#include "front/cell/kernel.h"
#include "front/support/front.h"

static void on_claimed(struct warden_call *c, const struct warden_reply *reply, int *fds, size_t n)
{
	struct cell *r = c->arg;

	(void)fds;
	(void)n;
	if (reply->code < 0)
		cell_lost(r);
}

/* Whoever it was, nobody speaks to it any more. */
static void kill_kernel(struct cell *r, const struct keeper_kernel *was)
{
	if (was->command)
		(void)init_signal(r->channel.fd, was->command, INIT_TARGET_GROUP, 0, SIGKILL, NULL);
	else if (was->pid > 1)
		(void)init_signal(r->channel.fd, 0, INIT_TARGET_PID_GROUP, was->pid, SIGKILL, NULL);
}

/* What has ended while there was no front is not found out by somebody's request. */
static bool is_over(int fd, short sign)
{
	struct pollfd p = { .fd = fd, .events = sign };

	return poll(&p, 1, 0) > 0 && p.revents & (sign | POLLHUP | POLLERR);
}

/* Return: whether it is there, be it for its end. */
static bool adopt_kernel(struct kernel *s, const struct keeper_kernel *was)
{
	struct cell *r = s->cell;
	int fds[KEEPER_FDS_MAX];
	size_t want = was->command ? 4 : 5;
	size_t n = keep_take(r->f->keep, keep_key(r->slot, KEEPER_KERNEL + s->language->id), fds,
			     ARRAY_SIZE(fds));
	bool joined = n == want && !is_over(fds[KERNEL_FD_OUT], 0) &&
		      !(n > KERNEL_FDS && is_over(fds[KERNEL_FDS], POLLIN)) &&
		      kernel_join(s, was, fds, n);

	for (size_t i = 0; !joined && i < n; i++)
		fd_close(fds[i]);
	if (!joined || was->writing || was->state == KEPT_ENDING) {
		kill_kernel(r, was);
		if (joined)
			s->state = KERNEL_ENDING;
		return joined;
	}
	s->state = KERNEL_IDLE;
	if (was->state == KEPT_BUSY)
		kernel_settle(s);
	return true;
}

static unsigned int adopt_kernels(struct cell *r, const struct keeper_slot *was)
{
	uint32_t spare[LANG_MAX_];
	unsigned int lost = 0;

	for (size_t i = 0; i < LANG_MAX_; i++)
		spare[i] = was->kernels[i].state != KEPT_EMPTY ? was->kernels[i].command : 0;
	(void)init_signal_others(r->channel.fd, spare, ARRAY_SIZE(spare), SIGKILL, NULL);
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (was->kernels[i].state != KEPT_EMPTY &&
		    !adopt_kernel(&r->kernels[i], &was->kernels[i]))
			lost++;
	return lost;
}

int cell_adopt(struct image_use *g, const struct cell_limits *limits, int slot,
	       const struct keeper_slot *was, struct cell **ret, unsigned int *ret_lost)
{
	struct front *f = g->f;
	int fds[KEEPER_FDS_MAX];
	size_t n = keep_take(f->keep, keep_key(slot, KEEPER_CELL), fds, ARRAY_SIZE(fds));
	bool over = n > 0 && is_over(fds[0], 0);
	struct cell *r = n > 0 && !over ? cell_new(g, limits) : NULL;

	if (!r) {
		while (n > 0)
			fd_close(fds[--n]);
		return over ? -ESRCH : -ENOENT;
	}
	r->handle = was->cell;
	r->slot = slot;
	r->names = was->names;
	r->layers = was->layers;
	r->sealed = true;
	gauges_take(&r->gauges, was->gauges, fds + 1, n - 1);
	for (size_t i = 1; i < n; i++)
		fd_close(fds[i]);
	r->create_call.fn = on_claimed;
	r->create_call.arg = r;
	if (cell_watch(r, fds[0]) < 0 ||
	    warden_link_ask_cell(f->link, &r->create_call, WARDEN_CLAIM, r->handle, 0, NULL) < 0) {
		r->handle = 0; /* not ours, then */
		cell_end(r);
		return -ENOENT;
	}
	*ret_lost = adopt_kernels(r, was);
	*ret = r;
	return 0;
}
