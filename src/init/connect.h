/* SPDX-License-Identifier: Apache-2.0 */
/* connect.h - Sockets to what listens in the cell, for a client outside that has no way in. */
#ifndef CAISSON_INIT_CONNECT_H
#define CAISSON_INIT_CONNECT_H

#include "wire/init.h"

/*
 * connect_begin() - Begin to connect to the cell's loopback; never waits.
 * Return: a non-blocking socket, which may still be connecting, or -errno.
 */
int connect_begin(const struct init_connect *q);

#endif
