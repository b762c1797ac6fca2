/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.c - Make, watch and end one cell.
 *
 * Every resource that would outlive our processes is preceded by the journal record, and the
 * record is removed only after all of them are gone. Killing pid 1 is enough to kill a cell: the
 * kernel ends a pid namespace with its first process and does not let that be reaped before
 * everything else in it is dead. Reaping pid 1 is therefore the proof that nothing runs.
 */
#include "warden/cell.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/launch.h"
#include "cell/plan.h"
#include "cell/spec.h"

#define REAP_DEADLINE_MS 10000
#define REMOVE_DEADLINE_MS 5000u
#define CPU_CHECK_MIN_NS 5000000ull

/* Unique for ever, so a stale record can never name the cgroup of a living cell. */
static void cgroup_name(uint32_t slot, char name[CGROUP_NAME_MAX])
{
	uint64_t r = 0;

	(void)!getrandom(&r, sizeof(r), 0);
	(void)snprintf(name, CGROUP_NAME_MAX, "c%04u-%016llx", slot, (unsigned long long)r);
}

static int make_cgroup(struct cell_host *h, struct cell *c, const struct cell_spec *spec,
		       struct err *e)
{
	char name[CGROUP_NAME_MAX];
	struct cgroup_limits limits = {
		.memory_bytes = spec->limits.memory_bytes,
		/* Init is a process of the cell too, but not one of the guest's. */
		.pids = spec->limits.pids + 1,
		.cpu_milli = spec->limits.cpu_milli,
		/* When processors are short, cells share them by what they may use: one cpu is 100. */
		.cpu_weight = spec->limits.cpu_milli < 10 * 10000 ? spec->limits.cpu_milli / 10 :
								    10000,
	};

	if (h->site_code < 0)
		return err_say(e, h->site_code, "%s", h->site_msg);
	int r = cgroup_site_prepare(&h->site, e);

	if (r < 0)
		return r;
	cgroup_name(c->record.slot, name);
	r = cgroup_plan(&h->site, name, &c->cgroup, e);
	if (r == 0)
		r = record_commit(&c->record, &c->cgroup, e);
	if (r == 0)
		r = cgroup_create(&c->cgroup, &limits, e);
	c->has_cgroup = r == 0;
	return r;
}

static int populate(struct cell_host *h, const struct cell_spec *spec, const int *fds, size_t n_fds,
		    struct cell *c, int *ret_channel, struct err *e)
{
	_mem_ struct plan *plan = calloc(1, sizeof(*plan));
	struct launched l;
	int r;

	if (!plan)
		return err_set(e, -ENOMEM, "plan a cell");
	r = plan_make(spec, c->record.slot, h->init_path, fds, n_fds, plan, e);
	if (r < 0)
		return r;
	if (!(spec->without & CELL_WITHOUT_CGROUP))
		r = make_cgroup(h, c, spec, e);
	if (r == 0)
		r = launch(plan, c->has_cgroup ? &c->cgroup : NULL, &l, e);
	plan_free(plan);
	if (r < 0) {
		if (c->has_cgroup)
			(void)cgroup_remove(&c->cgroup, REMOVE_DEADLINE_MS, NULL);
		return r;
	}
	c->pid = l.pid;
	c->pidfd = l.pidfd;
	*ret_channel = l.channel_fd;
	return 0;
}

int cell_create(struct cell_host *h, const struct cell_spec *spec, const int *fds, size_t n_fds,
		struct cell *ret, int *ret_channel, struct err *e)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->pidfd = -1;
	ret->limits = spec->limits;
	r = record_begin(h->records, &ret->record, e);
	if (r < 0)
		return r;
	r = populate(h, spec, fds, n_fds, ret, ret_channel, e);
	if (r < 0) {
		record_end(&ret->record);
		return r;
	}
	ret->created_ns = clock_now_ns();
	ret->check_ns = cell_check(ret, ret->created_ns);
	return 0;
}

void cell_kill(struct cell *c, enum cell_end why)
{
	if (c->end == CELL_RUNNING)
		c->end = why;
	if (c->pid > 0)
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

void cell_reaped(struct cell *c)
{
	int status = 0;

	if (c->pid <= 0)
		return;
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	c->init_status = status;
	if (c->end == CELL_RUNNING) {
		struct cgroup_usage u = { 0 };

		/* The out-of-memory killer may have taken pid 1 before its event reached us. */
		if (c->has_cgroup)
			(void)cgroup_usage(&c->cgroup, &u, NULL);
		c->end = u.oom_kills > 0 ? CELL_END_MEMORY : CELL_END_INIT;
	}
}

void cell_memory_event(struct cell *c)
{
	struct cgroup_usage u = { 0 };
	uint64_t kills = 0;

	(void)cgroup_usage(&c->cgroup, &u, NULL);
	if (u.memory_files > c->memory_files)
		c->memory_files = u.memory_files;
	(void)cgroup_oom_kills(&c->cgroup, &kills, NULL);
	/* v1 speaks up only when the killer starts, a moment before it counts. v2 also wakes us for
	 * lesser events, but there the kernel kills the group itself. */
	if (c->cgroup.kind != CGROUP_V2 || kills > 0)
		cell_kill(c, CELL_END_MEMORY);
}

uint64_t cell_check(struct cell *c, uint64_t now_ns)
{
	uint64_t next = 0;

	if (c->end != CELL_RUNNING)
		return 0;
	if (c->limits.wall_ms) {
		next = c->created_ns + c->limits.wall_ms * 1000000ull;
		if (now_ns >= next) {
			cell_kill(c, CELL_END_WALL);
			return 0;
		}
	}
	if (c->limits.cpu_time_ms && c->has_cgroup) {
		struct cgroup_usage u = { 0 };
		uint64_t limit = c->limits.cpu_time_ms * 1000000ull;

		(void)cgroup_usage(&c->cgroup, &u, NULL);
		if (u.cpu_ns >= limit) {
			cell_kill(c, CELL_END_CPU_TIME);
			return 0;
		}
		/* Even at its full quota it can not reach the limit before then. */
		uint64_t wait = (limit - u.cpu_ns) / c->limits.cpu_milli * 1000;
		uint64_t at = now_ns + (wait < CPU_CHECK_MIN_NS ? CPU_CHECK_MIN_NS : wait);

		next = next && next < at ? next : at;
	}
	return next;
}

void cell_usage(const struct cell *c, struct cell_usage *ret)
{
	struct cgroup_usage u = { 0 };

	if (c->has_cgroup)
		(void)cgroup_usage(&c->cgroup, &u, NULL);
	*ret = (struct cell_usage){
		.cpu_ns = u.cpu_ns,
		.memory_peak = u.memory_peak,
		.memory_files = u.memory_files > c->memory_files ? u.memory_files : c->memory_files,
		.pids_peak = u.pids_peak,
		.pids_denied = u.pids_denied,
		.oom_kills = u.oom_kills,
		.throttled_ns = u.throttled_ns,
		.end = c->end,
		.init_status = c->init_status,
		.cgroup_kind = c->has_cgroup ? c->cgroup.kind : CGROUP_NONE,
	};
}

/* Wait for the death of pid 1, but not for ever: a process stuck in the kernel must not hold us. */
static int reap_bounded(struct cell *c, struct err *e)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };

	while (c->pid > 0) {
		int n = poll(&p, 1, REAP_DEADLINE_MS);

		if (n > 0)
			cell_reaped(c);
		else if (n == 0)
			return err_say(
				e, -EBUSY,
				"the cell did not die within %d s; its remains stay journalled",
				REAP_DEADLINE_MS / 1000);
		else if (errno != EINTR)
			return err_set(e, -errno, "wait for the cell");
	}
	return 0;
}

int cell_destroy(struct cell *c, struct cell_usage *ret, struct err *e)
{
	cell_kill(c, CELL_END_CLIENT);
	int r = reap_bounded(c, e);

	cell_usage(c, ret);
	if (r == 0 && c->has_cgroup)
		r = cgroup_remove(&c->cgroup, REMOVE_DEADLINE_MS, e);
	if (r == 0)
		record_end(&c->record);
	else
		record_keep(&c->record);
	c->pidfd = fd_close(c->pidfd);
	return r;
}
