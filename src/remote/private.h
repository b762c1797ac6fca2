/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.h - A daemon of our own: nobody else can reach it, and it ends with us.
 *
 * It serves on a socket in a directory that only we may enter, which is its state directory too and
 * is removed at the end. Also when we are killed: a process in between, which is in no terminal's
 * and no host's group, holds the other end of a pipe to us, and ends the daemon when that is
 * closed.
 */
#ifndef CAISSON_REMOTE_PRIVATE_H
#define CAISSON_REMOTE_PRIVATE_H

#include <sys/types.h>

struct problem;

struct private_daemon {
	pid_t keeper;
	int lease; /* as long as this is open it lives */
	char dir[64];
	char socket[108];
};

/*
 * private_start() - And wait until it serves.
 * @options: further ones for `caisson serve`, ends with NULL
 * @signals: a signalfd, borrowed: one that comes ends the waiting
 * Return: 0, or -1 with @p; what the daemon itself said is on stderr then. private_stop() in every
 * case.
 */
int private_start(struct private_daemon *d, const char *tools, char *const *options, int signals,
		  struct problem *p);
/* private_stop() - Returns when it has ended and everything of it is removed. Idempotent. */
void private_stop(struct private_daemon *d);

#endif
