/* SPDX-License-Identifier: Apache-2.0 */
/* test_rlimit.c - Per-process limits: the whole table, soft and hard alike, never raised. */
#include "cell/caps.h"

#include "base/fd.h"
#include "wire/init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"

static const struct init_config config = {
	.files = 40,
	.disk_bytes = 1 << 20,
	.pids = 20,
};

static struct rlimit get(int resource)
{
	struct rlimit l;

	CHILD_CHECK(getrlimit((__rlimit_resource_t)resource, &l) == 0);
	return l;
}

static void check(int resource, rlim_t want)
{
	struct rlimit l = get(resource);

	CHILD_CHECK(l.rlim_cur == want);
	CHILD_CHECK(l.rlim_max == want);
}

static rlim_t at_most(rlim_t a, rlim_t b)
{
	return a < b ? a : b;
}

CHILD_TEST(apply)
{
	rlim_t pending = get(RLIMIT_SIGPENDING).rlim_max, queue = get(RLIMIT_MSGQUEUE).rlim_max;
	rlim_t files = get(RLIMIT_NOFILE).rlim_max, space = get(RLIMIT_AS).rlim_max;

	CHILD_CHECK(process_limit(&config) == 0);
	check(RLIMIT_CORE, 0);
	check(RLIMIT_NOFILE, at_most(40, files));
	check(RLIMIT_FSIZE, 1 << 20);
	check(RLIMIT_MEMLOCK, 64 * 1024);
	check(RLIMIT_NPROC, 20);
	check(RLIMIT_SIGPENDING, at_most(1024, pending));
	check(RLIMIT_MSGQUEUE, at_most(204800, queue));
	check(RLIMIT_NICE, 0);
	check(RLIMIT_RTPRIO, 0);
	/* With a cgroup the address space is free: memory is counted there. */
	CHILD_CHECK(get(RLIMIT_AS).rlim_max == space);
	CHILD_CHECK(process_limit(&config) == 0);
}

/* Without a cgroup the address space is the only memory limit left. */
CHILD_TEST(memory)
{
	struct init_config c = config;

	c.memory_bytes = 256u << 20;
	CHILD_CHECK(process_limit(&c) == 0);
	check(RLIMIT_AS, (256u << 20) + INIT_ADDRESSES);
}

/* The caller's own hard limit is below ours: it stays, and this is not an error. */
CHILD_TEST(never_raises)
{
	struct rlimit low = { .rlim_cur = 20, .rlim_max = 30 };
	struct init_config c = config;

	CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
	low = (struct rlimit){ .rlim_cur = 1000, .rlim_max = 2000 };
	CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
	CHILD_CHECK(setrlimit(RLIMIT_MEMLOCK, &low) == 0);
	c.files = 1048576;
	c.disk_bytes = 1ull << 40;
	CHILD_CHECK(process_limit(&c) == 0);
	check(RLIMIT_NOFILE, 30);
	check(RLIMIT_FSIZE, 2000);
	check(RLIMIT_MEMLOCK, 2000);
}

/* The limits bind, and an ordinary user cannot take them back. */
CHILD_TEST(binding)
{
	struct rlimit more = { .rlim_cur = 41, .rlim_max = 41 };
	int last = -1;

	child_become_nobody();
	CHILD_CHECK(process_limit(&config) == 0);
	CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &more) < 0 && errno == EPERM);
	for (int i = 0; i < 50; i++) {
		int fd = dup(0);

		if (fd < 0)
			break;
		last = fd;
	}
	CHILD_CHECK(errno == EMFILE && last < 40);
	fd_close(last);

	/* One byte more than the file limit is refused, with the signal out of the way. */
	(void)signal(SIGXFSZ, SIG_IGN);
	_fd_ int fd = open("/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		CHILD_SKIP("no unnamed files in /tmp: %s", strerror(errno));
	CHILD_CHECK(pwrite(fd, "xy", 2, (1 << 20) - 1) == 1);
	CHILD_CHECK(pwrite(fd, "x", 1, 1 << 20) < 0 && errno == EFBIG);
}
