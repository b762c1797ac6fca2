/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h - The requests and events of the warden, and the state that they act on. */
#ifndef CAISSON_WARDEN_DISPATCH_H
#define CAISSON_WARDEN_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "warden/warden_cell.h"
#include "wire/warden.h"

#define WARDEN_STRAYS_MAX 64
/* In place of a request's number: no request waits for the cell's end. */
#define WARDEN_NOBODY UINT64_MAX

struct warden {
	struct cell_host host;
	int epoll;
	int sock;  /* to the client */
	bool deaf; /* the client did not take an answer, and counts as gone */
	uint32_t generation, serial;
	uint64_t next_check_ns; /* no cell has to be looked at before; 0 = none at all */
	/* Kernels of cells that were gone before they came: dead or dying, and ours to wait for.
	 * The Linux kernel does not let pid 1 of their cell end before that. */
	pid_t strays[WARDEN_STRAYS_MAX];
	size_t n_strays;
	uint64_t strays_until_ns; /* a zygote died: there may be some that it did not name */
	struct remains_list remains;
	struct cell *cells[WARDEN_CELLS_MAX];
	struct zygote *zygotes[WARDEN_ZYGOTES_MAX];
};

/* Sources of events. An event's data has the source, an index in cells[] or zygotes[], and the
 * serial number that the entry had when it was watched. */
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
 * Every descriptor that came with the request is closed in any case, and the answer has the reason
 * of a refusal. Return: false when the client is gone or broke the protocol: no whole request.
 */
bool dispatch_serve(struct warden *w);

/* dispatch_event() - An event that is not from the client. A stale one is ignored. */
void dispatch_event(struct warden *w, uint64_t ref);

/* source_of() - The source in a reference. */
enum source source_of(uint64_t ref);

/* dispatch_check() - Enforce limits and deadlines. Returns how long epoll may sleep, in ms. */
int dispatch_check(struct warden *w);

/* dispatch_end() - The client is gone: end everything. */
void dispatch_end(struct warden *w);

/* ---- shared by dispatch.c, warden_events.c and reap.c --------------------------------------- */

/*
 * answer() - Send the reply to request @seq. The caller fills @reply except version, op, seq, code
 * and msg. False when the client is gone; a client that does not read for a while counts as gone
 * (w->deaf).
 */
bool answer(struct warden *w, enum warden_op op, uint64_t seq, int code, const struct err *e,
	    struct warden_reply *reply, const int *fds, size_t n_fds);

/* watch() - Let epoll report this descriptor as an event of @s. 0 or -errno with a message. */
int watch(struct warden *w, int fd, enum source s, uint32_t index, uint32_t serial, struct err *e);

struct cell *cell_of(struct warden *w, uint32_t handle);
struct zygote *zygote_of(struct warden *w, uint32_t handle);
uint32_t new_handle(struct warden *w, uint32_t index);

/* check_before() - Look at the limits again no later than @at_ns; 0 is ignored. */
void check_before(struct warden *w, uint64_t at_ns);

/* killed() - The cell should end now: it is looked at again soon (cell_check()). */
void killed(struct warden *w, struct cell *c);

/* destroy_deadline() - The cell is being killed, and is given up after CELL_REAP_MS. */
void destroy_deadline(struct warden *w, struct cell *c);

/* init_ended() - Pid 1 of the cell is dead and not collected yet. */
void init_ended(struct warden *w, struct cell *c);

/* finish_destroy() - Pid 1 is reaped, the end was requested: remove and answer, now or later. */
void finish_destroy(struct warden *w, struct cell *c);

/* end_unclaimed() - End a cell whose client is gone, made or in the making, without an answer. */
void end_unclaimed(struct warden *w, struct cell *c);

/* zygote_gone() - Remove a zygote; requests for its kernels are refused. */
void zygote_gone(struct warden *w, struct zygote *z);

/* zygote_remove() - Take it out of the table and end it, without answers; @z is not freed. */
void zygote_remove(struct warden *w, struct zygote *z);

#define STRAY_AGAIN_NS 5000000u /* how often processes that should be dead are checked */

/* reap_add_stray() - Wait for a process that belongs to no cell and no zygote any more. @pid may be
 * a lie of a zygote: one that belongs to a cell or a zygote is not taken. */
void reap_add_stray(struct warden *w, pid_t pid);

/* reap_strays() - Collect those, and then every process that died and belongs to nothing; check
 * again while there may be more. */
void reap_strays(struct warden *w);

/* reap_threads() - Collect threads that died and had the warden as their tracer: while one is left,
 * its kernel cannot be collected. */
void reap_threads(const struct warden *w);

#endif
