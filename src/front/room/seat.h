/* SPDX-License-Identifier: Apache-2.0 */
/* seat.h - One kernel of a room: start it warm or cold, hear of its end. For room.c. */
#ifndef CAISSON_FRONT_SEAT_H
#define CAISSON_FRONT_SEAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/init.h"

struct keeper_seat;
struct language;
struct room;
struct seat;

void seat_init(struct seat *s, struct room *r, const struct language *l);
void seat_clear(struct seat *s); /* forget the kernel; idempotent */

/* What pid 1 says of a kernel that was started cold. @fds: those that are kept become -1. */
void seat_started(struct seat *s, int *fds, size_t n_fds);
void seat_failed(struct seat *s, const struct init_failed *f);
void seat_ended(struct seat *s, int status);

/* seat_join() - A kernel of a former front (KEEPER_SEAT); @fds are the seat's when this is true. */
bool seat_join(struct seat *s, const struct keeper_seat *was, const int *fds, size_t n);
/* seat_settle() - It was busy: interrupt it; kernel_ready or kernel_ended follows, or gone. */
void seat_settle(struct seat *s);
void seat_unsettle(struct seat *s); /* idempotent */
void seat_settled(struct seat *s);  /* pid 1 answered ROOM_SETTLE */
void seat_settle_message(struct seat *s, const char *type, json_t *m);

/* seat_keep() - Leave a kernel that is ready with the keeper, if its room is. Both idempotent. */
void seat_keep(struct seat *s);
void seat_unkeep(struct seat *s);

#endif
