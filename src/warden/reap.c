/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reap.c - Collecting processes that died; at the warden's end all of them.
 *
 * A cell's pid 1, its kernel and a zygote have an owner, whose own event collects them. A zygote
 * that was ended, and a kernel that came when its cell was gone, have none any more: strays. Pid 1
 * of that cell cannot end before its kernel is collected.
 *
 * A kernel's pid is reported by a zygote, which may lie. So a stray is only waited for, and a pid
 * that has an owner is not taken: a lie cannot take the wait status of another process. The list is
 * bounded, and so is a turn.
 *
 * A kernel, and each of its threads, may make its parent its tracer (PTRACE_TRACEME), and that is
 * the warden. The Linux kernel then reports stops here as well, and threads that died, which keep
 * their process, and so its cell, from ending until they are collected. The warden takes no stop
 * for an end, and continues nothing: a process that stopped waits for its end.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "warden/dispatch.h"

#define REAP_MAX 256 /* in one turn: processes that are waited for may go on forking */
#define REMAINS_MS 5000u

static bool is_known(const struct warden *w, pid_t pid)
{
	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++)
		if (w->cells[i] && (w->cells[i]->l.pid == pid || w->cells[i]->kernel_pid == pid))
			return true;
	for (uint32_t i = 0; i < WARDEN_ZYGOTES_MAX; i++)
		if (w->zygotes[i] && w->zygotes[i]->l.pid == pid)
			return true;
	return false;
}

void reap_add_stray(struct warden *w, pid_t pid)
{
	if (pid > 1 && !is_known(w, pid) && w->n_strays < WARDEN_STRAYS_MAX)
		w->strays[w->n_strays++] = pid;
}

/* Collect a process that died, through its owner. False when the owner's own event has to do it. */
static bool collect(struct warden *w, const siginfo_t *info)
{
	pid_t pid = info->si_pid;
	siginfo_t stop;

	if (info->si_code == CLD_TRAPPED || info->si_code == CLD_STOPPED)
		return waitid(P_PID, (id_t)pid, &stop, WSTOPPED | WNOHANG) == 0;
	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++) {
		struct cell *c = w->cells[i];

		if (c && c->l.pid == pid && !c->plan) {
			init_ended(w, c);
			return true;
		}
		if (c && c->kernel_pid == pid)
			return cell_kernel_reaped(c) == 0;
	}
	return !is_known(w, pid) && waitpid(pid, NULL, WNOHANG) == pid;
}

void reap_threads(const struct warden *w)
{
	siginfo_t info = { 0 };
	int most = REAP_MAX;

	while (most-- > 0 &&
	       waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | (int)__WCLONE) == 0 &&
	       info.si_pid > 0 && !is_known(w, info.si_pid) &&
	       waitpid(info.si_pid, NULL, WNOHANG | __WALL) == info.si_pid)
		info.si_pid = 0;
}

void reap_strays(struct warden *w)
{
	siginfo_t info = { 0 };
	uint64_t now = clock_now_ns();
	int most = REAP_MAX;

	for (size_t i = 0; i < w->n_strays;) {
		int status = 0;
		pid_t got = waitpid(w->strays[i], &status, WNOHANG);

		if (got != 0 && !WIFSTOPPED(status)) /* collected, or not our child */
			w->strays[i] = w->strays[--w->n_strays];
		else
			i++;
	}
	/* waitid() shows one at a time, the same until it is collected. */
	while (most-- > 0 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid > 0 && collect(w, &info))
		info.si_pid = 0;
	if (w->n_strays > 0 || w->remains.n > 0 || now < w->strays_until_ns)
		check_before(w, now + STRAY_AGAIN_NS);
}

/* ---- the end of the warden ----------------------------------------------------------------- */

static void not_stray(struct warden *w, pid_t pid)
{
	for (size_t i = 0; i < w->n_strays; i++)
		if (w->strays[i] == pid)
			w->strays[i--] = w->strays[--w->n_strays];
}

/* Collect all, in the order in which they die, until no cell or zygote is left or time is up. */
static void reap_all(struct warden *w)
{
	uint64_t deadline = clock_now_ns() + CELL_REAP_MS * CLOCK_NS_PER_MS;
	size_t left;

	do {
		int status;
		pid_t pid;

		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (WIFSTOPPED(status))
				continue;
			not_stray(w, pid);
			for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++)
				if (w->cells[i] && w->cells[i]->l.pid == pid)
					w->cells[i]->l.pid = 0;
		}
		if (pid < 0)
			w->n_strays = 0; /* no child at all */
		(void)remains_check(&w->remains, clock_now_ns());
		left = w->n_strays;
		for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++)
			left += w->cells[i] && w->cells[i]->l.pid > 0;
		if (left > 0)
			(void)usleep(1000);
	} while (left > 0 && clock_now_ns() < deadline);
}

void dispatch_end(struct warden *w)
{
	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++)
		if (w->cells[i])
			cell_kill(w->cells[i], CELL_END_CLIENT); /* all, then wait for each */
	for (uint32_t i = 0; i < WARDEN_ZYGOTES_MAX; i++)
		if (w->zygotes[i]) {
			struct zygote *z = w->zygotes[i];

			zygote_remove(w, z);
			free(z);
		}
	reap_all(w);
	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++)
		if (w->cells[i]) {
			cell_destroy(w->cells[i], &w->remains);
			free(w->cells[i]);
		}
	remains_end(&w->remains, REMAINS_MS);
}
