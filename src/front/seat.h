/* SPDX-License-Identifier: Apache-2.0 */
/* seat.h - One kernel of a room: start it warm or cold, hear of its end. For room.c. */
#ifndef CAISSON_FRONT_SEAT_H
#define CAISSON_FRONT_SEAT_H

#include <stddef.h>

#include "wire/init.h"

struct language;
struct room;
struct seat;

void seat_init(struct seat *s, struct room *r, const struct language *l);
void seat_clear(struct seat *s); /* forget the kernel; idempotent */

/* What pid 1 says of a kernel that was started cold. @fds: those that are kept become -1. */
void seat_started(struct seat *s, int *fds, size_t n_fds);
void seat_failed(struct seat *s, const struct init_failed *f);
void seat_ended(struct seat *s, int status);

#endif
