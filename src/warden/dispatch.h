/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatch.h - The requests that the warden knows, and who may make them when.
 */
#ifndef CAISSON_WARDEN_DISPATCH_H
#define CAISSON_WARDEN_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "warden/cell.h"
#include "warden/remains.h"
#include "warden/zygote.h"
#include "wire/warden.h"

#define WARDEN_STRAYS_MAX 64
#define WARDEN_NOBODY                                                                              \
	UINT64_MAX /* in the place of a request's number: its end is not waited for                \
		    */

struct warden {
	struct cell_host host;
	int epoll;
	int sock;  /* to the client */
	bool deaf; /* the client did not take an answer: it is as good as gone */
	uint32_t generation, serial;
	uint64_t next_check_ns; /* no cell has to be looked at before; 0 = none at all */
	/* Kernels of cells that were gone before they came: dead or dying, and ours to wait for.
	 * The kernel does not let pid 1 of their cell end before that. */
	pid_t strays[WARDEN_STRAYS_MAX];
	size_t n_strays;
	uint64_t strays_until_ns; /* a zygote died: there may be some that it did not name */
	struct remains_list remains;
	struct cell *cells[WARDEN_CELLS_MAX];
	struct zygote *zygotes[WARDEN_ZYGOTES_MAX];
};

/* What woke epoll up. An event's data is this, an index in cells[] or zygotes[], and the serial
 * number of what was there when it was watched. */
enum source {
	SOURCE_CLIENT,
	SOURCE_MADE, /* a cell's sync socket */
	SOURCE_INIT,
	SOURCE_MEMORY,
	SOURCE_KERNEL,
	SOURCE_ZYGOTE_MADE,
	SOURCE_ZYGOTE, /* its answers, and its end */
	SOURCE_MAX_,
};

uint64_t source_ref(enum source s, uint32_t index, uint32_t serial);

/*
 * dispatch_serve() - One request from the client; its reply now, or when its work is done.
 *
 * Whatever the request holds, every descriptor that came with it is closed, and the answer says why
 * it was refused. Return: false when the client is gone or talks nonsense: no whole request.
 */
bool dispatch_serve(struct warden *w);

/* dispatch_event() - What is not from the client. A stale event, of something gone, is ignored. */
void dispatch_event(struct warden *w, uint64_t ref);

/* source_of() - The source in a reference. */
enum source source_of(uint64_t ref);

/* dispatch_check() - Enforce limits and deadlines. Returns how long epoll may sleep, in ms. */
int dispatch_check(struct warden *w);

/* dispatch_end() - The client is gone: end everything. */
void dispatch_end(struct warden *w);

#endif
