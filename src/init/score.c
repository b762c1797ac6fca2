/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score.c - Pid 1 is the last process that runs out of memory.
 *
 * Of the processes of a cell that is out of memory, the Linux kernel ends the one with the highest
 * oom_score_adj, and of equals the largest. Pid 1 must not be that one: its end is the end of the
 * cell and of its files. A child inherits the value, and nothing in a cell can write it, because
 * /proc is read-only there. So pid 1 has its own file open from before, raises its value for the
 * moment of a fork and lowers it again. An unprivileged process may lower the value as far as it
 * was when a privileged one set it last, and pid 1 returns to the value that it began with.
 *
 * Without the file all processes have the same value. Pid 1 is the smallest of them, and still the
 * last.
 */
#include "init/score.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/init.h"

static int score_fd = -1;
static char own[16];

void score_begin(void)
{
	ssize_t n;

	if (fcntl(INIT_SCORE_FD, F_SETFD, FD_CLOEXEC) < 0)
		return;
	n = pread(INIT_SCORE_FD, own, sizeof(own) - 1, 0);
	own[n > 0 ? n : 0] = '\0';
	if (n > 0)
		score_fd = INIT_SCORE_FD;
}

static void put(const char *score)
{
	if (score_fd >= 0)
		(void)!write(score_fd, score, strlen(score));
}

void score_child(const char *score)
{
	if (strtol(score, NULL, 10) > strtol(own, NULL, 10))
		put(score);
}

void score_own(void)
{
	put(own);
}
