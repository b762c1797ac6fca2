/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - The process that speaks to the front and to the servers. */
#ifndef CAISSON_BRIDGE_WORKER_H
#define CAISSON_BRIDGE_WORKER_H

#include <stdint.h>

struct bridge_config;
struct err;

/* worker_run() - Until the front closes @fd. @life: how many workers there were, with this one. 0
 * or -errno. */
int worker_run(const struct bridge_config *c, int fd, uint64_t life, struct err *e);

#endif
