/* SPDX-License-Identifier: Apache-2.0 */
/* drain.h - The end of the daemon on a signal. */
#ifndef CAISSON_FRONT_MAIN_DRAIN_H
#define CAISSON_FRONT_MAIN_DRAIN_H

struct err;
struct parts;

/* drain_open() - Before the jail: watch the signals that end the daemon. 0 or -errno. */
int drain_open(struct parts *p, struct err *e);

#endif
