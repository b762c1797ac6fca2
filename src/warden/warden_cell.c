/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_cell.c - Make, watch and end one cell.
 *
 * The journal record is written before any resource that would outlive our processes, and removed
 * only after all of them are gone. Killing pid 1 is enough to kill a cell: the Linux kernel ends a
 * pid namespace with its first process and does not let that be reaped before everything else in it
 * is dead. Reaping pid 1 is therefore the proof that nothing runs.
 */
#include "warden/warden_cell.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/plan.h"

#define REMOVE_DEADLINE_MS 5000u
#define REAP_STEP_MS 5
/* Pid 1 should end first, by itself: if a kernel did, the front would report two ends. */
#define KILL_ALL_NS (100 * CLOCK_NS_PER_MS)
#define CPU_CHECK_MIN_NS 5000000ull

/* Unique for ever, so a stale record can never name the cgroup of a living cell. */
static void cgroup_name(uint32_t slot, char name[CGROUP_NAME_MAX])
{
	uint64_t r = 0;

	(void)!getrandom(&r, sizeof(r), 0);
	(void)snprintf(name, CGROUP_NAME_MAX, "c%04u-%016llx", slot, (unsigned long long)r);
}

int cell_cgroup(struct cell_host *h, struct record *record, const struct cell_limits *limits,
		struct cgroup *ret, struct err *e)
{
	char name[CGROUP_NAME_MAX];
	struct cgroup_limits l = {
		.memory_bytes = limits->memory_bytes,
		/* Init is a process of the cell too, but not one of the guest's. */
		.pids = limits->pids + 1,
		.cpu_milli = limits->cpu_milli,
		/* When processors are short, cells share them by their quotas: one cpu is 100. */
		.cpu_weight = limits->cpu_milli < 10 * 10000 ? limits->cpu_milli / 10 : 10000,
		.oom_group = limits->oom == CELL_OOM_CELL,
	};

	if (h->site_code < 0)
		return err_say(e, h->site_code, "%s", h->site_msg);
	int r;

	cgroup_name(record->slot, name);
	if ((r = cgroup_site_prepare(&h->site, e)) < 0 ||
	    (r = cgroup_plan(&h->site, name, ret, e)) < 0 ||
	    (r = record_commit(record, ret, e)) < 0)
		return r;
	return cgroup_create(ret, &l, e);
}

static int populate(struct cell_host *h, uid_t owner, const int *fds, size_t n_fds, struct cell *c,
		    struct err *e)
{
	int r = plan_make(&c->spec, c->record.slot, h->init_path, fds, n_fds, c->plan, e);

	if (r < 0)
		return r;
	c->plan->init_fd = h->init_fd;
	c->lease_fd = TAKE_FD(c->plan->lease_fd);
	if (owner)
		c->plan->owner = owner;
	c->plan->config.kernels = c->zygote != 0;
	c->config = c->plan->config;
	c->cpus = c->plan->machine.cpus;
	c->agent = c->plan->ids.ranged ? c->plan->ids.base + c->config.uid : 0;
	if (!(c->spec.without & CELL_WITHOUT_CGROUP)) {
		r = cell_cgroup(h, &c->record, &c->spec.limits, &c->cgroup, e);
		c->has_cgroup = r == 0;
	}
	if (r == 0) {
		machine_open(c->plan, c->has_cgroup ? &c->cgroup : NULL, c->want_live);
		r = launch_begin(c->plan, c->has_cgroup ? &c->cgroup : NULL, &c->l, e);
	}
	if (r < 0) {
		plan_free(c->plan);
		if (c->has_cgroup)
			(void)cgroup_remove(&c->cgroup, REMOVE_DEADLINE_MS, NULL);
	}
	return r;
}

int cell_begin(struct cell_host *h, const struct cell_spec *spec, uid_t owner, const int *fds,
	       size_t n_fds, struct cell *ret, struct err *e)
{
	struct cell *c = ret;
	int r = record_begin(h->records, &c->record, e);

	c->kernel_pidfd = c->lease_fd = -1;
	cell_line_init(c);
	c->l = (struct launched){ .pidfd = -1, .channel_fd = -1, .sync_fd = -1, .status_fd = -1 };
	c->spec = *spec;
	if (r < 0)
		return r;
	c->plan = calloc(1, sizeof(*c->plan));
	r = c->plan ? populate(h, owner, fds, n_fds, c, e) : err_set(e, -ENOMEM, "plan a cell");
	if (r < 0) {
		free(c->plan);
		c->lease_fd = fd_close(c->lease_fd);
		record_end(&c->record);
		return r;
	}
	c->created_ns = clock_now_ns();
	c->check_ns = c->created_ns + LAUNCH_DEADLINE_NS;
	return 0;
}

int cell_made(struct cell *c, struct err *e)
{
	(void)epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->l.sync_fd, NULL);
	int r = launch_end(c->plan, &c->l, e);

	plan_drop(&c->plan);
	if (r < 0) {
		if (c->has_cgroup)
			(void)cgroup_remove(&c->cgroup, REMOVE_DEADLINE_MS, NULL);
		c->lease_fd = fd_close(c->lease_fd);
		record_end(&c->record);
		return r;
	}
	c->check_ns = cell_check(c, clock_now_ns());
	return 0;
}

void cell_kill(struct cell *c, enum cell_end why)
{
	if (c->end == CELL_RUNNING)
		c->end = why;
	if (!c->killed_ns)
		c->killed_ns = clock_now_ns();
	if (c->l.pid > 0)
		(void)syscall(SYS_pidfd_send_signal, c->l.pidfd, SIGKILL, NULL, 0);
}

void cell_reaped(struct cell *c)
{
	int status = 0;

	if (c->l.pid <= 0)
		return;
	do { /* not a stop of a process that made the warden its tracer (reap.c) */
		status = 0;
		(void)TEMP_FAILURE_RETRY(waitpid(c->l.pid, &status, 0));
	} while (WIFSTOPPED(status));
	c->l.pid = 0;
	c->init_status = status;
	if (c->end == CELL_RUNNING) {
		struct cgroup_usage u = { 0 };

		/* The out-of-memory killer took pid 1: with the whole cell, before its event
		 * reached us, or because no other process was left. */
		if (c->has_cgroup && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			(void)cgroup_usage(&c->cgroup, &u, NULL);
		c->end = u.oom_kills > 0 ? CELL_END_MEMORY : CELL_END_INIT;
	}
}

int cell_unwatch(int epoll, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	return fd_close(fd);
}

int cell_kernel_reaped(struct cell *c)
{
	int status = 0;
	pid_t pid = (pid_t)TEMP_FAILURE_RETRY(waitpid(c->kernel_pid, &status, WNOHANG));

	if (pid <= 0)
		return pid == 0 ? -EAGAIN : -errno;
	if (WIFSTOPPED(status))
		return -EAGAIN;
	c->kernel = KERNEL_ENDED;
	c->kernel_status = status;
	c->kernel_pid = 0;
	c->kernel_pidfd = cell_unwatch(c->epoll, c->kernel_pidfd);
	return 0;
}

void cell_line_init(struct cell *c)
{
	c->hello_fd = -1;
	for (size_t i = 0; i < KERNEL_PIPES; i++)
		c->pipes[i] = -1;
}

void cell_line_close(struct cell *c)
{
	c->hello_fd = fd_close(c->hello_fd);
	for (size_t i = 0; i < KERNEL_PIPES; i++)
		c->pipes[i] = fd_close(c->pipes[i]);
}

void cell_memory_event(struct cell *c)
{
	struct cgroup_usage u = { 0 };
	uint64_t kills = 0;

	(void)cgroup_usage(&c->cgroup, &u, NULL);
	if (u.memory_files > c->memory_files)
		c->memory_files = u.memory_files;
	(void)cgroup_oom_kills(&c->cgroup, &kills, NULL);
	/* v1 wakes us only when the killer starts, a moment before it counts. v2 also wakes us for
	 * lesser events, but there the Linux kernel kills the group itself. */
	if (c->cgroup.kind != CGROUP_V2 || kills > 0)
		cell_kill(c, CELL_END_MEMORY);
}

uint64_t cell_check(struct cell *c, uint64_t now_ns)
{
	uint64_t next = 0, again = now_ns + REAP_STEP_MS * CLOCK_NS_PER_MS;

	if (c->end != CELL_RUNNING) {
		if (c->l.pid <= 0)
			return 0;
		if (c->has_cgroup && now_ns >= c->killed_ns + KILL_ALL_NS)
			cgroup_kill(&c->cgroup);
		return again;
	}
	if (c->spec.limits.wall_ms) {
		next = c->created_ns + c->spec.limits.wall_ms * 1000000ull;
		if (now_ns >= next) {
			cell_kill(c, CELL_END_WALL);
			return again;
		}
	}
	if (c->spec.limits.cpu_time_ms && c->has_cgroup) {
		struct cgroup_usage u = { 0 };
		uint64_t limit = c->spec.limits.cpu_time_ms * 1000000ull;

		(void)cgroup_usage(&c->cgroup, &u, NULL);
		if (u.cpu_ns >= limit) {
			cell_kill(c, CELL_END_CPU_TIME);
			return again;
		}
		/* Even at its full quota it cannot reach the limit before then. */
		uint64_t wait = (limit - u.cpu_ns) / c->spec.limits.cpu_milli * 1000;
		uint64_t at = now_ns + (wait < CPU_CHECK_MIN_NS ? CPU_CHECK_MIN_NS : wait);

		next = next && next < at ? next : at;
	}
	return next;
}

/* @u: of its cgroup, or nothing. */
static void fill_usage(const struct cell *c, const struct cgroup_usage *u, struct cell_usage *ret)
{
	*ret = (struct cell_usage){
		.cpu_ns = u->cpu_ns,
		.memory_peak = u->memory_peak,
		.memory_files = u->memory_files > c->memory_files ? u->memory_files :
								    c->memory_files,
		.pids_peak = u->pids_peak,
		.pids_denied = u->pids_denied,
		.oom_kills = u->oom_kills,
		.throttled_ns = u->throttled_ns,
		.end = c->end,
		.init_status = c->init_status,
		.cgroup_kind = c->has_cgroup ? c->cgroup.kind : CGROUP_NONE,
		.kernel = c->kernel,
		.kernel_status = c->kernel_status,
	};
}

void cell_usage(const struct cell *c, struct cell_usage *ret)
{
	struct cgroup_usage u = { 0 };

	if (c->has_cgroup)
		(void)cgroup_usage(&c->cgroup, &u, NULL);
	fill_usage(c, &u, ret);
}

/* A client that has the gauges has read its last numbers there: nine files less to read. */
static void last_usage(struct cell *c)
{
	static const struct cgroup_usage unread;

	if (c->want_gauges)
		fill_usage(c, &unread, &c->final);
	else
		cell_usage(c, &c->final);
}

static void let_go(struct cell *c)
{
	c->l.pidfd = cell_unwatch(c->epoll, c->l.pidfd);
	c->l.channel_fd = fd_close(c->l.channel_fd);
	c->kernel_pidfd = cell_unwatch(c->epoll, c->kernel_pidfd);
	cell_line_close(c);
	c->lease_fd = fd_close(c->lease_fd);
}

int cell_remove(struct cell *c, struct cell_usage *ret, struct err *e)
{
	int r = 0;

	if (c->kernel == KERNEL_RUNS)
		(void)cell_kernel_reaped(c);
	if (!c->counted)
		last_usage(c);
	c->counted = true;
	*ret = c->final;
	if (c->has_cgroup) {
		c->cgroup.oom_fd = cell_unwatch(c->epoll, c->cgroup.oom_fd);
		r = cgroup_try_remove(&c->cgroup, e);
	}
	if (r == -EBUSY)
		return -EAGAIN;
	if (r < 0)
		cgroup_close(&c->cgroup);
	if (r == 0)
		record_end(&c->record);
	else
		record_keep(&c->record);
	let_go(c);
	return r;
}

void cell_abandon(struct cell *c, struct remains_list *remains)
{
	if (c->has_cgroup) {
		c->cgroup.oom_fd = cell_unwatch(c->epoll, c->cgroup.oom_fd);
		remains_add(remains, &c->record, &c->cgroup, TAKE_FD(c->lease_fd));
	} else { /* nothing tells when its ids are free again */
		record_keep(&c->record);
	}
	let_go(c);
}

/* A process that is stuck in a system call must not hold us for ever. */
void cell_destroy(struct cell *c, struct remains_list *remains)
{
	struct cell_usage ignored;
	struct pollfd p = { .fd = c->l.pidfd, .events = POLLIN };
	int waited_ms = 0;

	if (c->plan && c->l.pid > 0)
		launch_abort(&c->l);
	plan_drop(&c->plan);
	cell_kill(c, CELL_END_CLIENT);
	while (c->l.pid > 0) {
		int n = poll(&p, 1, REAP_STEP_MS);

		/* Pid 1 does not end before its kernel, a child of ours, is collected. */
		if (c->kernel == KERNEL_RUNS)
			(void)cell_kernel_reaped(c);
		if (n == 0 && c->has_cgroup && clock_now_ns() >= c->killed_ns + KILL_ALL_NS)
			cgroup_kill(&c->cgroup);
		if (n > 0) {
			cell_reaped(c);
		} else if ((n < 0 && errno != EINTR) ||
			   (waited_ms += REAP_STEP_MS) > CELL_REAP_MS) {
			cell_abandon(c, remains);
			return;
		}
	}
	int r = cell_remove(c, &ignored, NULL);

	for (unsigned int ms = 0; r == -EAGAIN && ms < REMOVE_DEADLINE_MS; ms++) {
		(void)usleep(1000);
		r = cell_remove(c, &ignored, NULL);
	}
	if (r == -EAGAIN)
		cell_abandon(c, remains);
}
