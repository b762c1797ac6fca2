/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listeners.h - The sockets that the daemon listens on: from a service manager, from the former
 * front, or bound here.
 */
#ifndef CAISSON_FRONT_LISTENERS_H
#define CAISSON_FRONT_LISTENERS_H

#include "front/http/systemd.h"

struct daemon;
struct err;
struct server;
struct tls_server;

struct listeners {
	struct systemd_sockets given; /* the configuration borrows its address and path */
	int tcp, local;               /* or -1 */
	struct tls_server *tls;
};

/* listeners_take() - First of all: take the sockets of a service manager. Rules about addresses
 * apply to them. */
int listeners_take(struct server *server, struct listeners *d, struct err *e);
/* listeners_bind() - Before the jail: bind the other addresses. */
int listeners_bind(struct server *server, struct listeners *d, struct err *e);
/* listeners_open() - Accept connections from now on. */
int listeners_open(struct server *server, const struct listeners *d, struct err *e);
/* listeners_share() - Raise the limit of open files, and set the number of connections so that
 * sandboxes have enough of them. */
void listeners_share(struct daemon *daemon);
/* listeners_close() - Accept no new connection. */
void listeners_close(struct server *server);

#endif
