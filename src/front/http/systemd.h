/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd.h - What a service manager hands over and wants to hear: sd_listen_fds(3), sd_notify(3).
 *
 * Both are a few lines of protocol, so there is no library for them. Nothing happens when nobody
 * asks.
 */
#ifndef CAISSON_FRONT_SYSTEMD_H
#define CAISSON_FRONT_SYSTEMD_H

#include <stdint.h>
#include <sys/types.h>

#include "net/loop.h"
#include "wire/keeper.h"

struct err;
struct keep;

/* Sockets that were listening before we were there; -1: none of that kind. */
struct systemd_sockets {
	int tcp, local;
	char address[80]; /* of tcp, as --listen has it */
	char path[108];   /* of local; "@..." when it is abstract, empty when it has no name */
};

/*
 * systemd_sockets() - Take LISTEN_FDS from the environment, at the very start. A descriptor that is
 * no listening stream socket of these two kinds, or a second one of a kind, is an error.
 * @keeper: whom they were handed to if not to us; 0: nobody
 */
int systemd_sockets(pid_t keeper, struct systemd_sockets *ret, struct err *e);

struct systemd {
	struct loop *loop;
	struct keep *keep; /* the manager listens to the keeper, if there is one */
	int fd;            /* to the manager; -1: nobody wants to hear */
	struct timer watchdog;
	uint64_t watchdog_ns; /* half of what it waits; 0: it does not */
};

/* systemd_open() - Before the jail: connect to NOTIFY_SOCKET. What can not be connected is not
 * talked to. */
void systemd_open(struct systemd *s, struct keep *keep);
/* systemd_ready() - Requests are answered from now on; the watchdog is fed by the loop. */
void systemd_ready(struct systemd *s, struct loop *l);
void systemd_say(struct systemd *s, enum keeper_word word);

#endif
