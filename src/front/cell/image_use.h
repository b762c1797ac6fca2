/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_use.h - An image in use: its layers as descriptors, and cells of it that are ready.
 *
 * The daemon's own image (--image) is open from the start to the end. Other images are opened when
 * a sandbox needs them (wire/image_opener.h), and closed when no sandbox has used them for a while:
 * then their cells end, and the store may remove them again. A sandbox that holds an image
 * (image_hold()) keeps it open.
 *
 * Only the image `host` has a zygote, which is the machine's own python. The code of another image
 * is untrusted, and runs only in cells: pid 1 starts its kernels there, cold, and the pool has some
 * ready. So images share nothing with each other, nor do two cells of one image.
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
	char digest[72];                 /* of its manifest; "": no manifest */
	uint32_t kind;                   /* enum cell_image */
	uint32_t n_layers;
	int fds[CELL_IMAGE_FDS_MAX]; /* its layers or its directory, for a spec of this kind */
	size_t n_fds;
	json_t *env;                  /* variables that the image defines; NULL: no variables */
	bool has_language[LANG_MAX_]; /* as far as is known before a start */
	char versions[LANG_MAX_][32]; /* of interpreters, as they report it; "": unknown */
	struct zygote_supply supply;
	struct pool pool;
	size_t holders;
	/* When it was last held; when its name was last found to mean this image. */
	uint64_t used_ns, checked_ns;
	bool stale; /* its name means another image now */
	bool ending;
	bool lost; /* no longer in the store: nothing can be made from it */
};

/* The image opener, and every image that is in use. */
struct images {
	int opener; /* socket to the image opener; -1: it is gone */
	struct image_use own;
	struct image_use *others;
	struct timer tick;
	bool started;
};

/* images_open() - Start the image opener and open the daemon's own image, before the jail. */
int images_open(struct cells *cells, struct err *e);
/*
 * images_start() - Zygotes and cells may be made from now on: in the jail, with a warden.
 * images_stop() - No more of them are made.
 */
void images_start(struct cells *cells);
void images_stop(struct cells *cells);

/*
 * image_name() - The canonical reference of @text; "" for the daemon's own image. 0, or -EINVAL
 * with the error.
 */
int image_name(const struct cells *cells, const char *text, char ret[IMAGE_OPENER_REF_MAX],
	       struct err *e);

/*
 * image_get() - The image of this name (from image_name()), opened if needed, and held. @digest:
 * this very image, not the one that the name means now; or NULL. NULL with @ret: it is not in the
 * store, or cannot be opened.
 */
struct image_use *image_get(struct cells *cells, const char *name, const char *digest,
			    struct refusal *ret);
/* image_missing() - Whether the store lacks this image (from image_name()). False: it has it, or
 * this cannot be told, as image_get() does. */
bool image_missing(struct cells *cells, const char *name);
/*
 * image_lost() - An entry, held, for a sandbox that has a cell of an image that cannot be opened
 * any more. NULL: no memory.
 */
struct image_use *image_lost(struct cells *cells, const char *name, const char *digest);
/*
 * image_hold(), image_release() - Count one holder more, or one less: an image with a holder stays
 * open.
 */
void image_hold(struct image_use *g);
void image_release(struct image_use *g);

/* image_spec() - Make @spec that of a cell of this image; its descriptors are g->fds. */
void image_spec(const struct image_use *g, struct cell_spec *spec);

/* image_key() - Its digest, or its name if it has no digest: unique among images. */
const char *image_key(const struct image_use *g);

/* image_languages() - "python, bash": its languages, for messages. */
void image_languages(const struct image_use *g, char *text, size_t size);

/*
 * images_next() - The image after @g; the daemon's own is the first. @g NULL: the first. NULL: no
 * more.
 */
struct image_use *images_next(struct cells *cells, const struct image_use *g);

#endif
