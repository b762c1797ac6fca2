/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h - Everything of an image is here: give it its names, in an order that a crash can not
 * spoil.
 *
 * Trees to the disk, layers, configuration, manifest, lease; the reference last. What was made and
 * is not meant by the reference yet is no image, and the next `prune` takes it.
 */
#ifndef CAISSON_IMAGE_PUBLISH_H
#define CAISSON_IMAGE_PUBLISH_H

#include <stddef.h>

#include "image/store.h"

struct buf;
struct err;

struct publish_layer {
	const char *diff_id;
	const char *tree; /* its name in tmp; NULL or "": the layer is there */
	const char *seal; /* of such a tree */
};

struct publish {
	const char *ref; /* canonical */
	const char *digest, *config_digest;
	const struct buf *manifest, *config;
	const struct publish_layer *layers;
	size_t n_layers;
};

int publish(const struct store *s, const struct publish *p, struct err *e);

#endif
