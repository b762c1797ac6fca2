/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_use.h - An image in use: its layers as descriptors, and cells of it that are ready.
 *
 * The daemon's own image (--image) is open from the start to the end. Others are opened when a
 * sandbox needs them (wire/image_opener.h), and closed when no sandbox has used them for a while:
 * then their cells end, and the store may remove them again. A sandbox that holds an image
 * (image_hold()) keeps it open.
 *
 * Only the image `host` has a zygote: that is the machine's own python. The code of another image
 * is untrusted, and runs only in cells: pid 1 starts its kernels there, cold, and the pool has some
 * ready. So nothing of one image is shared with another, nor between two cells of one image.
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

struct cells;
struct err;
struct refusal;

struct image_use {
	struct cells *cells;
	struct image_use *next;
	char name[IMAGE_OPENER_REF_MAX]; /* host, dir:PATH, or the canonical reference */
	char digest[72];                 /* of its manifest; "": it has none */
	uint32_t kind;                   /* enum cell_image */
	uint32_t n_layers;
	int fds[CELL_IMAGE_FDS_MAX]; /* for a spec of this kind */
	size_t n_fds;
	json_t *env;                  /* variables that it brings; NULL: none */
	bool has_language[LANG_MAX_]; /* as far as is known before a start */
	char versions[LANG_MAX_][32]; /* of interpreters, as they report it; "": unknown */
	struct zygote_supply supply;
	struct pool pool;
	size_t holders;
	uint64_t used_ns, checked_ns; /* last held; when its name last stood for it */
	bool stale;                   /* its name stands for another image now */
	bool ending;
	bool lost; /* not in the store any more: nothing can be made from it */
};

/* The image opener, and every image that is in use. */
struct images {
	int opener; /* -1: none */
	struct image_use own;
	struct image_use *others;
	struct timer tick;
	bool started;
};

/* images_open() - Before the jail: start the image opener, open the daemon's own image. */
int images_open(struct cells *cells, struct err *e);
/* images_start() - In the jail, with a warden: zygotes and cells may be made. images_stop(): no
 * more. */
void images_start(struct cells *cells);
void images_stop(struct cells *cells);

/*
 * image_name() - The canonical reference of @text; "" for the daemon's own image. 0, or -EINVAL
 * with the error.
 */
int image_name(const struct cells *cells, const char *text, char ret[IMAGE_OPENER_REF_MAX],
	       struct err *e);

/*
 * image_get() - The image of this name (from image_name()), held. @digest: this one, and not the
 * one that the name stands for now; or NULL. NULL with @ret: it is not in the store, or cannot be
 * opened.
 */
struct image_use *image_get(struct cells *cells, const char *name, const char *digest,
			    struct refusal *ret);
/* image_lost() - For a sandbox with a cell of an image that cannot be opened any more; held. NULL:
 * no memory. */
struct image_use *image_lost(struct cells *cells, const char *name, const char *digest);
void image_hold(struct image_use *g);
void image_release(struct image_use *g);

/* image_spec() - Make @spec one of a cell of this image; its descriptors are g->fds. */
void image_spec(const struct image_use *g, struct cell_spec *spec);

/* image_key() - Its digest, or its name when it has none: unique among images. */
const char *image_key(const struct image_use *g);

/* image_languages() - "python, bash": its languages, for messages. */
void image_languages(const struct image_use *g, char *text, size_t size);

/* images_next() - All of them, the daemon's own first: NULL begins and ends. */
struct image_use *images_next(struct cells *cells, const struct image_use *g);

#endif
