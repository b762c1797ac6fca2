/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - Shared by the probes of the Linux kernel.
 *
 * A probe is a small program that shows one behaviour of the Linux kernel on which the code relies.
 * It prints its finding in one line and ends with PROBE_HOLDS, PROBE_FAILS, or PROBE_CANNOT when
 * this machine does not let it look. When a cell misbehaves on a new Linux kernel, run these first.
 */
#ifndef CAISSON_TESTS_KERNEL_PROBE_H
#define CAISSON_TESTS_KERNEL_PROBE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROBE_HOLDS = 0, PROBE_FAILS = 1, PROBE_CANNOT = 77 };

__attribute__((format(printf, 2, 3))) static inline _Noreturn void probe_end(int verdict,
									     const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)printf("\n");
	(void)fflush(stdout);
	_exit(verdict);
}

/* The step is not what is looked at, but without it nothing can be seen. */
#define probe_must(ok, what)                                                                       \
	do {                                                                                       \
		if (!(ok))                                                                         \
			probe_end(PROBE_CANNOT, "%s: %s", what, strerror(errno));                  \
	} while (0)

/* clone3 with namespaces; as fork() otherwise. */
static inline pid_t probe_clone(uint64_t flags)
{
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static inline int probe_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	ssize_t n = write(fd, text, strlen(text));
	int saved = errno;

	(void)close(fd);
	errno = saved;
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Map one id of a child's new user namespace, as its parent. */
static inline int probe_map(pid_t child, unsigned int inside, unsigned int outside)
{
	char path[64], map[64];

	(void)snprintf(map, sizeof(map), "%u %u 1", inside, outside);
	(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)child);
	(void)probe_write(path, "deny");
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)child);
	if (probe_write(path, map) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)child);
	return probe_write(path, map);
}

/* Wait for a byte (or the end) of a pipe, but not for ever. */
static inline int probe_wait(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	if (poll(&p, 1, ms) <= 0)
		return -1;
	return read(fd, &c, 1) == 1 ? 1 : 0;
}

static inline int probe_exit_code(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
