/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listeners.h - The sockets that the daemon listens on: from a service manager, from the front
 * before us, or bound here.
 */
#ifndef CAISSON_FRONT_LISTENERS_H
#define CAISSON_FRONT_LISTENERS_H

#include <stddef.h>

#include "front/http/systemd.h"

struct err;
struct front;
struct tls_server;

struct listeners {
	struct systemd_sockets given; /* its address and path are lent to the configuration */
	int tcp, local;               /* -1: none */
	struct tls_server *tls;
};

/* listeners_take() - At the very start: what a service manager hands over, which rules about
 * addresses then apply to. */
int listeners_take(struct front *f, struct listeners *d, struct err *e);
/* listeners_bind() - Before the jail: the rest. */
int listeners_bind(struct front *f, struct listeners *d, struct err *e);
/* listeners_open() - Requests are answered from now on. */
int listeners_open(struct front *f, const struct listeners *d, struct err *e);
/* listeners_share() - As many open files as may be had, and of them as many connections as leave
 * room for sandboxes. */
void listeners_share(struct front *f);
/* listeners_close() - No new connection. */
void listeners_close(struct front *f);

#endif
