/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_lookup.h - Find programs and users in the layers of an image that is not mounted.
 *
 * The result is a hint for messages and defaults: strangers made the layers, and the cell decides.
 * No link of a layer leads out of it.
 */
#ifndef CAISSON_IMAGE_OPENER_LAYER_LOOKUP_H
#define CAISSON_IMAGE_OPENER_LAYER_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* layer_lookup_has() - Is there a program @name in a directory of @path ("/usr/bin:/bin")? An
 * absolute name is looked for there. */
bool layer_lookup_has(const int *layers, size_t n, const char *path, const char *name);

/*
 * layer_lookup_user() - The numbers of "name", "1000", "name:group", "1000:1000". "": 0.
 * A name that the image does not have is an error.
 */
int layer_lookup_user(const int *layers, size_t n, const char *user, uint32_t *uid, uint32_t *gid,
		      struct err *e);

#endif
