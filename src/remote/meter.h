/* SPDX-License-Identifier: Apache-2.0 */
/* meter.h - The progress of a copy: a line on stderr, on a terminal, after the first second. */
#ifndef CAISSON_REMOTE_METER_H
#define CAISSON_REMOTE_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct meter {
	uint64_t begin_ns, next_ns; /* next_ns UINT64_MAX: never */
	uint64_t done, total;       /* bytes; total 0: not known */
	bool shown;
};

void meter_begin(struct meter *m, uint64_t total);
void meter_add(struct meter *m, size_t bytes);
void meter_end(struct meter *m); /* takes the line away */

/* meter_text() - "12 MiB of 40 MiB, 3 MiB/s" into @text. Pure. */
void meter_text(uint64_t done, uint64_t total, uint64_t ns, char *text, size_t size);

#endif
