/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - What the store knows of one image: its manifest and its configuration. */
#ifndef CAISSON_IMAGE_RECORD_H
#define CAISSON_IMAGE_RECORD_H

#include "image/manifest.h"

struct err;
struct store;

/* record_load() - By the digest of its manifest, both checked. 0 (then config_free() is due) or
 * -errno. */
int record_load(const struct store *s, const char *digest, struct manifest *m, struct config *c,
		struct err *e);

#endif
