/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_supply.h - Keeps a zygote of the image `host` alive: requests it at the start, and
 * replaces it when it dies.
 *
 * While there is no zygote (it is loading its modules, or it died), and for every other image,
 * kernels start cold through the cell's pid 1: slower, but always possible. Requests do not wait
 * long for a zygote that loads or hangs.
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
	bool settled;    /* ready, or known not to be ready for now */
	struct watch status;
	struct warden_call call, retire_call;
	struct timer again;
	struct timer patience; /* limit for a zygote that loads */
	unsigned int failures; /* in a row, for the back-off */
	uint64_t restarts;
	char version[32];         /* of the interpreter */
	char problem[256];        /* why there is no zygote; empty if there is one */
	char preload_failed[512]; /* modules that could not be imported, and why */
	/* Called each time the zygote became ready or failed. */
	void (*on_change)(struct zygote_supply *n);
};

/*
 * zygote_supply_start() - Request a zygote, if @g is the image host; kernels of other images always
 * start cold.
 */
void zygote_supply_start(struct zygote_supply *n, struct image_use *g);
/* zygote_supply_stop() - Forget the zygote, and request no other. */
void zygote_supply_stop(struct zygote_supply *n);
void zygote_supply_retire(struct zygote_supply *n); /* stop, and end the zygote with its image */

/* zygote_supply_replace() - End a zygote that does not answer, and get another. */
void zygote_supply_replace(struct zygote_supply *n);

#endif
