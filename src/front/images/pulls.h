/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulls.h - Images that callers name and the store lacks: pulled before the request goes on.
 *
 * A sandbox always has its image. So a request that names one which is not in the store waits here,
 * before anything of it is done, and begins when the image is there. All requests for one image
 * wait for one pull; pulls run one after another, because each changes the whole store. When nobody
 * waits for a pull any more, it ends; what it has loaded is kept for the next one.
 *
 * The front only waits: caisson-image-puller has the rights (wire/image_puller.h).
 */
#ifndef CAISSON_FRONT_IMAGES_PULLS_H
#define CAISSON_FRONT_IMAGES_PULLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/lines.h"
#include "front/support/name.h"
#include "front/support/refusal.h"
#include "front/support/service_link.h"
#include "wire/image_opener.h"
#include "wire/image_puller.h"

struct admission;
struct buf;
struct cells;
struct daemon;
struct err;
struct loop;
struct pull;

#define PULLS_MAX 32u      /* images that are pulled, or wait for their turn */
#define PULLS_OF_OWNER 8u  /* that requests of one owner began */
#define PULL_LAYERS_MAX 64 /* as image/open.h has it */

/* How far a pull is: a text for people, and bytes of all layers; total 0: unknown. */
struct pull_progress {
	const char *text;
	uint64_t done, total;
};

/*
 * A request that waits for an image. The struct belongs to the caller, and is zero but for the
 * functions and arg. done is called once, never from inside pulls_wait(), unless pull_leave() comes
 * first.
 */
struct pull_wait {
	void (*progress)(struct pull_wait *w, const struct pull_progress *p); /* may be NULL */
	/* @why NULL: the image is in the store. */
	void (*done)(struct pull_wait *w, const struct refusal *why);
	void *arg;
	struct pull *pull; /* NULL: it does not wait */
	struct pull_wait *prev, *next;
};

struct pulls {
	struct daemon *daemon;
	struct loop *loop; /* the daemon's */
	struct cells *cells;
	struct admission *admission;
	struct service_link puller; /* fd -1: the daemon pulls nothing, or the puller is gone */
	struct pull *first;         /* in the order in which they were asked for */
	size_t n;
	uint64_t running; /* the request that the puller works on; 0: none */
};

/* pulls_open() - Before the jail: start the puller, if the daemon pulls. */
int pulls_open(struct pulls *p, struct err *e);
int pulls_start(struct pulls *p, struct err *e);

/*
 * pulls_wait() - Wait for the image that a request of @owner names, if it has to be pulled.
 * @image: as the request has it; NULL: it names none
 * Return: 1: nothing to wait for, and the request may go on: whatever else is wrong with the image
 * it finds out itself. 0: @w waits. -1: refused, with @why.
 */
int pulls_wait(struct pulls *p, const char *owner, const char *image, struct pull_wait *w,
	       struct refusal *why);

void pull_leave(struct pull_wait *w); /* idempotent */

/* pull_progress_json() - {"text", "done"?, "total"?}, appended to @out. */
void pull_progress_json(const struct pull_progress *now, struct buf *out);

/* pulls_drain() - The daemon is shutting down: refuse the requests that wait. */
void pulls_drain(struct pulls *p);

#endif
