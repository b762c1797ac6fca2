/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.c - Worker after worker, with a pause before each but the first.
 *
 * A worker that is killed is followed by another one. A worker that ends by itself was told to, or
 * cannot do its work: the next one could not either, so its exit status is the end.
 *
 * The process has the rights of its worker before that entered its jail, or less. It reads nothing,
 * and makes system calls that every filter of a worker allows: some are in the worker's jail
 * themselves (caisson-bucket).
 */
#include "base/supervise.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static bool wait_for(const struct supervise *s, pid_t worker, unsigned int ms, int *ret_status)
{
	if (s->wait)
		return s->wait(s->arg, worker, ms, ret_status);
	if (!worker)
		(void)usleep(ms * 1000);
	if (worker && TEMP_FAILURE_RETRY(waitpid(worker, ret_status, 0)) < 0)
		return false;
	/* Children of a worker are killed with it, and are then ours: none writes any more. */
	while (worker && s->bury_all && !WIFEXITED(*ret_status) &&
	       (waitpid(-1, NULL, 0) > 0 || errno == EINTR))
		;
	return true;
}

int supervise(const struct supervise *s)
{
	unsigned int pause_ms = s->pause_ms;

	for (uint32_t life = 0; !s->lives_max || life < s->lives_max; life++) {
		uint64_t began = clock_now_ns();
		int status = 0;
		pid_t pid = fork();

		if (pid == 0)
			_exit(s->work(s->arg, life));
		if (pid < 0 && !s->insist)
			break;
		if (pid > 0 && !wait_for(s, pid, 0, &status))
			break;
		if (pid > 0 && WIFEXITED(status) && (!s->insist || WEXITSTATUS(status) == 0))
			return WEXITSTATUS(status);
		if (s->healthy_ms && clock_now_ns() - began > s->healthy_ms * CLOCK_NS_PER_MS)
			pause_ms = s->pause_ms;
		if (s->name)
			(void)fprintf(stderr, "%s: killed; another takes its place\n", s->name);
		if (!wait_for(s, 0, pause_ms, &status))
			break;
		if (s->pause_max_ms)
			pause_ms = 2 * pause_ms > s->pause_max_ms ? s->pause_max_ms : 2 * pause_ms;
	}
	return s->failed;
}
