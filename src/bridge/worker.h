/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - The process that serves the front, and the one that starts it again. */
#ifndef CAISSON_BRIDGE_WORKER_H
#define CAISSON_BRIDGE_WORKER_H

struct bridge_config;

/* bridge_supervise() - Until the front closes @fd. Return: the exit status. */
int bridge_supervise(const struct bridge_config *c, int fd);

#endif
