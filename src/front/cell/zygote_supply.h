/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_supply.h - Keeps the zygote of the image `host` alive: asked for at the start, replaced
 * when it dies.
 *
 * While there is none (it is loading its modules, it died), and for every other image, kernels
 * start cold through the cell's pid 1: slower, but always possible. Requests do not wait long for a
 * zygote that loads or hangs.
 */
#ifndef CAISSON_FRONT_ZYGOTE_SUPPLY_H
#define CAISSON_FRONT_ZYGOTE_SUPPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "front/cell/warden_link.h"
#include "net/loop.h"

struct cells;
struct image_use;

struct zygote_supply {
	struct cells *cells;
	struct image_use *image;
	uint32_t zygote; /* handle when it is ready, otherwise 0 */
	uint32_t made;   /* handle while it loads */
	bool settled;    /* ready, or it is known that there will be none for now */
	struct watch status;
	struct warden_call call, retire_call;
	struct timer again;
	struct timer patience; /* for one that loads */
	unsigned int failures; /* in a row, for the back-off */
	uint64_t restarts;
	char version[32];         /* of the interpreter */
	char problem[256];        /* why there is none; empty when there is */
	char preload_failed[512]; /* modules that could not be imported, and why */
	/* It became ready, or failed: called each time. */
	void (*on_change)(struct zygote_supply *n);
};

/* zygote_supply_start() - Have a zygote, when @g is the image host; kernels of others always start
 * cold. */
void zygote_supply_start(struct zygote_supply *n, struct image_use *g);
void zygote_supply_stop(struct zygote_supply *n);
void zygote_supply_retire(struct zygote_supply *n); /* stop, and end the zygote with its image */

/* zygote_supply_replace() - The zygote does not answer: end it, and have another. */
void zygote_supply_replace(struct zygote_supply *n);

#endif
