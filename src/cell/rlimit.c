/* SPDX-License-Identifier: Apache-2.0 */
/* rlimit.c - The table of per-process limits. */
#include "cell/rlimit.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "wire/init.h"

static int lower(int resource, rlim_t want)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
		return -errno;
	if (now.rlim_max < want)
		want = now.rlim_max;

	struct rlimit set = { .rlim_cur = want, .rlim_max = want };

	return setrlimit((__rlimit_resource_t)resource, &set) < 0 ? -errno : 0;
}

int rlimit_apply(const struct init_config *c)
{
	const struct {
		int resource;
		rlim_t value;
	} rows[] = {
		{ RLIMIT_CORE, 0 }, /* no dump of a guest ever lands anywhere */
		{ RLIMIT_NOFILE, c->files },
		{ RLIMIT_FSIZE, c->disk_bytes },
		{ RLIMIT_MEMLOCK, 64 * 1024 },
		{ RLIMIT_NPROC, c->pids }, /* counted in the cell's own user namespace */
		{ RLIMIT_SIGPENDING, 1024 },
		{ RLIMIT_MSGQUEUE, 204800 },
		{ RLIMIT_NICE, 0 },
		{ RLIMIT_RTPRIO, 0 },
		{ RLIMIT_AS, c->memory_bytes ? c->memory_bytes : RLIM_INFINITY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = lower(rows[i].resource, rows[i].value);

		if (r < 0)
			return r;
	}
	return 0;
}
