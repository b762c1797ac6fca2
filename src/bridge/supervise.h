/* SPDX-License-Identifier: Apache-2.0 */
/* supervise.h - A process that only watches: it starts the worker, and another one when that is
 * killed. */
#ifndef CAISSON_BRIDGE_SUPERVISE_H
#define CAISSON_BRIDGE_SUPERVISE_H

struct bridge_config;
struct err;

/* bridge_supervise() - Until the front closes @fd. Return: the exit status. */
int bridge_supervise(const struct bridge_config *c, int fd);

#endif
