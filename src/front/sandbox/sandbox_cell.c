/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_cell.c - Gets the cell of a sandbox, and handles the events of the cell.
 *
 * A cell is made for the sandbox, or comes from its image's pool; at any moment the sandbox has a
 * cell, waits for one, or needs none. A message of a kernel is for the running execution, if that
 * runs in this kernel; otherwise it comes from a task that an earlier execution left behind. After
 * the end of its cell the sandbox gets another for the next request that needs one.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/workspace_use.h"
#include "front/support/metrics.h"
#include "front/support/mounts.h"

#define WANT_NS (30 * CLOCK_NS_PER_S)

/* ---- events of the cell -------------------------------------------------------------------- */

static void on_kernel_ready(struct cell *r, struct kernel *kernel)
{
	(void)kernel;
	sandbox_note(r->holder);
	sandbox_step(r->holder);
}

static void on_kernel_failed(struct cell *r, struct kernel *kernel, bool missing,
			     const char *message)
{
	struct sandbox *s = r->holder;
	struct execution *x = s->head;

	if (missing)
		r->image->has_language[kernel->language->id] = false;
	/* The execution that needed the kernel may have been interrupted since, and the next one
	 * may be in another language. */
	if (!x || x->language != kernel->language || s->stopping)
		return;
	if (missing) {
		execution_no_language(x, r->image);
	} else {
		uint64_t limit = r->limits.memory_bytes, room;
		bool full = gauges_room(&r->gauges, limit, &room) && room < limit / 16;

		execution_refuse(x, REFUSAL_UNAVAILABLE, "kernel_failed",
				 full ? "its memory is nearly full: end processes, delete files "
					"(the file calls work), or make a sandbox with more "
					"memory_mib" :
					NULL,
				 1, "the %s kernel did not start: %s", kernel->language->name,
				 message);
	}
}

static void on_kernel_ended(struct cell *r, struct kernel *kernel, int status)
{
	struct sandbox *s = r->holder;
	struct execution *x = sandbox_running(s);

	s->epoch++;
	sandbox_note(s);
	s->sandboxes->hooks->wires.kernel_ended(s, kernel->language);
	if (x && kernel->language == x->language)
		execution_kernel_ended(x, kernel, status);
	else
		sandbox_step(s); /* an execution may have waited for its end */
}

static void on_usage(struct cell *r, const struct cell_usage *u)
{
	struct sandbox *s = r->holder;
	struct execution *x = sandbox_running(s);

	if (x)
		execution_usage(x, u);
}

static void on_disk(struct cell *r, const struct init_disk *d)
{
	struct sandbox *s = r->holder;
	struct execution *x = sandbox_running(s);

	if (x)
		execution_disk(x, d);
}

/*
 * The content of the cell is lost: detach the sandbox from it, and call gone of the entries inside.
 */
static void leave_cell(struct sandbox *s, struct cell *r, const struct cell_usage *u)
{
	const struct execution *x = sandbox_running(s);
	unsigned int lost = 0;

	/* Kernels that ended a moment before the cell were counted and reported already. The files
	 * of a cell without kernels count, too, unless their owner has asked for its end. */
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (r->kernels[i].state != KERNEL_EMPTY)
			lost |= 1u << i;
	s->epoch += lost != 0 || (u->end != CELL_END_CLIENT && !(x && x->kernel_ended));
	s->sandboxes->hooks->egress.drop(s);
	s->sandboxes->hooks->packages.unlisten(s);
	s->sandboxes->hooks->workspace.left(s);
	s->cell = NULL;
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (lost & 1u << i)
			s->sandboxes->hooks->wires.kernel_ended(s, &languages[i]);
	memset(&s->before, 0, sizeof(s->before));
	sandbox_note(s);
	cell_unkeep(r); /* before the sandbox has another cell in the slot */
	s->sandboxes->hooks->wires.cell_gone(s);
	sandbox_turn_out(s, u);
}

void sandbox_renew(struct sandbox *s)
{
	static const struct cell_usage ended = { .end = CELL_END_CLIENT };
	struct cell *r = s->cell;

	if (!r || s->running)
		return;
	leave_cell(s, r, &ended);
	cell_end(r);
	sandbox_step(s);
}

/* The cell as a whole has ended. The sandbox gets another when it needs one. */
static void on_gone(struct cell *r, const struct cell_usage *u)
{
	struct sandbox *s = r->holder;
	struct execution *x = sandbox_running(s);

	leave_cell(s, r, u);
	if (x)
		execution_cell_gone(x, u);
	cell_end(r);
	if (!x)
		sandbox_step(s);
}

static void no_cell(struct sandbox *s, enum refusal_kind kind, const char *code, const char *what,
		    const char *message)
{
	struct refusal why;

	(void)refusal_set(&why, kind, code, NULL, NULL, "%s%.280s", what, message);
	why.retry_after_s = SANDBOXES_RETRY_S;
	sandbox_no_cell(s, &why);
}

static void on_failed(struct cell *r, const char *message)
{
	struct sandbox *s = r->holder;

	s->sandboxes->hooks->egress.drop(s);
	s->sandboxes->hooks->packages.unlisten(s);
	s->cell = NULL;
	cell_end(r);
	no_cell(s, REFUSAL_UNAVAILABLE, "sandbox_failed", "", message);
}

/* A cell that was made for this sandbox alone. */
static void on_ready(struct cell *r)
{
	struct sandbox *s = r->holder;

	s->sandboxes->hooks->packages.listen(s);
	cell_keep(r, s->slot);
	sandbox_note(s);
	sandbox_step(s);
}

static const struct cell_ops sandbox_ops = {
	.ready = on_ready,
	.failed = on_failed,
	.kernel_ready = on_kernel_ready,
	.kernel_failed = on_kernel_failed,
	.message = execution_message,
	.stray = execution_stray,
	.output = execution_output,
	.drained = execution_drained,
	.kernel_ended = on_kernel_ended,
	.usage = on_usage,
	.disk = on_disk,
	.gone = on_gone,
};

/* ---- getting a cell ------------------------------------------------------------------------ */

void sandbox_use(struct sandbox *s, struct cell *r)
{
	s->cell = r;
	r->env = s->vars;
	cell_hold(r, &sandbox_ops, s);
	s->sandboxes->hooks->packages.listen(s);
}

static size_t add_workspace(const struct cell_want *want, struct cell_spec *spec, int *fds)
{
	const struct sandbox *s =
		(const struct sandbox *)((const char *)want - offsetof(struct sandbox, cell_want));

	return workspace_use_mounts(&s->spec.workspace, spec, fds);
}

static void make_cell(struct sandbox *s, bool python)
{
	struct err e = { 0 };

	s->cell_want = (struct cell_want){ .limits = s->spec.limits,
					   .mounts = s->spec.mounts.set,
					   .fetcher = s->spec.fetcher,
					   .add_mounts = add_workspace };
	s->cell =
		cell_make(s->image, &s->cell_want, python && !s->spec.fetcher, &sandbox_ops, s, &e);
	if (s->cell)
		s->cell->env = s->vars;
	else
		no_cell(s, REFUSAL_UNAVAILABLE, "sandbox_failed",
			"no sandbox could be made: ", e.msg);
}

static void on_got(struct want *w, struct cell *r)
{
	struct sandbox *s = w->arg;

	timer_cancel(&s->want_timer);
	/* Its mounts may have changed while it waited: a sandbox never gets a cell with a mount
	 * that it may not have. */
	if (!mount_set_equal(&r->mounts, &s->spec.mounts.set)) {
		cell_end(r);
		make_cell(s, w->python);
		return;
	}
	sandbox_use(s, r);
	cell_keep(r, s->slot);
	sandbox_note(s);
	sandbox_step(s);
}

static void on_not_got(struct want *w, const char *message)
{
	struct sandbox *s = w->arg;

	timer_cancel(&s->want_timer);
	no_cell(s, REFUSAL_UNAVAILABLE, "sandbox_failed", "no sandbox could be made: ", message);
}

static void on_want_late(struct timer *t)
{
	struct sandbox *s = t->arg;

	bool stuck = pool_stuck(&s->image->pool, &s->want);

	pool_unwant(&s->image->pool, &s->want);
	if (stuck) {
		no_cell(s, REFUSAL_UNAVAILABLE, "sandbox_failed",
			"no sandbox could be made: ", "none of its image was ready in time");
		return;
	}
	metric_add(M_REJECTED_BUSY, 1);
	no_cell(s, REFUSAL_TOO_MANY, "busy", "no sandbox became free in time; try again later", "");
}

void sandbox_want_cell(struct sandbox *s)
{
	bool python = !s->head || s->head->language->id == LANG_PYTHON;

	if (s->want.queued || !s->sandboxes->hooks->workspace.ready(s))
		return;
	if (s->spec.own_limits || s->spec.workspace.name[0] ||
	    !mount_set_equal(&s->spec.mounts.set, &s->sandboxes->cells->mounts->pooled)) {
		make_cell(s, python);
		return;
	}
	s->want.python = python;
	s->want.got = on_got;
	s->want.failed = on_not_got;
	s->want.arg = s;
	s->want_timer.fn = on_want_late;
	s->want_timer.arg = s;
	timer_after(s->sandboxes->loop, &s->want_timer, WANT_NS);
	pool_want(&s->image->pool, &s->want);
}
