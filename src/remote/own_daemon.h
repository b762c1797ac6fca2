/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_daemon.h - A daemon of our own: nobody else can reach it, and it ends with us.
 *
 * It serves on a socket in a directory that only we may enter, which holds its state too and is
 * removed at the end. A process in between, in a session of its own, holds the other end of a pipe
 * to us, and ends the daemon when the pipe is closed: also when we are killed.
 */
#ifndef CAISSON_REMOTE_OWN_DAEMON_H
#define CAISSON_REMOTE_OWN_DAEMON_H

#include <sys/types.h>

struct problem;

struct own_daemon {
	pid_t keeper;
	int lease; /* the daemon lives as long as this is open */
	char dir[64];
	char socket[108];
};

/*
 * own_daemon_start() - Start it, and wait until it serves.
 * @options: further ones for `caisson serve`, ends with NULL
 * @signals: a signalfd, borrowed; a signal ends the waiting
 * Return: 0, or -1 with @p; the daemon's own messages are on stderr. own_daemon_stop() in every
 * case.
 */
int own_daemon_start(struct own_daemon *d, const char *tools, char *const *options, int signals,
		     struct problem *p);
/* own_daemon_stop() - Returns when it has ended and its files are removed. Idempotent. */
void own_daemon_stop(struct own_daemon *d);

#endif
