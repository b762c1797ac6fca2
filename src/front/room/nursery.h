/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nursery.h - Keeps the zygote of the image `host` alive: asked for at the start, replaced when it dies.
 *
 * While there is none (it is loading its modules, it died), and for every other image, kernels start
 * cold through the cell's pid 1: slower, never failing. Nobody waits long for one that loads, or hangs.
 */
#ifndef CAISSON_FRONT_NURSERY_H
#define CAISSON_FRONT_NURSERY_H

#include <stdbool.h>
#include <stdint.h>

#include "front/room/link.h"
#include "net/loop.h"

struct front;
struct guest_image;

struct nursery {
	struct front *f;
	struct guest_image *image;
	uint32_t zygote; /* handle when it is ready, otherwise 0 */
	uint32_t made;   /* handle while it loads */
	bool settled;    /* ready, or it is known that there will be none for now */
	struct watch status;
	struct link_call call, retire_call;
	struct timer again;
	struct timer patience; /* for one that loads */
	unsigned int failures; /* in a row, for the back-off */
	uint64_t restarts;
	char version[32];         /* of the interpreter */
	char problem[256];        /* why there is none; empty when there is */
	char preload_failed[512]; /* modules that could not be imported, and why */
	/* It became ready, or failed: called each time. */
	void (*on_change)(struct nursery *n);
};

/* nursery_start() - Have a zygote, when @g is the image host; kernels of others always start cold. */
void nursery_start(struct nursery *n, struct guest_image *g);
void nursery_stop(struct nursery *n);
void nursery_retire(
	struct nursery *n); /* stop, and end the zygote: nobody needs this image any more */

/* nursery_replace() - The zygote does not answer: end it, and have another. */
void nursery_replace(struct nursery *n);

#endif
