/* SPDX-License-Identifier: Apache-2.0 */
/* sockets.h - Sockets of the cell's network for processes outside: the client, the gate. */
#ifndef CAISSON_INIT_SOCKETS_H
#define CAISSON_INIT_SOCKETS_H

#include "wire/init.h"

/*
 * sockets_connect() - Begin to connect to the cell's loopback; never waits.
 * Return: a non-blocking socket, which may still be connecting, or -errno.
 */
int sockets_connect(const struct init_connect *q);

/* sockets_listen() - A non-blocking socket, bound, and listening unless it is UDP; or -errno. */
int sockets_listen(const struct init_listen *q);

#endif
