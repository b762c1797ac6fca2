/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_gauge.c - Open the files of a cgroup that tell what is used, for somebody who may only
 * read. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cell/cgroup.h"
#include "cell/cgroup_ops.h"

/* One row per gauge and kind of tree. */
static const struct {
	bool v2;
	enum cgroup_role role;
	const char *file;
	enum cell_gauge gauge;
} rows[] = {
	{ true, CGROUP_UNIFIED, "cpu.stat", GAUGE_CPU_STAT },
	{ true, CGROUP_UNIFIED, "memory.peak", GAUGE_MEMORY_PEAK },
	{ true, CGROUP_UNIFIED, "pids.peak", GAUGE_PIDS_PEAK },
	{ true, CGROUP_UNIFIED, "pids.events", GAUGE_PIDS_EVENTS },
	{ false, CGROUP_CPUACCT, "cpuacct.usage", GAUGE_CPU_NS },
	{ false, CGROUP_CPU, "cpu.stat", GAUGE_THROTTLED },
	{ false, CGROUP_MEMORY, "memory.max_usage_in_bytes", GAUGE_MEMORY_PEAK },
	{ false, CGROUP_PIDS, "pids.peak", GAUGE_PIDS_PEAK },
	{ false, CGROUP_PIDS, "pids.events", GAUGE_PIDS_EVENTS },
};

uint32_t cgroup_gauges(const struct cgroup *c, int fds[GAUGE_MAX_])
{
	uint32_t have = 0;

	for (size_t g = 0; g < GAUGE_MAX_; g++)
		fds[g] = -1;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int dir = rows[i].v2 == (c->kind == CGROUP_V2) ? cgroup_dir(c, rows[i].role) : -1;

		if (dir < 0)
			continue;
		fds[rows[i].gauge] = openat(dir, rows[i].file, O_RDONLY | O_CLOEXEC);
		if (fds[rows[i].gauge] >= 0)
			have |= 1u << rows[i].gauge;
	}
	return have;
}
