/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.h - Remove images that no reference names and no process uses.
 *
 * An image is kept when a reference names it or a process holds its lease; blobs and layers are
 * kept when an image that is kept has them.
 */
#ifndef CAISSON_IMAGE_GC_H
#define CAISSON_IMAGE_GC_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

struct gc_result {
	uint64_t images, layers, bytes; /* that were removed */
};

/* gc_in_use() - Whether a process holds the lease of this manifest. */
bool gc_in_use(const struct store *s, const char *digest);

/*
 * gc_run() - Under store_change(); takes the store's lock by itself.
 * @parts: also archives that are only partly loaded
 */
int gc_run(const struct store *s, bool parts, struct gc_result *ret, struct err *e);

#endif
