/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - One kernel of a cell: its start, warm or cold, and its end. For the files of cell/. */
#ifndef CAISSON_FRONT_KERNEL_H
#define CAISSON_FRONT_KERNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/init.h"

struct keeper_kernel;
struct language;
struct cell;
struct kernel;

void kernel_init(struct kernel *s, struct cell *r, const struct language *l);
void kernel_clear(struct kernel *s); /* forget the kernel; idempotent */

/* Reports of pid 1 about a kernel that was started cold. @fds: those that are kept become -1. */
void kernel_started(struct kernel *s, int *fds, size_t n_fds);
void kernel_failed(struct kernel *s, const struct init_failed *f);
void kernel_ended(struct kernel *s, int status);

/*
 * kernel_join() - Take over a kernel of a former front (KEEPER_KERNEL). The descriptors that it
 * takes from @fds are -1 afterwards. False: the caller has to kill it.
 */
bool kernel_join(struct kernel *s, const struct keeper_kernel *was, int *fds, size_t n);
/*
 * For a kernel that settles: it was busy for a former front. kernel_ready, kernel_ended or gone
 * follows.
 */
void kernel_unsettle(struct kernel *s); /* idempotent */
void kernel_settled(struct kernel *s);  /* pid 1 answered CELL_SETTLE */
void kernel_settle_message(struct kernel *s, const char *type, json_t *m);

/* kernel_acknowledge() - Acknowledge a display: the kernel may send the next one. */
void kernel_acknowledge(struct kernel *s);

/*
 * kernel_keep() - Store the pipes of a kernel that is ready with the keeper, if its cell is stored
 * there. kernel_unkeep() - Remove them. Both are idempotent.
 */
void kernel_keep(struct kernel *s);
void kernel_unkeep(struct kernel *s);

#endif
