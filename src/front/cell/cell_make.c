/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_make.c - Making a cell: what it is asked to be, and the time it has to become that.
 *
 * The warden is asked and answers with the channel to pid 1, which cell.c then listens to: ready
 * comes from there. A cell that is not sealed in time, or whose cell could not be made, says
 * failed, and its holder ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/cell/kernel.h"
#include "front/cell/warden_link.h"
#include "front/support/front.h"
#include "front/support/metrics.h"
#include "front/support/mounts.h"

#define START_NS (30 * CLOCK_NS_PER_S)

static void on_created(struct warden_call *c, const struct warden_reply *reply, int *fds,
		       size_t n_fds);

static size_t add_mounts(const struct cell *r, struct cell_spec *spec, int *fds)
{
	bool fetcher = r->want && r->want->fetcher;
	size_t n = r->f->cell_hooks->mounts(r->f, fetcher, spec, fds);

	if (!fetcher)
		n += mounts_add(r->f, &r->mounts, spec, fds + n);
	return n + (r->want ? r->want->add_mounts(r->want, spec, fds + n) : 0);
}

static int ask_for_cell(struct cell *r)
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
	q.want_gauges = 1;
	r->create_call.fn = on_created;
	r->create_call.arg = r;
	n += add_mounts(r, &q.spec, &fds[n]);
	return warden_link_ask(f->link, &r->create_call, &q, fds, n, NULL);
}

static void on_created(struct warden_call *c, const struct warden_reply *reply, int *fds,
		       size_t n_fds)
{
	struct cell *r = c->arg;

	/* The zygote died since we asked: the cell does without, and its kernel starts cold. */
	if (reply->code == -ENOENT && r->zygote) {
		r->zygote = 0;
		if (ask_for_cell(r) == 0)
			return;
	}
	if (reply->code >= 0) /* without a channel too, so that it is ended */
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
	struct front *f = g->f;
	struct cell *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct cell){ .f = f, .image = g, .slot = -1 };
	r->channel.fd = -1;
	gauges_init(&r->gauges);
	r->limits = limits ? *limits : f->spec.limits;
	for (size_t i = 0; i < LANG_MAX_; i++)
		kernel_init(&r->kernels[i], r, &languages[i]);
	f->n_cells++;
	return r;
}

/*
 * A channel, half a dozen gauges and a kernel's pipes, and as many again for the connection and the
 * calls of who uses it. Begun without them, a cell would be made and ended again, and the caller
 * wait for that.
 */
#define CELL_FILES 24

static int has_files(struct front *f, struct err *e)
{
	_fd_ int lowest = fcntl(f->link->link.watch.fd, F_DUPFD_CLOEXEC, 0); /* all below are taken
									      */
	size_t cells = 1;

	for (const struct image_use *g = NULL; (g = images_next(f, g));)
		for (size_t i = 0; i < POOL_KINDS; i++) /* theirs are still to come */
			cells += g->pool.rows[i].n_making;
	if (lowest >= 0 && (size_t)lowest + cells * CELL_FILES <= f->files_max)
		return 0;
	return err_say(
		e, -EMFILE,
		"the daemon has no open files left for another one (limit %zu): end some, or raise "
		"its limit (LimitNOFILE, ulimit -n)",
		f->files_max);
}

struct cell *cell_make(struct image_use *g, const struct cell_want *want, bool with_python,
		       const struct cell_ops *ops, void *holder, struct err *e)
{
	struct front *f = g->f;

	if (g->lost) {
		(void)err_say(e, -ENOENT, "its image %.200s is not in the store any more", g->name);
		return NULL;
	}
	if (has_files(f, e) < 0)
		return NULL;
	struct cell *r = cell_new(g, want ? &want->limits : NULL);

	if (!r) {
		(void)err_say(e, -ENOMEM, "the daemon is out of memory");
		return NULL;
	}
	cell_hold(r, ops, holder);
	r->want_python = with_python;
	r->want = want;
	r->mounts = want ? want->mounts : f->mounts->pooled;
	r->zygote = g->supply.zygote;
	r->asked_ns = clock_now_ns();
	if (ask_for_cell(r) < 0) {
		f->n_cells--;
		free(r);
		(void)err_say(e, -EPIPE, "the warden could not be asked");
		return NULL;
	}
	r->start_timer.fn = on_late;
	r->start_timer.arg = r;
	timer_set(&f->loop, &r->start_timer, f->loop.now_ns + START_NS);
	return r;
}
