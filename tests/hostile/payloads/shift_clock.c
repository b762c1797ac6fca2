// SPDX-License-Identifier: Apache-2.0
/*
 * shift_clock.c - To be preloaded: moves the wall clock of a program by a number of seconds.
 *
 * The number is in a file that both sides map ($L_CLOCK), so that a test can move the clock while
 * the daemon runs, in a jail in which it can open nothing. All other clocks stay as they are.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("L_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		shift = at;
	if (fd >= 0)
		(void)close(fd);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, id, t);

	if (r == 0 && shift && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += *shift;
	return (int)r;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec t;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &t) < 0)
		return -1;
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec t;

	if (clock_gettime(CLOCK_REALTIME, &t) < 0)
		return -1;
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}
