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
struct ref;
struct registry_options;

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

/* ---- pull.c -------------------------------------------------------------------------------- */

/*
 * pull() - Under store_change(). Layers that the store has are not loaded again.
 * On failure the store is as it was, except that archives of layers that were begun are kept, for
 * another try.
 */
int pull(const struct store *s, const struct ref *ref, const struct registry_options *o,
	 struct show *show, struct incoming_result *ret, struct err *e);

/* ---- import.c: an OCI layout, or the output of `docker save` --------------------------------- */

/*
 * import() - Under store_change(). Names in it are resolved below it.
 * @ref:   the name that the image gets; NULL: the name in the archive
 * @allow: of image_allowed(), which this name must pass
 */
int import(const struct store *s, const char *path, const struct ref *ref, const char *allow,
	   struct show *show, struct incoming_result *ret, struct err *e);

/* ---- the last step alone ------------------------------------------------------------------- */

struct publish_layer {
	const char *diff_id;
	const char *tree; /* its name in tmp; "": the store has the layer */
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
