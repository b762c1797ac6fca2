/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_v1.c - Limits and counters on the v1 hierarchies (also of a hybrid machine).
 *
 * What v1 lacks and how that is met: there is no group kill on out-of-memory, so the owner of
 * oom_fd ends the cell when it wakes; swap is a second, combined limit (memsw), absent where the
 * kernel does not account swap; a quota above that of an outer cgroup is refused, although the
 * outer one would simply win, so such a refusal is checked and then accepted.
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

static int put_bytes(int fd, const char *file, uint64_t bytes)
{
	return bytes ? cgroup_put(fd, file, "%llu", (unsigned long long)bytes) :
		       cgroup_put(fd, file, "-1");
}

static int put_memory(int fd, const uint64_t *old, uint64_t want)
{
	static const char plain[] = "memory.limit_in_bytes", swap[] = "memory.memsw.limit_in_bytes";
	uint64_t was = old && *old ? *old : UINT64_MAX, will = want ? want : UINT64_MAX;
	/* The combined limit may never be below the plain one, not even between two writes. */
	bool swap_first = will > was;
	int r = 0, s = 0;

	if (was == will)
		return 0;
	if (swap_first)
		s = put_bytes(fd, swap, want);
	if (s == 0 || s == -ENOENT || s == -EOPNOTSUPP)
		r = put_bytes(fd, plain, want);
	if (r == 0 && !swap_first)
		s = put_bytes(fd, swap, want);
	if (r == 0) {
		/* Buffers of sockets are a count of their own here, and tcp_mem is one for the
		 * whole machine: a small part of it is enough for a cell. */
		int t = put_bytes(fd, "memory.kmem.tcp.limit_in_bytes",
				  will < SOCKETS_MAX ? want : SOCKETS_MAX);

		if (t < 0 && t != -ENOENT && t != -EOPNOTSUPP)
			return t;
	}
	if (r == 0 && (s == -ENOENT || s == -EOPNOTSUPP)) {
		/* Swap is not accounted: at least this cgroup's own reclaim must not use it. */
		(void)cgroup_put(fd, "memory.swappiness", "0");
		return 0;
	}
	return r ? r : s;
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

static int put_quota(int fd, bool fresh, uint32_t milli)
{
	uint64_t quota, period;
	uint32_t outer;
	int r = 0;

	cgroup_quota(milli ? milli : 1000, &quota, &period);
	if (!fresh || period != PERIOD_DEFAULT_US)
		r = cgroup_put(fd, "cpu.cfs_period_us", "%llu", (unsigned long long)period);
	if (r == 0 && milli == 0)
		return cgroup_put(fd, "cpu.cfs_quota_us", "-1");
	if (r == 0)
		r = cgroup_put(fd, "cpu.cfs_quota_us", "%llu", (unsigned long long)quota);
	if (r != -EINVAL)
		return r;
	/* Refused. If an outer cgroup is tighter, then it is what limits us: nothing is lost. */
	outer = outer_milli(fd);
	if (outer == 0 || outer > milli)
		return r;
	return cgroup_put(fd, "cpu.cfs_quota_us", "-1");
}

static int put_weight(int fd, uint32_t weight)
{
	uint32_t shares = (weight ? weight : WEIGHT_DEFAULT) * SHARES_DEFAULT / WEIGHT_DEFAULT;

	return cgroup_put(fd, "cpu.shares", "%u", shares < 2 ? 2 : shares);
}

static int v1_limit(const struct cgroup *c, const struct cgroup_limits *old,
		    const struct cgroup_limits *want, struct err *e)
{
	static const struct cgroup_limits none;
	const struct cgroup_limits *was = old ? old : &none;
	int memory = cgroup_dir(c, CGROUP_MEMORY), cpu = cgroup_dir(c, CGROUP_CPU);
	int r = put_memory(memory, &was->memory_bytes, want->memory_bytes);

	if (r < 0)
		return err_set(e, r, "limit memory to %llu bytes",
			       (unsigned long long)want->memory_bytes);
	if (want->pids != was->pids) {
		int pids = cgroup_dir(c, CGROUP_PIDS);

		r = want->pids ?
			    cgroup_put(pids, "pids.max", "%llu", (unsigned long long)want->pids) :
			    cgroup_put(pids, "pids.max", "max");
		if (r < 0)
			return err_set(e, r, "limit pids to %llu", (unsigned long long)want->pids);
	}
	if (want->cpu_milli != was->cpu_milli) {
		r = put_quota(cpu, !old, want->cpu_milli);
		if (r < 0)
			return err_set(e, r, "limit cpu to %u/1000", want->cpu_milli);
	}
	if (want->cpu_weight != was->cpu_weight) {
		r = put_weight(cpu, want->cpu_weight);
		if (r < 0)
			return err_set(e, r, "set cpu weight %u", want->cpu_weight);
	}
	return 0;
}

/* "<eventfd> <fd of memory.oom_control>" asks for a tick at every out-of-memory. */
static int v1_watch(struct cgroup *c, struct err *e)
{
	int memory = cgroup_dir(c, CGROUP_MEMORY);
	_fd_ int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	_fd_ int control = openat(memory, "memory.oom_control", O_RDONLY | O_CLOEXEC);

	if (event < 0 || control < 0)
		return err_set(e, -errno, "open memory.oom_control");

	int r = cgroup_put(memory, "cgroup.event_control", "%d %d", event, control);

	if (r == -ENOENT || r == -EOPNOTSUPP)
		return 0; /* real-time kernels have no such events: the counter remains */
	if (r < 0)
		return err_set(e, r, "watch memory.oom_control");
	c->oom_fd = TAKE_FD(event);
	return 0;
}

static int v1_limits_read(const struct cgroup *c, struct cgroup_limits *ret, struct err *e)
{
	int cpu = cgroup_dir(c, CGROUP_CPU), r;
	uint64_t quota, period, shares;

	r = cgroup_get_u64(cgroup_dir(c, CGROUP_MEMORY), "memory.limit_in_bytes",
			   &ret->memory_bytes);
	if (r == 0)
		r = cgroup_get_u64(cgroup_dir(c, CGROUP_PIDS), "pids.max", &ret->pids);
	if (r == 0)
		r = cgroup_get_u64(cpu, "cpu.shares", &shares);
	if (r == 0)
		r = cgroup_get_u64(cpu, "cpu.cfs_period_us", &period);
	if (r < 0)
		return err_set(e, r, "read limits of cgroup %s", c->path[0]);
	if (ret->memory_bytes >= UNLIMITED)
		ret->memory_bytes = 0;
	if (ret->pids == UINT64_MAX)
		ret->pids = 0;
	ret->cpu_weight =
		(uint32_t)((shares * WEIGHT_DEFAULT + SHARES_DEFAULT / 2) / SHARES_DEFAULT);
	if (cgroup_get_u64(cpu, "cpu.cfs_quota_us", &quota) == 0)
		ret->cpu_milli = cgroup_quota_milli(quota, period);
	else if (c->limits.cpu_milli)
		ret->cpu_milli = outer_milli(cpu); /* see put_quota() */
	return 0;
}

static int v1_oom_kills(const struct cgroup *c, uint64_t *ret_kills, struct err *e)
{
	const struct cgroup_key key = { "oom_kill", ret_kills };
	uint64_t ticks;
	int r;

	*ret_kills = 0;
	if (c->oom_fd >= 0)
		(void)!read(c->oom_fd, &ticks, sizeof(ticks));
	r = cgroup_get_keys(cgroup_dir(c, CGROUP_MEMORY), "memory.oom_control", &key, 1);
	return r < 0 ? err_set(e, r, "read memory.oom_control") : 0;
}

static int v1_usage(const struct cgroup *c, struct cgroup_usage *ret, struct err *e)
{
	int memory = cgroup_dir(c, CGROUP_MEMORY), pids = cgroup_dir(c, CGROUP_PIDS);
	int acct = cgroup_dir(c, CGROUP_CPUACCT), unified = cgroup_dir(c, CGROUP_UNIFIED);
	uint64_t usec = 0;
	int r = cgroup_get_u64(memory, "memory.usage_in_bytes", &ret->memory_bytes);

	if (r < 0)
		return err_set(e, r, "read memory.usage_in_bytes");
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
	return r < 0 ? err_set(e, r, "read cpu time of cgroup") : 0;
}

const struct cgroup_ops cgroup_ops_v1 = {
	.limit = v1_limit,
	.watch = v1_watch,
	.limits_read = v1_limits_read,
	.usage = v1_usage,
	.oom_kills = v1_oom_kills,
};
