/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.c - Making a cell and ending it, and hearing from its pid 1.
 *
 * Kernels are in seat.c. What a cell has to say comes over three lines: the warden's answers, the
 * channel to pid 1, and the pipes of its kernels. The end of a cell is first seen on the channel; how
 * it ended is then asked from the warden, and only with that answer is the holder told.
 */
#include "front/room/room.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "client/files_client.h"
#include "client/init_client.h"
#include "front/front.h"
#include "front/images/guest_image.h"
#include "front/log.h"
#include "front/metrics.h"
#include "front/room/seat.h"
#include "front/sandbox/sandbox_spec.h"
#include "front/workspaces/use.h"

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
	room_unkeep(r);
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
void room_lost(struct room *r)
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
		room_lost(r);
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
	case INIT_CONNECTED:
		room_forget(r, c);
		c->started(c, 0, fds, n_fds);
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
		if (m->id >= ROOM_SETTLE && m->id - ROOM_SETTLE < LANG_MAX_)
			seat_settled(&r->seats[m->id - ROOM_SETTLE]);
		else
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
			room_lost(r);
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

/* Packages that were installed; for a fetcher those that it may install. */
static size_t add_packages(const struct room *r, struct cell_spec *spec, int *fds)
{
	const struct packages *p = &r->f->packages;
	struct cell_mount *m = &spec->mounts[spec->n_mounts];
	int fd = r->fetcher ? p->dir_fd : p->shelf_fd;

	if (fd < 0)
		return 0;
	(void)snprintf(m->dst, sizeof(m->dst), "%s", r->fetcher ? PACKAGES_DIR : PACKAGES_PATH);
	m->flags = CELL_MOUNT_PLAIN;
	spec->n_mounts++;
	*fds = fd;
	return 1;
}

static size_t add_mounts(const struct room *r, struct cell_spec *spec, int *fds)
{
	size_t n = add_packages(r, spec, fds);

	if (!r->fetcher)
		n += mounts_add(r->f, &r->mounts, spec, fds + n);
	return n + workspace_use_mounts(r->workspace, spec, fds + n);
}

static int ask_for_cell(struct room *r)
{
	static struct warden_req q;
	struct front *f = r->f;
	int fds[CELL_FDS_MAX];
	size_t n = r->image->n_fds;

	memset(&q, 0, sizeof(q));
	q.op = WARDEN_CREATE;
	q.spec = f->spec;
	q.spec.limits = r->limits;
	image_spec(r->image, &q.spec);
	memcpy(fds, r->image->fds, n * sizeof(int));
	q.zygote = r->zygote;
	r->create_call.fn = on_created;
	r->create_call.arg = r;
	n += add_mounts(r, &q.spec, &fds[n]);
	return link_ask(&f->link, &r->create_call, &q, fds, n, NULL);
}

int room_watch(struct room *r, int channel)
{
	r->channel = (struct watch){ .fd = channel, .events = EPOLLIN, .fn = on_channel, .arg = r };
	return fcntl(channel, F_SETFL, O_NONBLOCK) < 0 ? -errno :
							 loop_add(&r->f->loop, &r->channel, NULL);
}

static void on_created(struct link_call *c, const struct warden_reply *reply, int *fds,
		       size_t n_fds)
{
	struct room *r = c->arg;

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
	if (room_watch(r, TAKE_FD(fds[0])) < 0)
		r->ops->failed(r, "the cell's channel could not be watched");
}

#define START_NS (30 * CLOCK_NS_PER_S)

static void on_late(struct timer *t)
{
	struct room *r = t->arg;

	r->ops->failed(r, "the cell was not ready in time");
}

struct room *room_new(struct guest_image *g, const struct cell_limits *limits)
{
	struct front *f = g->f;
	struct room *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct room){ .f = f, .image = g, .slot = -1 };
	r->channel.fd = -1;
	gauges_init(&r->gauges);
	r->limits = limits ? *limits : f->spec.limits;
	for (size_t i = 0; i < LANG_MAX_; i++)
		seat_init(&r->seats[i], r, &languages[i]);
	f->n_rooms++;
	return r;
}

/*
 * A channel, half a dozen gauges and a kernel's pipes, and as many again for the connection and the calls
 * of who uses it. Begun without them, a cell would be made and ended again, and the caller wait for that.
 */
#define ROOM_FILES 24

static int has_files(struct front *f, struct err *e)
{
	_fd_ int lowest = fcntl(f->link.watch.fd, F_DUPFD_CLOEXEC, 0); /* all below are taken */
	size_t rooms = 1;

	for (const struct guest_image *g = NULL; (g = images_next(f, g));)
		for (size_t i = 0; i < POOL_KINDS; i++) /* theirs are still to come */
			rooms += g->pool.shelves[i].n_making;
	if (lowest >= 0 && (size_t)lowest + rooms * ROOM_FILES <= f->files_max)
		return 0;
	return err_say(
		e, -EMFILE,
		"the daemon has no open files left for another one (limit %zu): end some, or raise "
		"its limit (LimitNOFILE, ulimit -n)",
		f->files_max);
}

struct room *room_make(struct guest_image *g, const struct sandbox_spec *spec, bool with_python,
		       const struct room_ops *ops, void *holder, struct err *e)
{
	struct front *f = g->f;

	if (g->lost) {
		(void)err_say(e, -ENOENT, "its image %.200s is not in the store any more", g->name);
		return NULL;
	}
	if (has_files(f, e) < 0)
		return NULL;
	struct room *r = room_new(g, spec ? &spec->limits : NULL);

	if (!r) {
		(void)err_say(e, -ENOMEM, "the daemon is out of memory");
		return NULL;
	}
	room_hold(r, ops, holder);
	r->want_python = with_python;
	r->fetcher = spec && spec->fetcher;
	r->workspace = spec ? &spec->workspace : NULL;
	r->mounts = spec ? spec->mounts.set : f->mounts.pooled;
	r->zygote = g->nursery.zygote;
	r->asked_ns = clock_now_ns();
	if (ask_for_cell(r) < 0) {
		f->n_rooms--;
		free(r);
		(void)err_say(e, -EPIPE, "the warden could not be asked");
		return NULL;
	}
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

bool room_hung_up(const struct room *r)
{
	struct pollfd p = { .fd = r->channel.fd };

	return r->lost || (poll(&p, 1, 0) > 0 && p.revents & POLLHUP);
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
	q->id = room_name(r);
	int ret = init_exec(r->channel.fd, q, e);

	if (ret == 0)
		enlist(r, c, q->id);
	return ret;
}

int room_files(struct room *r, struct room_command *c, struct files_request *q, struct err *e)
{
	if (r->lost || r->ending || !r->sealed)
		return err_set(e, -EPIPE, "the cell is over");
	q->id = room_name(r);
	int ret = files_ask(r->channel.fd, q, e);

	if (ret == 0)
		enlist(r, c, q->id);
	return ret;
}

int room_connect(struct room *r, struct room_command *c, uint32_t port, uint32_t family,
		 struct err *e)
{
	if (r->lost || r->ending || !r->sealed)
		return err_set(e, -EPIPE, "the cell is over");
	uint32_t id = room_name(r);
	int ret = init_connect(r->channel.fd, id, port, family, e);

	if (ret == 0)
		enlist(r, c, id);
	return ret;
}

int room_listen(struct room *r, struct room_command *c, enum init_listen_kind kind, uint32_t port,
		struct err *e)
{
	if (r->lost || r->ending || !r->sealed)
		return err_set(e, -EPIPE, "the cell is over");
	uint32_t id = room_name(r);
	int ret = init_listen(r->channel.fd, id, kind, port, e);

	if (ret == 0)
		enlist(r, c, id);
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
	for (size_t i = 0; i < LANG_MAX_; i++) {
		if (r->seats[i].state == SEAT_IDLE)
			r->seats[i].state = SEAT_ENDING;
		r->seats[i].killed = true;
	}
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
