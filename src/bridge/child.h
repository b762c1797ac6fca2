/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - A program that was started as a server: its process group, its pipes, its end.
 *
 * It leads a session of its own, so that everything it starts can be ended with it, and dies with
 * the worker (PR_SET_PDEATHSIG). It is ended in steps: its input closes, a second later SIGTERM, a
 * second later SIGKILL, each to the whole group.
 */
#ifndef CAISSON_BRIDGE_CHILD_H
#define CAISSON_BRIDGE_CHILD_H

#include <sys/types.h>

#include "net/loop.h"

struct child;
struct err;
struct server_config;

struct children {
	struct loop *loop;
	struct child *first;
	void (*on_none)(void *arg); /* all have ended */
	void *arg;
};

struct child {
	struct children *all;
	struct child *prev, *next;
	pid_t pid;
	int in, out, err;  /* its stdin, stdout and stderr; the owner takes them (and sets -1), or
			      they close with it */
	struct watch gone; /* pidfd */
	struct timer timer;
	unsigned int step;
	/* It ended by itself; @how as in "ended with status 1". It is freed after this. Not called
	 * after child_end(). */
	void (*on_exit)(struct child *c, const char *how);
	void *arg;
};

/* child_start() - The caller fills on_exit. Fails when the program cannot be executed. */
int child_start(struct children *all, const struct server_config *s, struct child **ret,
		struct err *e);

/* child_end() - End it; it frees itself when it has ended. Pipes that the owner took are the
 * owner's to close. */
void child_end(struct child *c);

#endif
