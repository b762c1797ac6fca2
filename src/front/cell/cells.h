/* SPDX-License-Identifier: Apache-2.0 */
/* cells.h - All cells, and the parts that they are made with. */
#ifndef CAISSON_FRONT_CELL_CELLS_H
#define CAISSON_FRONT_CELL_CELLS_H

#include <stddef.h>

#include "front/support/daemon.h"
#include "wire/warden.h"

struct cells {
	struct daemon *daemon;
	struct loop *loop;     /* the daemon's */
	struct cell_spec spec; /* for every cell, without its image */
	struct warden_link *link;
	struct keep *keep;       /* the keeper, which stores state for the next front */
	struct drivers *drivers; /* of the interpreters */
	struct images *images;   /* that sandboxes are made from */
	struct mounts *mounts;   /* of the operator, for every sandbox */
	const struct cell_hooks *hooks;
	size_t n; /* cells that exist or are being made */
};

#endif
