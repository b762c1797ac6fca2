/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doors.h - The sockets that the daemon listens on: from a service manager, from the front before us, or bound here.
 */
#ifndef CAISSON_FRONT_DOORS_H
#define CAISSON_FRONT_DOORS_H

#include <stddef.h>

#include "front/systemd.h"

struct err;
struct front;
struct tls_server;

struct doors {
	struct systemd_sockets given; /* its address and path are lent to the configuration */
	int tcp, local;               /* -1: none */
	struct tls_server *tls;
};

/* doors_take() - At the very start: what a service manager hands over, which rules about addresses then apply to. */
int doors_take(struct front *f, struct doors *d, struct err *e);
/* doors_bind() - Before the jail: the rest. */
int doors_bind(struct front *f, struct doors *d, struct err *e);
/* doors_open() - Requests are answered from now on. */
int doors_open(struct front *f, const struct doors *d, struct err *e);
/* doors_share() - As many open files as may be had, and of them as many connections as leave room for sandboxes. */
void doors_share(struct front *f);
/* doors_close() - No new connection. */
void doors_close(struct front *f);

#endif
