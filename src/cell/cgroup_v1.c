/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_v1.c - Limits and counters on the v1 hierarchies (also of a hybrid machine).
 *
 * Substitutes for features that v1 lacks: there is no group kill on out-of-memory, so where that is
 * wanted the owner of oom_fd ends the cell when it wakes; swap is a second, combined limit (memsw),
 * absent where the Linux kernel does not account swap; a quota above that of an outer cgroup is
 * refused, although the outer one would hold in any case, so such a refusal is checked and then
 * accepted.
 */
#include "base/err.h"
#include "base/fd.h"
#include "cell/cgroup_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SHARES_DEFAULT 1024u /* what v2 calls weight 100 */
#define WEIGHT_DEFAULT 100u
#define PERIOD_DEFAULT_US 100000u
#define UNLIMITED (UINT64_C(1) << 62) /* v1 shows "no limit" as a number near 2^63 */
#define LEVELS_MAX 64
#define SOCKETS_MAX (UINT64_C(64) << 20)

/* A file that this Linux kernel, as it was configured, does not have. */
static bool is_absent(int r)
{
	return r == -ENOENT || r == -EOPNOTSUPP;
}

static int put_bytes(int fd, const char *file, uint64_t bytes)
{
	return cgroup_put(fd, file, "%llu", (unsigned long long)bytes);
}

static int v1_memory(const struct cgroup *c, uint64_t bytes)
{
	int fd = cgroup_dir(c, CGROUP_MEMORY), r;

	if (!bytes)
		return 0;
	/* The combined limit may never be below the plain one, not even between two writes. */
	if ((r = put_bytes(fd, "memory.limit_in_bytes", bytes)) < 0)
		return r;
	/* Buffers of sockets have a count of their own here, and tcp_mem is one for the whole
	 * machine: a small part of it is enough for a cell. */
	r = put_bytes(fd, "memory.kmem.tcp.limit_in_bytes",
		      bytes < SOCKETS_MAX ? bytes : SOCKETS_MAX);
	if (r < 0 && !is_absent(r))
		return r;
	r = put_bytes(fd, "memory.memsw.limit_in_bytes", bytes);
	if (!is_absent(r))
		return r;
	/* Swap is not accounted: at least this cgroup's own reclaim must not use it. */
	(void)cgroup_put(fd, "memory.swappiness", "0");
	return 0;
}

/* The tightest quota of the cgroups above @fd that we can see, in thousandths; 0 when none. */
static uint32_t outer_milli(int fd)
{
	char path[LEVELS_MAX * 3 + 32] = "";
	uint32_t least = 0;

	for (size_t up = 1; up <= LEVELS_MAX; up++) {
		uint64_t quota, period;
		size_t n = up * 3;

		(void)memcpy(path + n - 3, "../", 3);
		(void)snprintf(path + n, sizeof(path) - n, "cpu.cfs_period_us");
		if (cgroup_get_u64(fd, path, &period) < 0)
			break; /* above the mount point */
		(void)snprintf(path + n, sizeof(path) - n, "cpu.cfs_quota_us");
		if (cgroup_get_u64(fd, path, &quota) < 0)
			continue; /* "-1" is no number: no quota at this level */

		uint32_t milli = cgroup_quota_milli(quota, period);

		if (milli > 0 && (least == 0 || milli < least))
			least = milli;
	}
	return least;
}

static int v1_quota(const struct cgroup *c, uint32_t milli)
{
	int fd = cgroup_dir(c, CGROUP_CPU), r = 0;
	uint64_t quota, period;
	uint32_t outer;

	cgroup_quota(milli, &quota, &period);
	if (period != PERIOD_DEFAULT_US)
		r = cgroup_put(fd, "cpu.cfs_period_us", "%llu", (unsigned long long)period);
	if (r == 0)
		r = cgroup_put(fd, "cpu.cfs_quota_us", "%llu", (unsigned long long)quota);
	if (r != -EINVAL)
		return r;
	/* Refused. If an outer cgroup is tighter, then it is what limits us: nothing is lost. */
	outer = outer_milli(fd);
	return outer == 0 || outer > milli ? r : cgroup_put(fd, "cpu.cfs_quota_us", "-1");
}

static int v1_weight(const struct cgroup *c, uint32_t weight)
{
	uint32_t shares = weight * SHARES_DEFAULT / WEIGHT_DEFAULT;

	return cgroup_put(cgroup_dir(c, CGROUP_CPU), "cpu.shares", "%u", shares < 2 ? 2 : shares);
}

/* "<eventfd> <fd of memory.oom_control>" registers for an event at every out-of-memory. */
static int v1_watch(struct cgroup *c, struct err *e)
{
	int memory = cgroup_dir(c, CGROUP_MEMORY);
	_fd_ int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	_fd_ int control = openat(memory, "memory.oom_control", O_RDONLY | O_CLOEXEC);

	if (event < 0 || control < 0)
		return err_set(e, -errno, "open memory.oom_control");

	int r = cgroup_put(memory, "cgroup.event_control", "%d %d", event, control);

	if (is_absent(r))
		return 0; /* real-time kernels have no such events: the counter remains */
	if (r < 0)
		return err_set(e, r, "watch memory.oom_control");
	c->oom_fd = TAKE_FD(event);
	return 0;
}

static int v1_limits_read(const struct cgroup *c, struct cgroup_limits *ret)
{
	int memory = cgroup_dir(c, CGROUP_MEMORY), cpu = cgroup_dir(c, CGROUP_CPU), r;
	uint64_t quota, period, shares;

	if ((r = cgroup_get_u64(memory, "memory.limit_in_bytes", &ret->memory_bytes)) < 0 ||
	    (r = cgroup_get_u64(cgroup_dir(c, CGROUP_PIDS), "pids.max", &ret->pids)) < 0 ||
	    (r = cgroup_get_u64(cpu, "cpu.shares", &shares)) < 0 ||
	    (r = cgroup_get_u64(cpu, "cpu.cfs_period_us", &period)) < 0)
		return r;
	if (ret->memory_bytes >= UNLIMITED)
		ret->memory_bytes = 0;
	if (ret->pids == UINT64_MAX)
		ret->pids = 0;
	ret->cpu_weight =
		(uint32_t)((shares * WEIGHT_DEFAULT + SHARES_DEFAULT / 2) / SHARES_DEFAULT);
	if (cgroup_get_u64(cpu, "cpu.cfs_quota_us", &quota) == 0)
		ret->cpu_milli = cgroup_quota_milli(quota, period);
	else if (c->limits.cpu_milli)
		ret->cpu_milli = outer_milli(cpu); /* see v1_quota() */
	return 0;
}

static int v1_oom_kills(const struct cgroup *c, uint64_t *ret_kills)
{
	const struct cgroup_key key = { "oom_kill", ret_kills };
	uint64_t ticks;

	*ret_kills = 0;
	if (c->oom_fd >= 0)
		(void)!read(c->oom_fd, &ticks, sizeof(ticks));
	return cgroup_get_keys(cgroup_dir(c, CGROUP_MEMORY), "memory.oom_control", &key, 1);
}

static int v1_usage(const struct cgroup *c, struct cgroup_usage *ret)
{
	int memory = cgroup_dir(c, CGROUP_MEMORY), pids = cgroup_dir(c, CGROUP_PIDS);
	int acct = cgroup_dir(c, CGROUP_CPUACCT), unified = cgroup_dir(c, CGROUP_UNIFIED);
	uint64_t usec = 0;
	int r = cgroup_get_u64(memory, "memory.usage_in_bytes", &ret->memory_bytes);

	if (r < 0)
		return r;
	(void)cgroup_get_u64(memory, "memory.max_usage_in_bytes", &ret->memory_peak);
	(void)cgroup_get_keys(memory, "memory.stat",
			      &(struct cgroup_key){ "shmem", &ret->memory_files }, 1);
	(void)cgroup_get_keys(memory, "memory.oom_control",
			      &(struct cgroup_key){ "oom_kill", &ret->oom_kills }, 1);
	(void)cgroup_get_u64(pids, "pids.current", &ret->pids);
	(void)cgroup_get_u64(pids, "pids.peak", &ret->pids_peak);
	(void)cgroup_get_keys(pids, "pids.events", &(struct cgroup_key){ "max", &ret->pids_denied },
			      1);
	(void)cgroup_get_keys(cgroup_dir(c, CGROUP_CPU), "cpu.stat",
			      &(struct cgroup_key){ "throttled_time", &ret->throttled_ns }, 1);
	if (acct >= 0) {
		r = cgroup_get_u64(acct, "cpuacct.usage", &ret->cpu_ns);
	} else if (unified >= 0) {
		r = cgroup_get_keys(unified, "cpu.stat",
				    &(struct cgroup_key){ "usage_usec", &usec }, 1);
		ret->cpu_ns = usec * 1000;
	}
	return r;
}

const struct cgroup_ops cgroup_ops_v1 = {
	.memory = v1_memory,
	.quota = v1_quota,
	.weight = v1_weight,
	.watch = v1_watch,
	.limits_read = v1_limits_read,
	.usage = v1_usage,
	.oom_kills = v1_oom_kills,
};
