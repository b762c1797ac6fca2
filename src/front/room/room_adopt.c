/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room_adopt.c - A room that a former front had: its cell lives, and most of its kernels can be used.
 *
 * A kernel that was idle is taken as it is. One that was busy worked for a client who is gone: it is
 * interrupted, and used when it rests (seat_settle.c). One that has half a message in its pipe can not
 * be spoken to any more and is killed. Everything else that pid 1 had started for the former front, whose other
 * ends went with it, is killed too; what the sandbox's code started by itself goes on.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "base/fd.h"
#include "client/init_client.h"
#include "front/front.h"
#include "front/room/room.h"
#include "front/room/seat.h"
#include "front/sandbox/keep.h"

static void on_claimed(struct link_call *c, const struct warden_reply *reply, int *fds, size_t n)
{
	struct room *r = c->arg;

	(void)fds;
	(void)n;
	if (reply->code < 0)
		room_lost(r);
}

/* Whoever it was, nobody speaks to it any more. */
static void kill_kernel(struct room *r, const struct keeper_seat *was)
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
static bool adopt_seat(struct seat *s, const struct keeper_seat *was)
{
	struct room *r = s->room;
	int fds[KEEPER_FDS_MAX];
	size_t want = was->command ? 4 : 5;
	size_t n = keep_take(&r->f->keep, keep_key(r->slot, KEEPER_SEAT + s->language->id), fds,
			     ARRAY_SIZE(fds));
	bool joined = n == want && !is_over(fds[KERNEL_FD_OUT], 0) &&
		      !(n > KERNEL_FDS && is_over(fds[KERNEL_FDS], POLLIN)) &&
		      seat_join(s, was, fds, n);

	for (size_t i = 0; !joined && i < n; i++)
		fd_close(fds[i]);
	if (!joined || was->writing || was->state == KEPT_ENDING) {
		kill_kernel(r, was);
		if (joined)
			s->state = SEAT_ENDING;
		return joined;
	}
	s->state = SEAT_IDLE;
	if (was->state == KEPT_BUSY)
		seat_settle(s);
	return true;
}

static unsigned int adopt_seats(struct room *r, const struct keeper_slot *was)
{
	uint32_t spare[LANG_MAX_];
	unsigned int lost = 0;

	for (size_t i = 0; i < LANG_MAX_; i++)
		spare[i] = was->seats[i].state != KEPT_EMPTY ? was->seats[i].command : 0;
	(void)init_signal_others(r->channel.fd, spare, ARRAY_SIZE(spare), SIGKILL, NULL);
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (was->seats[i].state != KEPT_EMPTY && !adopt_seat(&r->seats[i], &was->seats[i]))
			lost++;
	return lost;
}

int room_adopt(struct guest_image *g, const struct cell_limits *limits, int slot,
	       const struct keeper_slot *was, struct room **ret, unsigned int *ret_lost)
{
	struct front *f = g->f;
	int fds[KEEPER_FDS_MAX];
	size_t n = keep_take(&f->keep, keep_key(slot, KEEPER_ROOM), fds, ARRAY_SIZE(fds));
	bool over = n > 0 && is_over(fds[0], 0);
	struct room *r = n > 0 && !over ? room_new(g, limits) : NULL;

	if (!r) {
		while (n > 0)
			fd_close(fds[--n]);
		return over ? -ESRCH : -ENOENT;
	}
	r->cell = was->cell;
	r->slot = slot;
	r->names = was->names;
	r->layers = was->layers;
	r->sealed = true;
	gauges_take(&r->gauges, was->gauges, fds + 1, n - 1);
	for (size_t i = 1; i < n; i++)
		fd_close(fds[i]);
	r->create_call.fn = on_claimed;
	r->create_call.arg = r;
	if (room_watch(r, fds[0]) < 0 ||
	    link_ask_cell(&f->link, &r->create_call, WARDEN_CLAIM, r->cell, 0, NULL) < 0) {
		r->cell = 0; /* not ours, then */
		room_end(r);
		return -ENOENT;
	}
	*ret_lost = adopt_seats(r, was);
	*ret = r;
	return 0;
}
