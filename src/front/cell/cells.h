/* SPDX-License-Identifier: Apache-2.0 */
/* cells.h - All cells, and what they are made from. */
#ifndef CAISSON_FRONT_CELL_CELLS_H
#define CAISSON_FRONT_CELL_CELLS_H

#include <stddef.h>

#include "front/support/daemon.h"
#include "wire/warden.h"

struct cells {
	struct daemon *daemon;
	struct loop *loop;     /* the daemon's */
	struct cell_spec spec; /* of every cell, but for its image */
	struct warden_link *link;
	struct keep *keep;       /* what the next front needs if this one is killed */
	struct drivers *drivers; /* of the interpreters */
	struct images *images;   /* that sandboxes are made from */
	struct mounts *mounts;   /* of the operator, for every sandbox */
	const struct cell_hooks *hooks;
	size_t n; /* cells that are there or are being made */
};

#endif
