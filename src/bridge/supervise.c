/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.c - Worker after worker on one socket.
 *
 * Messages are packets, so a worker that was killed leaves no half message behind, and the next one says hello. This process
 * is the reaper of everything that workers start: what is still there when a worker has ended is killed, also what took
 * itself out of its process group.
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
#include "bridge/say.h"
#include "bridge/worker.h"

#define BACK_OFF_MS 100u
#define BACK_OFF_MAX_MS 10000u
#define HEALTHY_NS (60 * CLOCK_NS_PER_S)
#define GRACE_NS (6 * CLOCK_NS_PER_S) /* for a worker whose front is gone */
#define SWEEPS_MAX 200

struct supervisor {
	int fd, signals;
	pid_t worker; /* 0: none */
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

static void start(struct supervisor *s, const struct bridge_config *c, uint64_t life)
{
	pid_t parent = getpid();
	struct err e = { 0 };
	sigset_t none;

	s->worker = fork();
	if (s->worker != 0)
		return;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	fd_close(s->signals);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	if (worker_run(c, s->fd, life, &e) == 0)
		_exit(0);
	say_text(SAY_ERROR, "bridge", NULL, e.msg);
	_exit(1);
}

int supervise(const struct bridge_config *c, int fd)
{
	struct supervisor s = { .fd = fd };
	unsigned int wait_ms = BACK_OFF_MS;
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return 1;
	for (uint64_t life = 1; !s.over; life++) {
		uint64_t began = clock_now_ns();

		start(&s, c, life);
		if (s.worker > 0)
			wait_for(&s, -1);
		sweep(&s);
		if (s.over || (WIFEXITED(s.status) && WEXITSTATUS(s.status) == 0))
			break;
		if (clock_now_ns() - began > HEALTHY_NS)
			wait_ms = BACK_OFF_MS;
		say_text(SAY_ERROR, "bridge", NULL, "the worker was ended; another one is started");
		wait_for(&s, (int)wait_ms);
		wait_ms = wait_ms * 2 > BACK_OFF_MAX_MS ? BACK_OFF_MAX_MS : wait_ms * 2;
	}
	return 0;
}
