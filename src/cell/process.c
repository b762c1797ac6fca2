/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - Limits and signals of a process that becomes a command or a zygote. */
#include "cell/process.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

int process_limit(const struct init_config *c)
{
	const struct init_limit rows[] = INIT_LIMITS(c);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = lower(rows[i].resource, rows[i].value);

		if (r < 0)
			return r;
	}
	return 0;
}

/* By the system call itself: the C library hides two signals that an ancestor may have ignored. */
void process_reset_signals(void)
{
	const struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} dfl = { 0 };

	for (int sig = 1; sig <= 64; sig++)
		(void)syscall(SYS_rt_sigaction, sig, &dfl, NULL, sizeof(dfl.mask));
}
