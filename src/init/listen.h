/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h - Sockets of the cell's network for the gate, which is outside and has no way in. */
#ifndef CAISSON_INIT_LISTEN_H
#define CAISSON_INIT_LISTEN_H

#include "wire/init.h"

/* listen_make() - Bound, and listening where that is to be. A non-blocking socket, or -errno. */
int listen_make(const struct init_listen *q);

#endif
