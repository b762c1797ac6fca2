/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauges.h - The use of resources of a cell, read from the Linux kernel's files that the warden
 * opened for us.
 *
 * A request to the warden costs two changes of process; for an execution that ended well that would
 * be a fifth of its time. The part of memory that is files only explains an end, and is not among
 * them.
 */
#ifndef CAISSON_CLIENT_GAUGES_H
#define CAISSON_CLIENT_GAUGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/warden.h"

struct gauges {
	int fd[GAUGE_MAX_]; /* -1: not there */
};

void gauges_init(struct gauges *g);
/* gauges_take() - @fds: in the order of the bits of @have; those that are taken become -1. */
void gauges_take(struct gauges *g, uint32_t have, int *fds, size_t n);
void gauges_close(struct gauges *g); /* idempotent */

/*
 * gauges_read() - Fill cpu_ns, throttled_ns, memory_peak, pids_peak, pids_denied and oom_kills of
 * @u; the rest stays. Return: false when one of them cannot be read: ask the warden.
 */
bool gauges_read(const struct gauges *g, struct cell_usage *u);

/* gauges_cpu() - The processor time alone, which every machine shows. False: it cannot be read. */
bool gauges_cpu(const struct gauges *g, uint64_t *ret_ns);

/* gauges_oom() - How many processes ended for memory so far. 0 also if it cannot be read. */
uint64_t gauges_oom(const struct gauges *g);

/*
 * gauges_room() - How much memory of @limit bytes the cell can still take without the end of a
 * process: what is free and what can be reclaimed, but for a small part that everything needs while
 * it works. Return: false when it cannot be read.
 */
bool gauges_room(const struct gauges *g, uint64_t limit, uint64_t *ret);

/* gauges_memory() - How much memory the cell has now, in bytes. */
bool gauges_memory(const struct gauges *g, uint64_t *ret);

/* gauges_number(), gauges_key() - A text of one number; the number behind "key ". Pure. */
bool gauges_number(const char *text, size_t len, uint64_t *ret);
bool gauges_key(const char *text, size_t len, const char *key, uint64_t *ret);

#endif
