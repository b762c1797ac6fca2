/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd.h - Sockets from a service manager, and notifications to it: sd_listen_fds(3),
 * sd_notify(3).
 *
 * Both are a few lines of protocol, so no library is used. Without a service manager nothing
 * happens.
 */
#ifndef CAISSON_FRONT_SYSTEMD_H
#define CAISSON_FRONT_SYSTEMD_H

#include <stdint.h>
#include <sys/types.h>

#include "net/loop.h"
#include "wire/keeper.h"

struct err;
struct keep;

/* Sockets that a service manager has opened; -1: none of that kind. */
struct systemd_sockets {
	int tcp, local;
	char address[80]; /* of tcp, as --listen has it */
	char path[108];   /* of local; "@..." when it is abstract, empty when it has no name */
};

/*
 * systemd_sockets() - First of all: take LISTEN_FDS from the environment. A descriptor that is not
 * a listening stream socket of these two kinds, or a second one of a kind, is an error.
 * @keeper: pid of the keeper, which may have got them in our place; or 0
 */
int systemd_sockets(pid_t keeper, struct systemd_sockets *ret, struct err *e);

struct systemd {
	struct loop *loop;
	struct keep *keep; /* notifications go through the keeper, if there is one */
	int fd;            /* to the manager; or -1 */
	struct timer watchdog;
	uint64_t watchdog_ns; /* half of the manager's limit; 0: it has none */
};

/* systemd_open() - Before the jail: connect to NOTIFY_SOCKET. If that fails there are no
 * notifications. */
void systemd_open(struct systemd *s, struct keep *keep);
/* systemd_ready() - Report that the daemon serves; the loop then feeds the watchdog. */
void systemd_ready(struct systemd *s, struct loop *l);
void systemd_say(struct systemd *s, enum keeper_word word);

#endif
