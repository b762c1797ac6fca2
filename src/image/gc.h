/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.h - Taking away what no reference means and nobody uses.
 *
 * An image is kept when a reference means it or somebody holds its lease; blobs and layers are kept
 * when an image that is kept has them.
 */
#ifndef CAISSON_IMAGE_GC_H
#define CAISSON_IMAGE_GC_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

struct gc_result {
	uint64_t images, layers, bytes; /* that are gone */
};

/* gc_in_use() - Whether somebody holds the lease of this manifest. */
bool gc_in_use(const struct store *s, const char *digest);

/*
 * gc_run() - Under store_change(); takes the store's lock by itself.
 * @parts: archives that were begun, too
 */
int gc_run(const struct store *s, bool parts, struct gc_result *ret, struct err *e);

#endif
