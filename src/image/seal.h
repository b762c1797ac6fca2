/* SPDX-License-Identifier: Apache-2.0 */
/* seal.h - Whether a layer in the store still is what was unpacked. */
#ifndef CAISSON_IMAGE_SEAL_H
#define CAISSON_IMAGE_SEAL_H

#include "image/open.h"

struct err;

/* seal_tree() - A digest of a whole tree. 0 or -errno. */
int seal_tree(int root, char ret[IMAGE_DIGEST_MAX], struct err *e);

#endif
