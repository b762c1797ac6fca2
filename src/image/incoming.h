/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incoming.h - An image on its way into the store, from a registry, an archive or a build.
 *
 * Life: incoming_init() -> the caller fills manifest, config, m and ret->digest ->
 * incoming_check() -> incoming_begin(), incoming_end() for each layer that incoming_has() does not
 * find, or incoming_unpack() for all of them -> incoming_publish(). incoming_free() in any case.
 */
#ifndef CAISSON_IMAGE_INCOMING_H
#define CAISSON_IMAGE_INCOMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "image/documents.h"
#include "image/image_store.h"
#include "image/layer.h"
#include "image/show.h"

struct err;

struct incoming_result {
	char ref[IMAGE_REF_MAX], digest[IMAGE_DIGEST_MAX];
	size_t layers, loaded; /* how many it has, how many the store did not have */
	uint64_t bytes;        /* that came over the network */
	struct {
		uint64_t devices, set_ids, xattrs, ids;
	} dropped;
};

struct incoming {
	const struct store *s;
	struct show *show;
	struct incoming_result *ret;
	struct buf manifest, config; /* the documents, */
	struct manifest m;           /* and what they say */
	struct config c;
	struct {
		struct layer_job job;
		char tree[STORE_NAME_MAX]; /* unpacked, not in the store yet; "": no such tree */
		char seal[IMAGE_DIGEST_MAX];
	} layers[IMAGE_LAYERS_MAX];
};

void incoming_init(struct incoming *in, const struct store *s, struct show *show,
		   struct incoming_result *ret);
/* incoming_free() - Also ends unpackers that run, and removes trees that were not published. */
void incoming_free(struct incoming *in);

/* incoming_check() - Parse the configuration; does it fit the manifest and this machine? */
int incoming_check(struct incoming *in, struct err *e);
/* incoming_show() - Another process did that, and m and the layers of c are filled in. */
void incoming_show(struct incoming *in);

/* incoming_has() - Whether layer @i is in the store, or is a repetition. */
bool incoming_has(const struct incoming *in, size_t i);

/* incoming_begin(), incoming_end() - Start to unpack layer @i from @archive; wait for it. */
int incoming_begin(struct incoming *in, size_t i, int archive, struct err *e);
int incoming_end(struct incoming *in, size_t i, struct err *e);

/*
 * incoming_unpack() - All layers, whose archives are complete files.
 * @archives: one descriptor per layer; each content is checked against the manifest's digest
 */
int incoming_unpack(struct incoming *in, const int *archives, struct err *e);

/* incoming_publish() - Give everything its name in the store, the reference ret->ref last. */
int incoming_publish(struct incoming *in, struct err *e);

#endif
