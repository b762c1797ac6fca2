/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_v2.c - Limits and counters on the unified tree.
 *
 * A cell has one directory here. Its files exist only when the base hands the controllers out, and
 * the base can do that only when its own parent does; both are switched on when they are found to
 * be off, which is also what repairs a base left half made by a crash. They are never switched off
 * again: others may have come to rely on them.
 */
#include "base/err.h"
#include "base/fd.h"
#include "cell/cgroup_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int v2_base(const char *base, struct err *e)
{
	if (mkdir(base, 0755) < 0 && errno != EEXIST)
		return err_set(e, -errno, "mkdir cgroup %s", base);

	_fd_ int fd = open(base, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open cgroup %s", base);

	int r = fd_write_file(fd, "cgroup.subtree_control", CGROUP_ENABLE);

	if (r == -ENOENT) { /* the base itself did not get one of them */
		r = fd_write_file(fd, "../cgroup.subtree_control", CGROUP_ENABLE);
		if (r == 0)
			r = fd_write_file(fd, "cgroup.subtree_control", CGROUP_ENABLE);
	}
	return r < 0 ? err_set(e, r, "hand out " CGROUP_ENABLE " in cgroup %s", base) : 0;
}

static int put_memory_max(int fd, uint64_t bytes)
{
	return bytes ? cgroup_put(fd, "memory.max", "%llu", (unsigned long long)bytes) :
		       cgroup_put(fd, "memory.max", "max");
}

/* Written also without a limit: it proves that the controllers are there. */
static int v2_memory(const struct cgroup *c, uint64_t bytes)
{
	int fd = cgroup_dir(c, CGROUP_UNIFIED), r = put_memory_max(fd, bytes);
	char base[CGROUP_PATH_MAX];

	if (r == -ENOENT) {
		(void)cgroup_parent(c->path[0], base);
		r = v2_base(base, NULL);
		if (r == 0)
			r = put_memory_max(fd, bytes);
	}
	if (r < 0)
		return r;
	/* Absent without swap accounting: then there is nothing to give on top. */
	r = cgroup_put(fd, "memory.swap.max", "%s", bytes ? "0" : "max");
	return r == -ENOENT ? 0 : r;
}

static int v2_quota(const struct cgroup *c, uint32_t milli)
{
	uint64_t quota, period;

	cgroup_quota(milli, &quota, &period);
	return cgroup_put(cgroup_dir(c, CGROUP_UNIFIED), "cpu.max", "%llu %llu",
			  (unsigned long long)quota, (unsigned long long)period);
}

static int v2_weight(const struct cgroup *c, uint32_t weight)
{
	return cgroup_put(cgroup_dir(c, CGROUP_UNIFIED), "cpu.weight", "%u", weight);
}

/* Reading from the start is also what arms the next POLLPRI. */
static int read_events(int fd, uint64_t *ret_kills)
{
	char buf[512];
	ssize_t n = TEMP_FAILURE_RETRY(pread(fd, buf, sizeof(buf), 0));

	if (n < 0)
		return -errno;
	*ret_kills = 0;
	(void)cgroup_text_key((struct cgroup_text){ buf, (size_t)n }, "oom_kill", ret_kills);
	return 0;
}

static int v2_watch(struct cgroup *c, struct err *e)
{
	int dir = cgroup_dir(c, CGROUP_UNIFIED);
	int r = cgroup_put(dir, "memory.oom.group", "1");
	uint64_t kills;

	if (r < 0 && r != -ENOENT) /* absent before 4.19: then the owner of oom_fd ends the cell */
		return err_set(e, r, "set memory.oom.group");

	_fd_ int fd = openat(dir, "memory.events", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open memory.events");
	r = read_events(fd, &kills);
	if (r < 0)
		return err_set(e, r, "read memory.events");
	c->oom_fd = TAKE_FD(fd);
	return 0;
}

static int v2_limits_read(const struct cgroup *c, struct cgroup_limits *ret)
{
	int fd = cgroup_dir(c, CGROUP_UNIFIED), r;
	uint64_t weight = 0, quota, period;
	char buf[64];
	ssize_t n;

	if ((r = cgroup_get_u64(fd, "memory.max", &ret->memory_bytes)) < 0 ||
	    (r = cgroup_get_u64(fd, "pids.max", &ret->pids)) < 0 ||
	    (r = cgroup_get_u64(fd, "cpu.weight", &weight)) < 0)
		return r;
	n = fd_read_file(fd, "cpu.max", buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	if (ret->memory_bytes == UINT64_MAX)
		ret->memory_bytes = 0;
	if (ret->pids == UINT64_MAX)
		ret->pids = 0;
	ret->cpu_weight = (uint32_t)weight;

	/* "QUOTA PERIOD", where the quota may be "max". */
	const char *space = memchr(buf, ' ', (size_t)n);
	size_t first = space ? (size_t)(space - buf) : (size_t)n;

	if (cgroup_text_u64((struct cgroup_text){ buf, first }, &quota) && quota != UINT64_MAX &&
	    cgroup_text_u64((struct cgroup_text){ buf + first, (size_t)n - first }, &period))
		ret->cpu_milli = cgroup_quota_milli(quota, period);
	return 0;
}

static int v2_oom_kills(const struct cgroup *c, uint64_t *ret_kills)
{
	return c->oom_fd < 0 ? -EBADF : read_events(c->oom_fd, ret_kills);
}

static int v2_usage(const struct cgroup *c, struct cgroup_usage *ret)
{
	int fd = cgroup_dir(c, CGROUP_UNIFIED);
	uint64_t usec = 0, throttled = 0;
	const struct cgroup_key cpu[] = {
		{ "usage_usec", &usec },
		{ "throttled_usec", &throttled },
	};
	int r;

	if ((r = cgroup_get_u64(fd, "memory.current", &ret->memory_bytes)) < 0 ||
	    (r = cgroup_get_keys(fd, "cpu.stat", cpu, ARRAY_SIZE(cpu))) < 0)
		return r;
	ret->cpu_ns = usec * 1000;
	ret->throttled_ns = throttled * 1000;
	(void)cgroup_get_u64(fd, "memory.peak", &ret->memory_peak);
	(void)cgroup_get_keys(fd, "memory.stat",
			      &(struct cgroup_key){ "shmem", &ret->memory_files }, 1);
	(void)cgroup_get_keys(fd, "memory.events",
			      &(struct cgroup_key){ "oom_kill", &ret->oom_kills }, 1);
	(void)cgroup_get_u64(fd, "pids.current", &ret->pids);
	(void)cgroup_get_u64(fd, "pids.peak", &ret->pids_peak);
	(void)cgroup_get_keys(fd, "pids.events", &(struct cgroup_key){ "max", &ret->pids_denied },
			      1);
	return 0;
}

const struct cgroup_ops cgroup_ops_v2 = {
	.base = v2_base,
	.memory = v2_memory,
	.quota = v2_quota,
	.weight = v2_weight,
	.watch = v2_watch,
	.limits_read = v2_limits_read,
	.usage = v2_usage,
	.oom_kills = v2_oom_kills,
};
