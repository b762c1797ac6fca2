/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_adopt.c - Takes over a cell of a former front, and the kernels that can still be used.
 *
 * A kernel that was idle is taken as it is. A kernel that was busy worked for a client that is
 * gone: it is interrupted, and used when it rests, see below. A kernel with half a message in its
 * pipe cannot be used any more and is killed. Other commands that pid 1 had started for the former
 * front have lost the other ends of their pipes, and are killed too; processes that the code of the
 * sandbox started go on.
 *
 * A busy kernel is interrupted, as for any client that goes away, and reports that it is done. It
 * may have reported that before the former front was killed, or may not have received the code:
 * then no report comes. So after the report, or after a moment, the front sends it an execution
 * without code, and only the end of that one counts: a report for one front must not be taken for
 * an answer to the next. If that end does not come within the usual grace, everything in the cell
 * is killed, and if the kernel does not even die, the cell is given up.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "client/init_client.h"
#include "front/cell/cell.h"
#include "front/cell/cells.h"
#include "front/cell/image_use.h"
#include "front/cell/keep.h"
#include "front/cell/kernel.h"
#include "front/support/name.h"

#define STEP_NS (200 * CLOCK_NS_PER_MS)
#define GRACE_NS (2 * CLOCK_NS_PER_S)
#define KILL_NS (5 * CLOCK_NS_PER_S)

/* ---- a kernel that was busy ---------------------------------------------------------------- */

static void probe(struct kernel *s)
{
	_buf_ struct buf b = BUF_INIT(256);
	struct json j;

	random_id(s->probe);
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "type", "execute");
	json_member_str(&j, "id", s->probe);
	json_member_str(&j, "name", "<adopted>");
	json_member_str(&j, "code", "");
	json_object_end(&j);
	if (json_finish(&j) == 0)
		kernel_pipes_send(&s->pipes, &b);
}

static void on_step(struct timer *t)
{
	static const struct cell_usage none = { .end = CELL_END_CLIENT };
	struct kernel *s = t->arg;
	struct cell *r = s->cell;
	uint64_t now = r->cells->loop->now_ns;

	if (now < s->settle_until_ns) {
		if (!s->probe[0])
			probe(s);
		else if (!s->rested)
			cell_interrupt(r, s);
		timer_set(r->cells->loop, t, now + STEP_NS);
	} else if (now < s->settle_until_ns + KILL_NS) {
		cell_kill_all(r);
		timer_set(r->cells->loop, t, s->settle_until_ns + KILL_NS);
	} else {
		r->ops->gone(r, &none);
	}
}

static void settle(struct kernel *s)
{
	struct cell *r = s->cell;

	s->state = KERNEL_BUSY;
	s->settling = true;
	s->rested = false;
	s->probe[0] = '\0';
	kernel_idle(&s->pipes, false);
	s->settle_until_ns = r->cells->loop->now_ns + GRACE_NS;
	s->settle.fn = on_step;
	s->settle.arg = s;
	timer_after(r->cells->loop, &s->settle, STEP_NS);
	cell_interrupt(r, s);
}

void kernel_unsettle(struct kernel *s)
{
	timer_cancel(&s->settle);
	s->settling = false;
}

void kernel_settle_message(struct kernel *s, const char *type, json_t *m)
{
	const char *id = json_string_value(json_object_get(m, "id"));

	if (strcmp(type, "execution_done") != 0) {
		s->cell->ops->stray(s, type, m);
		return;
	}
	if (!s->probe[0])
		probe(s);
	if (!id || strcmp(id, s->probe) != 0)
		return;
	s->rested = true;
	/* Interrupts may still be on their way, and must not reach the next execution. When pid 1
	 * has answered a request that came after them, all of them are delivered. */
	(void)init_disk(s->cell->channel.fd, CELL_SETTLE + s->language->id, NULL);
}

void kernel_settled(struct kernel *s)
{
	if (!s->settling || !s->rested)
		return;
	kernel_unsettle(s);
	s->state = KERNEL_IDLE;
	kernel_idle(&s->pipes, true);
	kernel_acknowledge(s); /* for a display that the former front had read */
	s->cell->ops->kernel_ready(s->cell, s);
}

bool cell_settling(const struct cell *r)
{
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->kernels[i].settling)
			return true;
	return false;
}

/* ---- adoption ------------------------------------------------------------------------------ */

static void on_claimed(struct warden_call *c, const struct warden_reply *reply, int *fds, size_t n)
{
	struct cell *r = c->arg;

	(void)fds;
	(void)n;
	if (reply->code < 0)
		cell_lost(r);
}

static void kill_kernel(struct cell *r, const struct keeper_kernel *was)
{
	if (was->command)
		(void)init_signal(r->channel.fd, was->command, INIT_TARGET_GROUP, 0, SIGKILL, NULL);
	else if (was->pid > 1)
		(void)init_signal(r->channel.fd, 0, INIT_TARGET_PID_GROUP, was->pid, SIGKILL, NULL);
}

/*
 * Whether a cell or kernel ended while there was no front. Otherwise a client's request would be
 * the first to notice.
 */
static bool is_over(int fd, short sign)
{
	struct pollfd p = { .fd = fd, .events = sign };

	return poll(&p, 1, 0) > 0 && p.revents & (sign | POLLHUP | POLLERR);
}

/* Return: whether the kernel was taken over, or its end will be reported. */
static bool adopt_kernel(struct kernel *s, const struct keeper_kernel *was)
{
	struct cell *r = s->cell;
	int fds[KEEPER_FDS_MAX];
	size_t want = was->command ? 4 : 5;
	size_t n = keep_take(r->cells->keep, keep_key(r->slot, KEEPER_KERNEL + s->language->id),
			     fds, ARRAY_SIZE(fds));
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
		settle(s);
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
	struct cells *cells = g->cells;
	int fds[KEEPER_FDS_MAX];
	size_t n = keep_take(cells->keep, keep_key(slot, KEEPER_CELL), fds, ARRAY_SIZE(fds));
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
	    warden_link_ask_cell(cells->link, &r->create_call, WARDEN_CLAIM, r->handle, 0, NULL) <
		    0) {
		r->handle = 0; /* so that cell_end() does not destroy it */
		cell_end(r);
		return -ENOENT;
	}
	*ret_lost = adopt_kernels(r, was);
	*ret = r;
	return 0;
}
