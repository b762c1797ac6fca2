/* SPDX-License-Identifier: Apache-2.0 */
/* torn.c - Copy first, cut later: whatever happens in between, no byte is lost. */
#include "ledger/torn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define TRIES 100 /* names of one millisecond */

int torn_make(int dirfd, uint64_t time_ns, char name[TORN_NAME_ROOM])
{
	time_t seconds = (time_t)(time_ns / CLOCK_NS_PER_S);
	struct tm tm = { 0 };
	char when[40] = "", again[8] = "";
	int fd = -1;

	(void)gmtime_r(&seconds, &tm);
	(void)strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &tm);
	for (int i = 0; i < TRIES; i++) {
		if (i > 0)
			(void)snprintf(again, sizeof(again), "-%d", i);
		(void)snprintf(name, TORN_NAME_ROOM, "ledger.torn-%.20s.%03uZ%s", when,
			       (unsigned int)(time_ns / CLOCK_NS_PER_MS % 1000), again);
		fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : fd;
}

static int copy(int from_fd, uint64_t from, int to)
{
	char block[4096];

	for (;;) {
		ssize_t n = pread(from_fd, block, sizeof(block), (off_t)from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		int r = fd_write_all(to, block, (size_t)n);

		if (r < 0)
			return r;
		from += (uint64_t)n;
	}
}

int torn_copy(int dirfd, int fd, uint64_t from, int to)
{
	int r = ftruncate(to, 0) < 0 ? -errno : copy(fd, from, to);

	return r == 0 && (fdatasync(to) < 0 || fsync(dirfd) < 0) ? -errno : r;
}
