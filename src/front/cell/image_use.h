/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_use.h - What sandboxes are made from, as the front holds it: an image's layers as
 * descriptors, and cells that are ready.
 *
 * The daemon's own image (--image) is there from the start to the end. Others are borrowed from the
 * store when a sandbox asks for them (wire/image_opener.h), and given back when nobody has used
 * them for a while: their cells end, and the store may remove them again. A sandbox that holds one
 * (image_hold()) keeps it.
 *
 * Only the image `host` has a zygote: that is the machine's own python. Whatever comes from another
 * image is a stranger's code, and runs nowhere but in its cells: pid 1 starts its kernels there,
 * cold, and the pool has some ready. So nothing of one image is shared with another, nor between
 * two cells of one image.
 */
#ifndef CAISSON_FRONT_IMAGES_IMAGE_USE_H
#define CAISSON_FRONT_IMAGES_IMAGE_USE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/cell/language.h"
#include "front/cell/pool.h"
#include "front/cell/zygote_supply.h"
#include "wire/image_opener.h"
#include "wire/warden.h"

struct err;
struct front;
struct refusal;

struct image_use {
	struct front *f;
	struct image_use *next;
	char name[IMAGE_OPENER_REF_MAX]; /* host, dir:PATH, or the canonical reference */
	char digest[72];                 /* of its manifest; "": it has none */
	uint32_t kind;                   /* enum cell_image */
	uint32_t n_layers;
	int fds[CELL_IMAGE_FDS_MAX]; /* what a spec of this kind takes */
	size_t n_fds;
	json_t *env;                  /* variables that it brings; NULL: none */
	bool has_language[LANG_MAX_]; /* as far as is known; trying tells for sure */
	char versions[LANG_MAX_][32]; /* of the interpreters, as kernels say it; "": not known yet
				       */
	struct zygote_supply supply;
	struct pool pool;
	size_t holders;
	uint64_t used_ns, checked_ns; /* last held; last found to be what its name stands for */
	bool stale;                   /* its name stands for another one by now */
	bool ending;
	bool lost; /* not in the store any more: nothing can be made from it */
};

/* The image opener, and every image that is in use. */
struct images {
	int opener; /* -1: there is none */
	struct image_use own;
	struct image_use *others;
	struct timer tick;
	bool started;
};

/* images_open() - Before the jail: start the image opener, open the daemon's own image. */
int images_open(struct front *f, struct err *e);
/* images_start() - In the jail, with a warden: zygotes and cells may be made. images_stop(): no
 * more. */
void images_start(struct front *f);
void images_stop(struct front *f);

/*
 * image_name() - How @text is called here: "" for the daemon's own, otherwise the canonical
 * reference. 0, or -EINVAL with what is wrong with it.
 */
int image_name(const struct front *f, const char *text, char ret[IMAGE_OPENER_REF_MAX],
	       struct err *e);

/*
 * image_get() - The image of this name (as image_name() made it), held. @digest: not what the name
 * stands for now, but this one; NULL: what it stands for. NULL with why in @ret: it is not in the
 * store, or can not be opened.
 */
struct image_use *image_get(struct front *f, const char *name, const char *digest,
			    struct refusal *ret);
/* image_lost() - For a sandbox that has a cell of an image which can not be had any more; held.
 * NULL: no memory. */
struct image_use *image_lost(struct front *f, const char *name, const char *digest);
void image_hold(struct image_use *g);
void image_release(struct image_use *g);

/* image_spec() - Make @spec one of a cell of this image; its descriptors are g->fds. */
void image_spec(const struct image_use *g, struct cell_spec *spec);

/* image_key() - What it is told from others by: its digest, or its name when it has none. */
const char *image_key(const struct image_use *g);

/* image_languages() - "python, bash": what it has, for messages. */
void image_languages(const struct image_use *g, char *text, size_t size);

/* images_next() - All of them, the daemon's own first: NULL begins and ends. */
struct image_use *images_next(struct front *f, const struct image_use *g);

#endif
