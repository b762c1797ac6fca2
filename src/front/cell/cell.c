/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.c - A cell: how it is made, the messages of its pid 1, its usage, and its end.
 *
 * kernel.c has its kernels, cell_command.c everything else that runs in it. The warden makes a cell
 * and replies with the channel to pid 1, on which pid 1 reports that it is ready. For a cell that
 * is not sealed in time or cannot be made, failed is called, and the holder ends it.
 *
 * Messages about a cell come in three ways: replies of the warden, the channel to pid 1, and the
 * pipes of the kernels. The end of a cell shows on the channel first; then the front asks the
 * warden how it ended, and calls gone with the reply.
 */
#include "front/cell/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "client/init_client.h"
#include "front/cell/cells.h"
#include "front/cell/image_use.h"
#include "front/cell/kernel.h"
#include "front/support/log.h"
#include "front/support/metrics.h"

#define START_NS (30 * CLOCK_NS_PER_S)
#define GONE_TRIES 400u
#define GONE_AGAIN_NS (5 * CLOCK_NS_PER_MS)

/* ---- making -------------------------------------------------------------------------------- */

static void on_created(struct warden_call *c, const struct warden_reply *reply, int *fds,
		       size_t n_fds);

static size_t add_mounts(const struct cell *r, struct cell_spec *spec, int *fds)
{
	bool fetcher = r->want && r->want->fetcher;
	const struct cell_hooks *h = r->cells->hooks;
	size_t n = h->mounts(h->packages, fetcher, spec, fds);

	if (!fetcher)
		n += mounts_add(r->cells->mounts, &r->mounts, spec, fds + n);
	return n + (r->want ? r->want->add_mounts(r->want, spec, fds + n) : 0);
}

static int ask_for_cell(struct cell *r)
{
	static struct warden_req q;
	struct cells *cells = r->cells;
	int fds[CELL_FDS_MAX];
	size_t n = r->image->n_fds;

	memset(&q, 0, sizeof(q));
	q.op = WARDEN_CREATE;
	q.spec = cells->spec;
	q.spec.limits = r->limits;
	image_spec(r->image, &q.spec);
	memcpy(fds, r->image->fds, n * sizeof(int));
	q.zygote = r->zygote;
	q.want_gauges = 1;
	q.want_live = 1;
	r->create_call.fn = on_created;
	r->create_call.arg = r;
	n += add_mounts(r, &q.spec, &fds[n]);
	return warden_link_ask(cells->link, &r->create_call, &q, fds, n, NULL);
}

static void on_created(struct warden_call *c, const struct warden_reply *reply, int *fds,
		       size_t n_fds)
{
	struct cell *r = c->arg;

	/* The zygote died meanwhile: the cell is made without it, and its kernel starts cold. */
	if (reply->code == -ENOENT && r->zygote) {
		r->zygote = 0;
		if (ask_for_cell(r) == 0)
			return;
	}
	if (reply->code >= 0) /* also without a channel: the cell has to be ended */
		r->handle = reply->cell;
	if (reply->code < 0 || n_fds < 1) {
		metric_add(M_CELLS_FAILED, 1);
		r->ops->failed(r, reply->code < 0 ? reply->msg : "the warden sent no channel");
		return;
	}
	gauges_take(&r->gauges, reply->gauges, fds + 1, n_fds - 1);
	metric_add(M_CELLS_CREATED, 1);
	if (cell_watch(r, TAKE_FD(fds[0])) < 0)
		r->ops->failed(r, "the cell's channel could not be watched");
}

static void on_late(struct timer *t)
{
	struct cell *r = t->arg;

	r->ops->failed(r, "the cell was not ready in time");
}

struct cell *cell_new(struct image_use *g, const struct cell_limits *limits)
{
	struct cells *cells = g->cells;
	struct cell *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct cell){ .cells = cells, .image = g, .slot = -1 };
	r->channel.fd = -1;
	gauges_init(&r->gauges);
	r->limits = limits ? *limits : cells->spec.limits;
	for (size_t i = 0; i < LANG_MAX_; i++)
		kernel_init(&r->kernels[i], r, &languages[i]);
	cells->n++;
	return r;
}

/*
 * Descriptors per cell: a channel, eight gauges and a kernel's pipes, and as many again for
 * the connection and the calls of its client. Without a check for them, a cell would be made and
 * ended again while the client waits.
 */
#define CELL_FILES 28

static int has_files(struct cells *cells, struct err *e)
{
	/* All descriptors below this one are in use. */
	_fd_ int lowest = fcntl(cells->link->link.watch.fd, F_DUPFD_CLOEXEC, 0);
	size_t n = 1;

	for (const struct image_use *g = NULL; (g = images_next(cells, g));)
		for (size_t i = 0; i < POOL_KINDS; i++) /* these cells will open theirs */
			n += g->pool.rows[i].n_making;
	if (lowest >= 0 && (size_t)lowest + n * CELL_FILES <= cells->daemon->files_max)
		return 0;
	return err_say(
		e, -EMFILE,
		"the daemon has no open files left for another one (limit %zu): end some, or raise "
		"its limit (LimitNOFILE, ulimit -n)",
		cells->daemon->files_max);
}

struct cell *cell_make(struct image_use *g, const struct cell_want *want, bool with_python,
		       const struct cell_ops *ops, void *holder, struct err *e)
{
	struct cells *cells = g->cells;

	if (g->lost) {
		(void)err_say(e, -ENOENT, "its image %.200s is not in the store any more", g->name);
		return NULL;
	}
	if (has_files(cells, e) < 0)
		return NULL;
	struct cell *r = cell_new(g, want ? &want->limits : NULL);

	if (!r) {
		(void)err_say(e, -ENOMEM, "the daemon is out of memory");
		return NULL;
	}
	cell_hold(r, ops, holder);
	r->want_python = with_python;
	r->want = want;
	r->mounts = want ? want->mounts : cells->mounts->pooled;
	r->zygote = g->supply.zygote;
	r->asked_ns = clock_now_ns();
	if (ask_for_cell(r) < 0) {
		cells->n--;
		free(r);
		(void)err_say(e, -EPIPE, "the warden could not be asked");
		return NULL;
	}
	r->start_timer.fn = on_late;
	r->start_timer.arg = r;
	timer_after(cells->loop, &r->start_timer, START_NS);
	return r;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void reap(struct deferred *d)
{
	struct cell *r = d->arg;

	free(r);
}

void cell_end(struct cell *r)
{
	struct warden_link *l = r->cells->link;

	if (r->ending)
		return;
	r->ending = true;
	for (size_t i = 0; i < LANG_MAX_; i++)
		kernel_clear(&r->kernels[i]);
	cell_unkeep(r);
	loop_del(&r->channel);
	r->channel.fd = fd_close(r->channel.fd);
	gauges_close(&r->gauges);
	timer_cancel(&r->start_timer);
	timer_cancel(&r->gone_timer);
	warden_link_forget(l, &r->create_call);
	warden_link_forget(l, &r->kernel_call);
	warden_link_forget(l, &r->usage_call);
	warden_link_forget(l, &r->gone_call);
	if (r->handle) {
		log_event(LOG_LEVEL_DEBUG, "cell_end", F_UINT("cell", r->handle));
		warden_link_drop_cell(l, r->handle);
		metric_add(M_CELLS_DESTROYED, 1);
	}
	r->handle = 0;
	r->cells->n--;
	r->reaper.fn = reap;
	r->reaper.arg = r;
	loop_defer(r->cells->loop, &r->reaper);
}

static void ask_how(struct timer *t)
{
	struct cell *r = t->arg;

	if (warden_link_ask_cell(r->cells->link, &r->gone_call, WARDEN_USAGE, r->handle, 0, NULL) <
	    0) {
		struct warden_reply none = { .code = -EPIPE };

		r->gone_call.fn(&r->gone_call, &none, NULL, 0);
	}
}

static void on_gone_usage(struct warden_call *c, const struct warden_reply *reply, int *fds,
			  size_t n)
{
	static const struct cell_usage unknown = { .end = CELL_END_INIT };
	struct cell *r = c->arg;

	(void)fds;
	(void)n;
	/* The warden has not seen the end of pid 1 yet, which the channel has shown: ask again. */
	if (reply->code == 0 && reply->usage.end == CELL_RUNNING && r->gone_tries++ < GONE_TRIES) {
		r->gone_timer.fn = ask_how;
		r->gone_timer.arg = r;
		timer_after(r->cells->loop, &r->gone_timer, GONE_AGAIN_NS);
		return;
	}
	r->ops->gone(r, reply->code == 0 ? &reply->usage : &unknown);
}

/* The channel ended: pid 1 is dead or dying. */
void cell_lost(struct cell *r)
{
	if (r->lost || r->ending)
		return;
	r->lost = true;
	loop_del(&r->channel);
	r->gone_call.fn = on_gone_usage;
	r->gone_call.arg = r;
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->kernels[i].attached)
			kernel_pipes_drain(&r->kernels[i].pipes);
	r->gone_timer.arg = r;
	if (!r->sealed)
		r->ops->failed(r, "the cell ended while it was being sealed");
	else
		ask_how(&r->gone_timer);
}

void cell_refuse(struct cell *r, const char *why)
{
	if (r->lost || r->ending)
		return;
	log_event(LOG_LEVEL_WARNING, "cell_refused", F_UINT("cell", r->handle), F_STR("why", why));
	cell_lost(r);
}

/* ---- pid 1 --------------------------------------------------------------------------------- */

static void on_ready(struct cell *r, const struct init_ready *ready)
{
	if (r->sealed) {
		cell_lost(r);
		return;
	}
	r->sealed = true;
	r->layers = *ready;
	metric_observe(H_CELL_CREATE, clock_now_ns() - r->asked_ns);
	log_event(LOG_LEVEL_DEBUG, "cell_ready", F_UINT("cell", r->handle),
		  F_STR("image", r->image->name), F_MS("ms", clock_now_ns() - r->asked_ns));
	timer_cancel(&r->start_timer);
	if (r->want_python)
		cell_start(r, &languages[LANG_PYTHON]);
	else
		r->ops->ready(r);
}

static void on_message(struct cell *r, const struct init_msg *m, int *fds, size_t n_fds)
{
	struct kernel *s = NULL;

	for (size_t i = 0; i < LANG_MAX_; i++)
		if (m->id && r->kernels[i].command == m->id)
			s = &r->kernels[i];
	if (r->sealed && m->id && !s)
		cell_command_heard(r, m, fds, n_fds);
	switch (m->type) {
	case INIT_READY:
		on_ready(r, &m->u.ready);
		break;
	case INIT_STARTED:
		if (s)
			kernel_started(s, fds, n_fds);
		break;
	case INIT_FAILED:
		if (!r->sealed)
			r->ops->failed(r, "the cell could not be sealed");
		else if (s)
			kernel_failed(s, &m->u.failed);
		break;
	case INIT_EXITED:
		if (s)
			kernel_ended(s, m->u.exited.status);
		break;
	case INIT_DISK:
		if (m->id >= CELL_SETTLE && m->id - CELL_SETTLE < LANG_MAX_)
			kernel_settled(&r->kernels[m->id - CELL_SETTLE]);
		else
			r->ops->disk(r, &m->u.disk);
		break;
	default:
		break;
	}
}

static void on_channel(struct watch *w, uint32_t events)
{
	struct cell *r = w->arg;

	(void)events;
	while (!r->ending && !r->lost) {
		struct init_msg m;
		int fds[INIT_FDS_MAX];
		size_t n_fds;
		int got = init_recv(w->fd, &m, fds, &n_fds, NULL);

		if (got == -EAGAIN)
			return;
		if (got != 1) {
			cell_lost(r);
			return;
		}
		on_message(r, &m, fds, n_fds);
		for (size_t i = 0; i < n_fds; i++)
			foreign_close(fds[i]);
	}
}

int cell_watch(struct cell *r, int channel)
{
	r->channel = (struct watch){ .fd = channel, .events = EPOLLIN, .fn = on_channel, .arg = r };
	return fcntl(channel, F_SETFL, O_NONBLOCK) < 0 ?
		       -errno :
		       loop_add(r->cells->loop, &r->channel, NULL);
}

/* ---- state and usage ----------------------------------------------------------------------- */

bool cell_alive(const struct cell *r)
{
	const struct kernel *s = &r->kernels[LANG_PYTHON];
	struct pollfd p[] = { { .fd = r->channel.fd, .events = POLLIN },
			      { .fd = s->pidfd.fd, .events = POLLIN } };

	/* Nothing runs yet in a cell of the pool, so neither descriptor is readable while it
	 * lives. */
	return !r->lost && !r->ending && poll(p, ARRAY_SIZE(p), 0) == 0;
}

bool cell_hung_up(const struct cell *r)
{
	struct pollfd p = { .fd = r->channel.fd };

	return r->lost || (poll(&p, 1, 0) > 0 && p.revents & POLLHUP);
}

void cell_hold(struct cell *r, const struct cell_ops *ops, void *holder)
{
	r->ops = ops;
	r->holder = holder;
}

bool cell_gauge(const struct cell *r, struct cell_usage *u)
{
	return cell_alive(r) && gauges_read(&r->gauges, u);
}

static void on_usage(struct warden_call *c, const struct warden_reply *reply, int *fds, size_t n)
{
	static const struct cell_usage unknown;
	struct cell *r = c->arg;

	(void)fds;
	(void)n;
	r->ops->usage(r, reply->code == 0 ? &reply->usage : &unknown);
}

void cell_usage(struct cell *r)
{
	if (r->usage_call.call.seq)
		return;
	r->usage_call.fn = on_usage;
	r->usage_call.arg = r;
	if (!r->handle || warden_link_ask_cell(r->cells->link, &r->usage_call, WARDEN_USAGE,
					       r->handle, 0, NULL) < 0) {
		struct warden_reply none = { .code = -EPIPE };

		on_usage(&r->usage_call, &none, NULL, 0);
	}
}

void cell_disk(struct cell *r)
{
	static const struct init_disk unknown;
	int n = r->lost || r->channel.fd < 0 ? -EPIPE : init_disk(r->channel.fd, 0, NULL);

	/* Pid 1 is dead: gone follows. Nobody may conclude meanwhile that the cell is there. */
	if (n == -EPIPE || n == -ECONNRESET)
		cell_lost(r);
	else if (n < 0)
		r->ops->disk(r, &unknown);
}
