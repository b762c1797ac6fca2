/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.c - Worker after worker on one socket.
 *
 * Messages are packets, so a worker that was killed leaves no half message behind, and the next one
 * says hello. This process is the reaper of everything that workers start: what is still there when
 * a worker has ended is killed, also what took itself out of its process group.
 */
#include "bridge/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/supervise.h"
#include "bridge/say.h"
#include "bridge/worker.h"

#define BACK_OFF_MS 100u
#define BACK_OFF_MAX_MS 10000u
#define HEALTHY_MS 60000u
#define GRACE_NS (6 * CLOCK_NS_PER_S) /* for a worker whose front is gone */
#define SWEEPS_MAX 200

struct supervisor {
	const struct bridge_config *config;
	int fd, signals;
	pid_t self, worker; /* worker 0: none */
	int status;
	bool over; /* the front is gone */
	uint64_t kill_at;
};

static void reap(struct supervisor *s)
{
	struct signalfd_siginfo info;
	int status;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		if (pid == s->worker) {
			s->worker = 0;
			s->status = status;
		}
}

/* Until the worker has ended, or for @ms when there is none. */
static void wait_for(struct supervisor *s, int ms)
{
	bool any = s->worker > 0;

	do {
		struct pollfd p[] = { { .fd = s->signals, .events = POLLIN },
				      { .fd = s->over ? -1 : s->fd } };
		int patience = any ? (s->over ? 200 : -1) : ms;

		if (poll(p, ARRAY_SIZE(p), patience) == 0 && !any)
			return;
		if (p[1].revents & (POLLHUP | POLLERR)) {
			s->over = true;
			s->kill_at = clock_now_ns() + GRACE_NS;
		}
		reap(s);
		if (s->over && s->worker > 0 && clock_now_ns() >= s->kill_at)
			(void)kill(s->worker, SIGKILL);
	} while (any ? s->worker > 0 : !s->over);
}

/* Whatever is a child of ours now was left behind by a worker. */
static void sweep(struct supervisor *s)
{
	char path[64], list[4096];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	for (int i = 0; i < SWEEPS_MAX; i++) {
		struct pollfd p = { .fd = s->signals, .events = POLLIN };
		char *at = list, *end;
		ssize_t n = fd_read_file(-100 /* AT_FDCWD */, path, list, sizeof(list));

		if (n <= 0)
			return;
		for (long pid; (pid = strtol(at, &end, 10)) > 0; at = end)
			(void)kill((pid_t)pid, SIGKILL);
		(void)poll(&p, 1, 50);
		reap(s);
	}
}

/* In the child. @life: workers before this one; the front counts from 1. */
static int work(void *arg, uint32_t life)
{
	const struct supervisor *s = arg;
	const pid_t parent = s->self;
	struct err e = { 0 };
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	fd_close(s->signals);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return 1;
	if (worker_run(s->config, s->fd, life + 1, &e) == 0)
		return 0;
	say_text(SAY_ERROR, "bridge", NULL, e.msg);
	return 1;
}

/* As of struct supervise: for the worker's end, or for a while. False: the front is gone. */
static bool wait_and_sweep(void *arg, pid_t worker, unsigned int ms, int *ret_status)
{
	struct supervisor *s = arg;

	s->worker = worker;
	wait_for(s, (int)ms);
	if (!worker)
		return !s->over;
	sweep(s);
	*ret_status = s->status;
	if (!s->over && !(WIFEXITED(s->status) && WEXITSTATUS(s->status) == 0))
		say_text(SAY_ERROR, "bridge", NULL, "the worker was ended; another one is started");
	return !s->over;
}

int bridge_supervise(const struct bridge_config *c, int fd)
{
	struct supervisor s = { .config = c, .fd = fd, .self = getpid() };
	const struct supervise workers = {
		.work = work,
		.arg = &s,
		.insist = true,
		.pause_ms = BACK_OFF_MS,
		.pause_max_ms = BACK_OFF_MAX_MS,
		.healthy_ms = HEALTHY_MS,
		.wait = wait_and_sweep,
	};
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return 1;
	return supervise(&workers);
}
