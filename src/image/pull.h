/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h - An image from a registry into the store. */
#ifndef CAISSON_IMAGE_PULL_H
#define CAISSON_IMAGE_PULL_H

#include <stdbool.h>

#include "image/open.h"
#include "image/registry.h"
#include "image/show.h"
#include "image/store.h"

struct err;

struct pull_result {
	char ref[IMAGE_REF_MAX], digest[IMAGE_DIGEST_MAX];
	size_t layers, loaded; /* how many it has, how many were not here */
	uint64_t bytes;        /* that came over the network */
	struct unpack_dropped {
		uint64_t devices, set_ids, xattrs, ids;
	} dropped;
};

/*
 * pull() - Under store_change(). What is here already is not loaded again.
 * On failure nothing has changed but that archives that were begun are kept, for another try.
 */
int pull(const struct store *s, const struct ref *ref, const struct registry_options *o,
	 struct show *show, struct pull_result *ret, struct err *e);

#endif
