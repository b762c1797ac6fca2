/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - Cells of one image that are ready before a request needs them.
 *
 * There are two kinds: cells with a python kernel that waits for its first line, and cells without
 * a kernel, for the other languages. A cell leaves the pool once and never comes back. Taking one
 * only schedules its replacement, which is made when nothing else has to be done at once. The
 * number of ready cells follows the number of cells that were taken lately, within bounds and while
 * the machine has memory.
 */
#ifndef CAISSON_FRONT_POOL_H
#define CAISSON_FRONT_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"

struct cell;
struct cells;
struct image_use;

/* A request that waits for a cell. */
struct want {
	bool python;
	bool queued;
	size_t made_before;                          /* n_made of its row when it began to wait */
	void (*got)(struct want *w, struct cell *r); /* @r is the caller's now */
	void (*failed)(struct want *w, const char *message);
	void *arg;
	struct want *next;
};

enum pool_kind { POOL_PLAIN, POOL_PYTHON, POOL_KINDS };

struct pool_row {
	struct cell *cells; /* ready */
	size_t n_ready, n_making, n_wanted;
	size_t n_made; /* cells that became ready, in all */
	struct want *wants, **wants_tail;
};

struct pool {
	struct cells *cells;
	struct image_use *image;
	struct pool_row rows[POOL_KINDS];
	size_t taken, taken_before; /* python cells taken in this tick and in the last */
	struct timer tick, back_off, later;
	struct deferred refill;
	bool stopped;
	char problem[256]; /* why the last cell could not be made; empty after a success */
};

void pool_start(struct pool *p, struct image_use *g);
void pool_stop(struct pool *p); /* ends all cells in it */
/* pool_quiet() - After pool_stop(): whether no cell is being made any more. */
bool pool_quiet(const struct pool *p);

/*
 * pool_want() - Get a cell: got is called at once, or as soon as a cell is ready; or failed is
 * called. The caller keeps @w until then.
 */
void pool_want(struct pool *p, struct want *w);
void pool_unwant(struct pool *p, struct want *w); /* idempotent */

/* pool_stuck() - Whether cells are being made, and none has become ready since @w began to wait. */
bool pool_stuck(const struct pool *p, const struct want *w);

/* pool_poke() - After a change (a zygote is ready): check soon whether cells have to be made. */
void pool_poke(struct pool *p);
size_t pool_target(const struct pool *p);

#endif
