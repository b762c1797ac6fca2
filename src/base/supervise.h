/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.h - A process that only watches: it starts a worker, and another when that is killed.
 *
 * A front in its jail can start no program. So a helper of the daemon that may die of what it reads
 * is two processes: the one that the front started, which reads nothing and calls supervise(), and
 * its child, which works.
 */
#ifndef CAISSON_BASE_SUPERVISE_H
#define CAISSON_BASE_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct supervise {
	/* In the child, until its end. @life: workers before it. Returns the exit status. */
	int (*work)(void *arg, uint32_t life);
	void *arg;
	const char *name;   /* of the program, for a line on stderr; NULL: the front logs it */
	uint32_t lives_max; /* workers; 0: any number */
	int failed;         /* the exit status when there is no further worker */
	bool bury_all;      /* a subreaper: wait until the worker's own children have ended, too */
	/* Start another worker also after a failed exit status or a failed fork. */
	bool insist;
	/* Before the next worker: @pause_ms, twice as long each time up to @pause_max_ms (0: always
	 * the same), and from the beginning again after a worker that lived for @healthy_ms (0:
	 * never). */
	unsigned int pause_ms, pause_max_ms, healthy_ms;
	/*
	 * Instead of waitpid(2) and sleeping, for a process that has to watch something else
	 * meanwhile.
	 * @worker: wait for its end; 0: wait for @ms. False: it is over, and no worker follows.
	 */
	bool (*wait)(void *arg, pid_t worker, unsigned int ms, int *ret_status);
};

/* supervise() - Until a worker ends by itself, or there were too many. Return: the exit status. */
int supervise(const struct supervise *s);

#endif
