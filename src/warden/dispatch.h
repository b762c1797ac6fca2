/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatch.h - The requests that the warden knows, and who may make them when.
 */
#ifndef CAISSON_WARDEN_DISPATCH_H
#define CAISSON_WARDEN_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "warden/cell.h"
#include "wire/warden.h"

struct warden {
	struct cell_host host;
	int epoll;
	uint32_t generation;
	struct cell *cells[WARDEN_CELLS_MAX];
};

/* What woke epoll up: the upper half of an event's data; the lower is an index in cells[]. */
enum source { SOURCE_CLIENT, SOURCE_INIT, SOURCE_MEMORY };

uint64_t source_ref(enum source s, uint32_t index);

/*
 * dispatch_serve() - One request from @sock, one reply.
 *
 * Whatever the request holds, every descriptor that came with it is closed, and the answer says why
 * it was refused. Return: false when the client is gone or talks nonsense: no whole request.
 */
bool dispatch_serve(struct warden *w, int sock);

#endif
