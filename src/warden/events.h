/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - What dispatch.c, events.c and reap.c share: answers, handles, and the end of things.
 */
#ifndef CAISSON_WARDEN_EVENTS_H
#define CAISSON_WARDEN_EVENTS_H

#include "warden/dispatch.h"

struct err;

/*
 * answer() - Send the reply to request @seq. @reply is filled but for version, op, seq, code and
 * msg. False when the client is gone; one that does not read is, after a while (w->deaf).
 */
bool answer(struct warden *w, enum warden_op op, uint64_t seq, int code, const struct err *e,
	    struct warden_reply *reply, const int *fds, size_t n_fds);

struct cell *cell_of(struct warden *w, uint32_t handle);
struct zygote *zygote_of(struct warden *w, uint32_t handle);
uint32_t new_handle(struct warden *w, uint32_t index);

/* check_before() - Look at the limits again no later than @at_ns; 0 is ignored. */
void check_before(struct warden *w, uint64_t at_ns);

/* destroy_deadline() - The cell was told to die and has CELL_REAP_MS for it. */
void destroy_deadline(struct warden *w, struct cell *c);

/* init_ended() - Pid 1 of the cell is dead and not collected yet. */
void init_ended(struct warden *w, struct cell *c);

/* finish_destroy() - Pid 1 is reaped, and the end was asked for: remove it and say so, now or
 * later. */
void finish_destroy(struct warden *w, struct cell *c);

/* end_unclaimed() - A cell whose client is gone, made or in the making: end it, and tell nobody. */
void end_unclaimed(struct warden *w, struct cell *c);

/* zygote_gone() - It is dead or shall be: tell whoever waits for a kernel of it, and remove it. */
void zygote_gone(struct warden *w, struct zygote *z);

/* zygote_remove() - Take it out of the table and end it. Whoever waits for it is not told; @z is
 * not freed. */
void zygote_remove(struct warden *w, struct zygote *z);

#endif
