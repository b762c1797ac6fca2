/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.c - Making a cell and ending it, and hearing from its pid 1.
 *
 * Kernels are in seat.c. What a cell has to say comes over three lines: the warden's answers, the
 * channel to pid 1, and the pipes of its kernels. The end of a cell is first seen on the channel; how
 * it ended is then asked from the warden, and only with that answer is the holder told.
 */
#include "front/room.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "client/files_client.h"
#include "client/init_client.h"
#include "front/front.h"
#include "front/log.h"
#include "front/metrics.h"
#include "front/seat.h"

#define GONE_TRIES 400u
#define GONE_AGAIN_NS (5 * CLOCK_NS_PER_MS)

/* ---- the end ----------------------------------------------------------------------------------- */

static void reap(struct deferred *d)
{
	struct room *r = d->arg;

	free(r);
}

void room_end(struct room *r)
{
	struct link *l = &r->f->link;

	if (r->ending)
		return;
	r->ending = true;
	for (size_t i = 0; i < LANG_MAX_; i++)
		seat_clear(&r->seats[i]);
	loop_del(&r->channel);
	r->channel.fd = fd_close(r->channel.fd);
	gauges_close(&r->gauges);
	timer_cancel(&r->start_timer);
	timer_cancel(&r->gone_timer);
	link_forget(l, &r->create_call);
	link_forget(l, &r->kernel_call);
	link_forget(l, &r->usage_call);
	link_forget(l, &r->gone_call);
	if (r->cell) {
		link_drop_cell(l, r->cell);
		metric_add(M_CELLS_DESTROYED, 1);
	}
	r->cell = 0;
	r->f->n_rooms--;
	r->reaper.fn = reap;
	r->reaper.arg = r;
	loop_defer(&r->f->loop, &r->reaper);
}

static void ask_how(struct timer *t)
{
	struct room *r = t->arg;

	if (link_ask_cell(&r->f->link, &r->gone_call, WARDEN_USAGE, r->cell, 0, NULL) < 0) {
		struct warden_reply none = { .code = -EPIPE };

		r->gone_call.fn(&r->gone_call, &none, NULL, 0);
	}
}

static void on_gone_usage(struct link_call *c, const struct warden_reply *reply, int *fds, size_t n)
{
	static const struct cell_usage unknown = { .end = CELL_END_INIT };
	struct room *r = c->arg;

	(void)fds;
	(void)n;
	/* We have seen the end of its channel before the warden has seen the end of its pid 1. */
	if (reply->code == 0 && reply->usage.end == CELL_RUNNING && r->gone_tries++ < GONE_TRIES) {
		r->gone_timer.fn = ask_how;
		r->gone_timer.arg = r;
		timer_set(&r->f->loop, &r->gone_timer, r->f->loop.now_ns + GONE_AGAIN_NS);
		return;
	}
	r->ops->gone(r, reply->code == 0 ? &reply->usage : &unknown);
}

/* The channel ended: pid 1 is dead or dying. */
static void lost(struct room *r)
{
	if (r->lost || r->ending)
		return;
	r->lost = true;
	loop_del(&r->channel);
	r->gone_call.fn = on_gone_usage;
	r->gone_call.arg = r;
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->seats[i].attached)
			kernel_drain(&r->seats[i].kernel);
	r->gone_timer.arg = r;
	if (!r->sealed)
		r->ops->failed(r, "the cell ended while it was being sealed");
	else
		ask_how(&r->gone_timer);
}

/* ---- pid 1 -------------------------------------------------------------------------------------- */

static void on_ready(struct room *r, const struct init_ready *ready)
{
	if (r->sealed) {
		lost(r);
		return;
	}
	r->sealed = true;
	r->layers = *ready;
	metric_observe(H_CELL_CREATE, clock_now_ns() - r->asked_ns);
	timer_cancel(&r->start_timer);
	if (r->want_python)
		room_start(r, &languages[LANG_PYTHON]);
	else
		r->ops->ready(r);
}

/* Names are given once in the life of a cell, so an answer can not be for somebody else. */
static void on_command(struct room *r, const struct init_msg *m, int *fds, size_t n_fds)
{
	struct room_command *c = r->commands;

	while (c && (!m->id || c->id != m->id))
		c = c->next;
	if (!c)
		return;
	switch (m->type) {
	case INIT_STARTED:
		c->started(c, m->u.pid, fds, n_fds);
		break;
	case INIT_FAILED:
		room_forget(r, c);
		c->failed(c, &m->u.failed);
		break;
	case INIT_EXITED:
		room_forget(r, c);
		c->exited(c, &m->u.exited);
		break;
	default:
		break;
	}
}

static void on_message(struct room *r, const struct init_msg *m, int *fds, size_t n_fds)
{
	struct seat *s = NULL;

	for (size_t i = 0; i < LANG_MAX_; i++)
		if (m->id && r->seats[i].command == m->id)
			s = &r->seats[i];
	if (r->sealed && m->id && !s)
		on_command(r, m, fds, n_fds);
	switch (m->type) {
	case INIT_READY:
		on_ready(r, &m->u.ready);
		break;
	case INIT_STARTED:
		if (s)
			seat_started(s, fds, n_fds);
		break;
	case INIT_FAILED:
		if (!r->sealed)
			r->ops->failed(r, "the cell could not be sealed");
		else if (s)
			seat_failed(s, &m->u.failed);
		break;
	case INIT_EXITED:
		if (s)
			seat_ended(s, m->u.exited.status);
		break;
	case INIT_DISK:
		r->ops->disk(r, &m->u.disk);
		break;
	default:
		break;
	}
}

static void on_channel(struct watch *w, uint32_t events)
{
	struct room *r = w->arg;

	(void)events;
	while (!r->ending && !r->lost) {
		struct init_msg m;
		int fds[INIT_FDS_MAX];
		size_t n_fds;
		int got = init_recv(w->fd, &m, fds, &n_fds, NULL);

		if (got == -EAGAIN)
			return;
		if (got != 1) {
			lost(r);
			return;
		}
		on_message(r, &m, fds, n_fds);
		for (size_t i = 0; i < n_fds; i++)
			fd_close(fds[i]);
	}
}

/* ---- the beginning ------------------------------------------------------------------------------- */

static void on_created(struct link_call *c, const struct warden_reply *reply, int *fds,
		       size_t n_fds);

static int ask_for_cell(struct room *r)
{
	static struct warden_req q;
	struct front *f = r->f;

	memset(&q, 0, sizeof(q));
	q.op = WARDEN_CREATE;
	q.spec = f->spec;
	q.spec.limits = r->limits;
	q.zygote = r->zygote;
	r->create_call.fn = on_created;
	r->create_call.arg = r;
	return link_ask(&f->link, &r->create_call, &q, &f->image_fd, f->image_fd >= 0 ? 1 : 0,
			NULL);
}

static void on_created(struct link_call *c, const struct warden_reply *reply, int *fds,
		       size_t n_fds)
{
	struct room *r = c->arg;
	struct err e = { 0 };

	/* The zygote died since we asked: the cell does without, and its kernel starts cold. */
	if (reply->code == -ENOENT && r->zygote) {
		r->zygote = 0;
		if (ask_for_cell(r) == 0)
			return;
	}
	if (reply->code >= 0) /* without a channel too, so that it is ended */
		r->cell = reply->cell;
	if (reply->code < 0 || n_fds < 1) {
		metric_add(M_CELLS_FAILED, 1);
		r->ops->failed(r, reply->code < 0 ? reply->msg : "the warden sent no channel");
		return;
	}
	gauges_take(&r->gauges, reply->gauges, fds + 1, n_fds - 1);
	metric_add(M_CELLS_CREATED, 1);
	r->channel = (struct watch){ .fd = fds[0], .events = EPOLLIN, .fn = on_channel, .arg = r };
	fds[0] = -1;
	if (fcntl(r->channel.fd, F_SETFL, O_NONBLOCK) < 0 ||
	    loop_add(&r->f->loop, &r->channel, &e) < 0)
		r->ops->failed(r, "the cell's channel could not be watched");
}

#define START_NS (30 * CLOCK_NS_PER_S)

static void on_late(struct timer *t)
{
	struct room *r = t->arg;

	r->ops->failed(r, "the cell was not ready in time");
}

struct room *room_make(struct front *f, const struct cell_limits *limits, bool with_python,
		       const struct room_ops *ops, void *holder)
{
	struct room *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct room){ .f = f, .ops = ops, .holder = holder, .want_python = with_python };
	r->channel.fd = -1;
	gauges_init(&r->gauges);
	r->limits = limits ? *limits : f->spec.limits;
	for (size_t i = 0; i < LANG_MAX_; i++)
		seat_init(&r->seats[i], r, &languages[i]);
	r->zygote = f->nursery.zygote;
	r->asked_ns = clock_now_ns();
	if (ask_for_cell(r) < 0) {
		free(r);
		return NULL;
	}
	f->n_rooms++;
	r->start_timer.fn = on_late;
	r->start_timer.arg = r;
	timer_set(&f->loop, &r->start_timer, f->loop.now_ns + START_NS);
	return r;
}

bool room_alive(const struct room *r)
{
	const struct seat *s = &r->seats[LANG_PYTHON];
	struct pollfd p[] = { { .fd = r->channel.fd, .events = POLLIN },
			      { .fd = s->pidfd.fd, .events = POLLIN } };

	/* Nothing is to be heard from a cell in which nothing runs yet. */
	return !r->lost && !r->ending && poll(p, ARRAY_SIZE(p), 0) == 0;
}

void room_hold(struct room *r, const struct room_ops *ops, void *holder)
{
	r->ops = ops;
	r->holder = holder;
}

/* ---- while it lives ------------------------------------------------------------------------------ */

void room_interrupt(struct room *r, struct seat *s)
{
	if (r->channel.fd < 0 || r->lost)
		return;
	if (s->command)
		(void)init_signal(r->channel.fd, s->command, INIT_TARGET_GROUP, 0, SIGINT, NULL);
	else if (s->pid > 1)
		(void)init_signal(r->channel.fd, 0, INIT_TARGET_PID_GROUP, s->pid, SIGINT, NULL);
}

static void enlist(struct room *r, struct room_command *c, uint32_t id)
{
	c->id = id;
	c->next = r->commands;
	r->commands = c;
}

int room_exec(struct room *r, struct room_command *c, struct exec_request *q, struct err *e)
{
	if (r->lost || r->ending || !r->sealed)
		return err_set(e, -EPIPE, "the cell is over");
	q->id = ++r->names;
	int ret = init_exec(r->channel.fd, q, e);

	if (ret == 0)
		enlist(r, c, q->id);
	return ret;
}

int room_files(struct room *r, struct room_command *c, struct files_request *q, struct err *e)
{
	if (r->lost || r->ending || !r->sealed)
		return err_set(e, -EPIPE, "the cell is over");
	q->id = ++r->names;
	int ret = files_ask(r->channel.fd, q, e);

	if (ret == 0)
		enlist(r, c, q->id);
	return ret;
}

void room_signal(struct room *r, const struct room_command *c, enum init_target target, int signo)
{
	if (c->id && !r->lost && r->channel.fd >= 0)
		(void)init_signal(r->channel.fd, c->id, target, 0, signo, NULL);
}

void room_signal_group(struct room *r, int pid, int signo)
{
	if (!r->lost && r->channel.fd >= 0)
		(void)init_signal(r->channel.fd, 0, INIT_TARGET_PID_GROUP, pid, signo, NULL);
}

void room_forget(struct room *r, struct room_command *c)
{
	for (struct room_command **at = &r->commands; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	c->id = 0;
	c->next = NULL;
}

void room_signal_all(struct room *r, int signo)
{
	if (r->channel.fd >= 0 && !r->lost)
		(void)init_signal(r->channel.fd, 0, INIT_TARGET_ALL, 0, signo, NULL);
}

void room_kill_all(struct room *r)
{
	if (r->channel.fd < 0 || r->lost)
		return;
	room_signal_all(r, SIGKILL);
	/* Whoever comes next must not be given a kernel that is about to die. */
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->seats[i].state == SEAT_IDLE)
			r->seats[i].state = SEAT_ENDING;
}

bool room_gauge(const struct room *r, struct cell_usage *u)
{
	return room_alive(r) && gauges_read(&r->gauges, u);
}

static void on_usage(struct link_call *c, const struct warden_reply *reply, int *fds, size_t n)
{
	static const struct cell_usage unknown;
	struct room *r = c->arg;

	(void)fds;
	(void)n;
	r->ops->usage(r, reply->code == 0 ? &reply->usage : &unknown);
}

void room_usage(struct room *r)
{
	if (r->usage_call.seq)
		return;
	r->usage_call.fn = on_usage;
	r->usage_call.arg = r;
	if (!r->cell ||
	    link_ask_cell(&r->f->link, &r->usage_call, WARDEN_USAGE, r->cell, 0, NULL) < 0) {
		struct warden_reply none = { .code = -EPIPE };

		on_usage(&r->usage_call, &none, NULL, 0);
	}
}

void room_disk(struct room *r)
{
	static const struct init_disk unknown;

	if (r->lost || r->channel.fd < 0 || init_disk(r->channel.fd, 0, NULL) < 0)
		r->ops->disk(r, &unknown);
}
