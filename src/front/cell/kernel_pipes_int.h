/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_pipes_int.h - Shared by kernel_pipes.c, which reads, and kernel_send.c, which writes. */
#ifndef CAISSON_FRONT_KERNEL_PIPES_INT_H
#define CAISSON_FRONT_KERNEL_PIPES_INT_H

#include "front/cell/kernel_pipes.h"

#define KERNEL_PENDING_MAX (20u << 20)
#define KERNEL_SLOW_NS (1 * CLOCK_NS_PER_S)

/* kernel_pipes_broken() - Stop reading and writing, and report it once. */
void kernel_pipes_broken(struct kernel_pipes *k, const char *why, bool closed);
/* kernel_pipes_check() - Hold an idle kernel to its limits: see kernel_idle(). */
void kernel_pipes_check(struct kernel_pipes *k);
/* kernel_pipes_shrink() - Free the memory of something large: an idle kernel should take little. */
void kernel_pipes_shrink(struct buf *b);

/* kernel_send_ready() - k->in has room for a message that waits, or its other end is closed. */
void kernel_send_ready(struct watch *w, uint32_t events);

#endif
