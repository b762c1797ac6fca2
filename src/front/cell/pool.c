/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - Keeps as many cells ready as requests are likely to need before new ones can be made.
 *
 * The target is the number of python cells that were taken in one of the last two ticks, but at
 * least the configured number. on_refill() makes the cells that are missing, a few at a time; a
 * tick ends one cell that is too many.
 */
#include "front/cell/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "front/cell/cell.h"
#include "front/cell/cells.h"
#include "front/cell/image_use.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/mounts.h"

#define TICK_NS (250 * CLOCK_NS_PER_MS)
#define LATER_NS (10 * CLOCK_NS_PER_MS)
#define BACK_OFF_NS (500 * CLOCK_NS_PER_MS)
#define MAKING_MAX 6u /* at once: more only wait for each other */
#define TARGET_MAX 64u
#define PLAIN_TARGET 1u
#define MEMORY_LOW (256ull << 20)

static const struct cell_ops pool_ops;

static struct pool_row *row_of(struct pool *p, const struct cell *r)
{
	/* Before cell_hold() the holder is the row that the cell was made for. */
	return r->holder == &p->rows[POOL_PYTHON] ? &p->rows[POOL_PYTHON] : &p->rows[POOL_PLAIN];
}

/* MemAvailable includes the page cache, which sysinfo() does not report. */
static bool memory_low(const struct pool *p)
{
	static const char key[] = "MemAvailable:";
	char text[512];
	ssize_t n = pread(p->cells->daemon->meminfo_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *at = strstr(text, key);

	return at && strtoull(at + sizeof(key) - 1, NULL, 10) * 1024 < MEMORY_LOW;
}

size_t pool_target(const struct pool *p)
{
	size_t recent = p->taken > p->taken_before ? p->taken : p->taken_before;
	size_t target = p->cells->daemon->config.pool > recent ? p->cells->daemon->config.pool :
								 recent;

	return target > TARGET_MAX && target > p->cells->daemon->config.pool ? TARGET_MAX : target;
}

static void gauges(const struct pool *p)
{
	size_t kernels = 0, cells = 0;

	for (const struct image_use *g = NULL; (g = images_next(p->cells, g));) {
		kernels += g->pool.rows[POOL_PYTHON].n_ready;
		cells += g->pool.rows[POOL_PLAIN].n_ready;
	}
	metric_set(G_POOL_KERNELS, kernels);
	metric_set(G_POOL_CELLS, cells);
	metric_set(G_CELLS, p->cells->n);
}

/*
 * A cell could not be made: refuse one request that waits; the others get the next try, after a
 * while.
 */
static void not_made(struct pool *p, struct pool_row *s, const char *message)
{
	struct want *w = s->wants;

	if (strcmp(p->problem, message) != 0)
		log_event(LOG_LEVEL_ERROR, "cell_failed", F_STR("why", message));
	(void)snprintf(p->problem, sizeof(p->problem), "%s", message);
	timer_after(p->cells->loop, &p->back_off, BACK_OFF_NS);
	if (w) {
		pool_unwant(p, w);
		w->failed(w, p->problem);
	}
}

static bool make(struct pool *p, enum pool_kind kind)
{
	struct pool_row *s = &p->rows[kind];
	struct err e = { 0 };
	bool python = kind == POOL_PYTHON && p->image->has_language[LANG_PYTHON];
	struct cell *r = cell_make(p->image, NULL, python, &pool_ops, s, &e);

	if (r)
		s->n_making++;
	else if (s->n_wanted > s->n_making || s->n_making + s->n_ready == 0)
		not_made(p, s, e.msg);
	else /* no request waits for it */
		timer_after(p->cells->loop, &p->back_off, BACK_OFF_NS);
	return r != NULL;
}

static void remove_ready(struct cell *r);

/* Whether the cell was made under an earlier policy, which gave other mounts to each caller. */
static bool is_stale(const struct cell *r)
{
	return !mount_set_equal(&r->mounts, &r->cells->mounts->pooled);
}

static void drop_stale(struct pool_row *s)
{
	struct cell *r = s->cells;

	while (r) {
		struct cell *next = r->next;

		if (is_stale(r))
			remove_ready(r);
		r = next;
	}
}

static void on_refill(struct deferred *d)
{
	struct pool *p = d->arg;
	struct pool_row *py = &p->rows[POOL_PYTHON], *plain = &p->rows[POOL_PLAIN];
	size_t room_max = (size_t)p->cells->daemon->config.max_sandboxes + TARGET_MAX;
	const struct zygote_supply *n = &p->image->supply;
	bool low = memory_low(p) || !n->settled || p->image->lost;
	size_t target = low ? 0 : pool_target(p);

	drop_stale(py);
	drop_stale(plain);
	/* Until the first zygote is ready, or is known not to come, all kernels would start cold.
	 * While a later zygote loads only the pool waits: a request that needs a cell gets one. */
	if (p->stopped || p->back_off.loop || (!n->settled && !n->restarts))
		return;
	while (py->n_making + plain->n_making < MAKING_MAX && p->cells->n < room_max) {
		enum pool_kind kind = POOL_KINDS;

		if (py->n_ready + py->n_making < py->n_wanted + target)
			kind = POOL_PYTHON;
		else if (plain->n_ready + plain->n_making <
			 plain->n_wanted + (low ? 0 : PLAIN_TARGET))
			kind = POOL_PLAIN;
		if (kind == POOL_KINDS || !make(p, kind))
			break;
	}
	gauges(p);
}

void pool_poke(struct pool *p)
{
	if (!p->stopped)
		loop_defer(p->cells->loop, &p->refill);
}

static void on_time(struct timer *t)
{
	pool_poke(t->arg);
}

/*
 * A cell was taken, and the code in it needs the processors that making another one would use.
 * While enough cells are left the next one is made a little later: most executions are over by
 * then.
 */
static void poke_later(struct pool *p)
{
	const struct pool_row *s = &p->rows[POOL_PYTHON];

	if (s->wants || s->n_ready * 2 < pool_target(p))
		pool_poke(p);
	else if (!p->later.loop && !p->stopped)
		timer_after(p->cells->loop, &p->later, LATER_NS);
}

/* ---- cells that are being made ------------------------------------------------------------- */

static void give(struct pool *p, struct pool_row *s)
{
	while (s->wants && s->cells) {
		struct want *w = s->wants;
		struct cell *r = s->cells;

		/* A cell that died a moment ago may not have been noticed yet. */
		if (!cell_alive(r) || is_stale(r)) {
			remove_ready(r);
			continue;
		}
		s->wants = w->next;
		if (!s->wants)
			s->wants_tail = &s->wants;
		s->n_wanted--;
		w->queued = false;
		s->cells = r->next;
		r->next = NULL;
		s->n_ready--;
		if (s == &p->rows[POOL_PYTHON])
			p->taken++;
		w->got(w, r);
	}
	poke_later(p);
	gauges(p);
}

static void on_ready(struct cell *r)
{
	struct pool *p = &r->image->pool;
	struct pool_row *s = row_of(p, r);

	s->n_making--;
	s->n_made++;
	if (p->stopped && !s->wants) { /* no request will take it */
		cell_end(r);
		return;
	}
	p->problem[0] = '\0';
	r->next = s->cells;
	s->cells = r;
	s->n_ready++;
	give(p, s);
}

static void on_failed(struct cell *r, const char *message)
{
	struct pool *p = &r->image->pool;
	struct pool_row *s = row_of(p, r);
	char why[sizeof(p->problem)];

	s->n_making--;
	(void)snprintf(why, sizeof(why), "%s", message); /* the text may be in the cell */
	cell_end(r);
	not_made(p, s, why);
}

/* Replace a ready cell that died or is stale. */
static void remove_ready(struct cell *r)
{
	struct pool *p = &r->image->pool;
	struct pool_row *s = row_of(p, r);
	bool ready = false;

	for (struct cell **at = &s->cells; *at && !ready; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			s->n_ready--;
			ready = true;
			break;
		}
	if (!ready) { /* it died while its kernel started */
		on_failed(r, "the cell ended while it was being made");
		return;
	}
	cell_end(r);
	pool_poke(p);
}

static void on_kernel_ended(struct cell *r, struct kernel *kernel, int status)
{
	(void)kernel;
	(void)status;
	remove_ready(r);
}

static void on_gone(struct cell *r, const struct cell_usage *u)
{
	(void)u;
	remove_ready(r);
}

static void no_kernel(struct cell *r, struct kernel *s)
{
	(void)r;
	(void)s;
}

static void no_kernel_failed(struct cell *r, struct kernel *s, bool missing, const char *message)
{
	(void)r;
	(void)s;
	(void)missing;
	(void)message;
}

static const struct cell_ops pool_ops = {
	.ready = on_ready,
	.failed = on_failed,
	.kernel_ready = no_kernel,
	.kernel_failed = no_kernel_failed,
	.kernel_ended = on_kernel_ended,
	.gone = on_gone,
};

/* ---- waiting requests ---------------------------------------------------------------------- */

void pool_want(struct pool *p, struct want *w)
{
	struct pool_row *s = &p->rows[w->python ? POOL_PYTHON : POOL_PLAIN];

	metric_add(s->cells ? M_POOL_HITS : M_POOL_MISSES, 1);
	w->next = NULL;
	w->queued = true;
	w->made_before = s->n_made;
	*s->wants_tail = w;
	s->wants_tail = &w->next;
	s->n_wanted++;
	give(p, s);
}

bool pool_stuck(const struct pool *p, const struct want *w)
{
	const struct pool_row *s = &p->rows[w->python ? POOL_PYTHON : POOL_PLAIN];

	return s->n_making > 0 && s->n_made == w->made_before;
}

void pool_unwant(struct pool *p, struct want *w)
{
	struct pool_row *s = &p->rows[w->python ? POOL_PYTHON : POOL_PLAIN];

	if (!w->queued)
		return;
	for (struct want **at = &s->wants; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			if (!*at)
				s->wants_tail = at;
			s->n_wanted--;
			break;
		}
	w->queued = false;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void on_tick(struct timer *t)
{
	struct pool *p = t->arg;

	/* More cells than requests are likely to need: end one per tick. */
	struct pool_row *s = &p->rows[POOL_PYTHON];
	size_t most = pool_target(p) * (p->taken || p->taken_before ? 2 : 1);

	p->taken_before = p->taken;
	p->taken = 0;
	if (s->n_ready > most && s->cells)
		remove_ready(s->cells);
	pool_poke(p);
	timer_after(p->cells->loop, t, TICK_NS);
}

void pool_start(struct pool *p, struct image_use *g)
{
	struct cells *cells = g->cells;

	p->cells = cells;
	p->image = g;
	for (size_t i = 0; i < POOL_KINDS; i++)
		p->rows[i].wants_tail = &p->rows[i].wants;
	p->refill = (struct deferred){ .fn = on_refill, .arg = p };
	p->tick = (struct timer){ .fn = on_tick, .arg = p };
	p->later = (struct timer){ .fn = on_time, .arg = p };
	p->back_off = (struct timer){ .fn = on_time, .arg = p };
	timer_after(cells->loop, &p->tick, TICK_NS);
	pool_poke(p);
}

void pool_stop(struct pool *p)
{
	p->stopped = true;
	timer_cancel(&p->tick);
	timer_cancel(&p->back_off);
	timer_cancel(&p->later);
	for (size_t i = 0; i < POOL_KINDS; i++)
		while (p->rows[i].cells) {
			struct cell *r = p->rows[i].cells;

			p->rows[i].cells = r->next;
			p->rows[i].n_ready--;
			cell_end(r);
		}
}

bool pool_quiet(const struct pool *p)
{
	return p->rows[POOL_PYTHON].n_making + p->rows[POOL_PLAIN].n_making == 0;
}
