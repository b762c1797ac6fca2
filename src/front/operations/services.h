/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - Sandboxes and their features, which the wires offer to clients. */
#ifndef CAISSON_FRONT_OPERATIONS_SERVICES_H
#define CAISSON_FRONT_OPERATIONS_SERVICES_H

#include <stddef.h>

#include "front/sandbox/sandboxes.h"

struct services {
	struct daemon *daemon;
	struct loop *loop; /* the daemon's */
	struct cells *cells;
	struct sandboxes *sandboxes;
	struct gate_link *gate; /* the way out of sandboxes */
	struct pulls *pulls;    /* of images that callers name */
	struct packages *packages;
	struct workspaces *workspaces;
	struct buckets *buckets;
	struct tool_calls *tool_calls;
	size_t n_proxied; /* requests through ports of all sandboxes */
};

#endif
