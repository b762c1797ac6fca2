/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt.h - Which layers are in force, by the evidence of the Linux kernel.
 */
#ifndef CAISSON_CLIENT_RECEIPT_H
#define CAISSON_CLIENT_RECEIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/init.h"
#include "wire/warden.h"

struct buf;
struct err;

/*
 * receipt_write() - Read evidence, compare it with what was asked for, write the receipt as JSON.
 * @evidence: memfd in the format of wire/evidence.h
 * @runs: a process runs in the cell beside pid 1, and must be among the evidence. Otherwise none
 * has to: the receipt then reports that, and vouches for commands that are started later.
 *
 * Return: 0; -EPERM with a message that names the layer when a required one is not in force (the
 * receipt is written all the same); -EBADMSG when the evidence makes no sense.
 */
int receipt_write(int evidence, const struct cell_spec *spec, const struct init_ready *ready,
		  bool runs, struct buf *out, struct err *e);

/* receipt_from() - The same over bytes: pure, for tests and fuzzing. */
int receipt_from(const void *data, size_t len, const struct cell_spec *spec,
		 const struct init_ready *ready, bool runs, struct buf *out, struct err *e);

#endif
