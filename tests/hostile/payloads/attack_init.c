/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attack_init.c - Everything that one process may try on another: kill it, read it, write it,
 * replace it.
 *
 * usage: attack_init PID
 *
 * Prints "ATTEMPT RESULT" lines, RESULT an errno or OK; then, after a while for signals to arrive,
 * exits 7.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void say(const char *what, int failed)
{
	(void)printf("%s %s\n", what, failed ? strerrorname_np(errno) : "OK");
	(void)fflush(stdout);
}

static void try_open(int pid, const char *file, int flags, const char *what)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/%d/%s", pid, file);
	int fd = open(name, flags);

	say(what, fd < 0);
	if (fd >= 0)
		(void)close(fd);
}

static void try_files(int pid)
{
	static const struct {
		const char *file;
		int flags;
		const char *what;
	} rows[] = {
		{ "mem", O_RDONLY, "mem-read" },    { "mem", O_RDWR, "mem-write" },
		{ "exe", O_WRONLY, "exe-write" },   { "exe", O_RDONLY, "exe-read" },
		{ "environ", O_RDONLY, "environ" }, { "maps", O_RDONLY, "maps" },
		{ "fd/3", O_RDWR, "channel" },      { "fd", O_RDONLY, "fd-list" },
		{ "root", O_RDONLY, "root" },       { "cwd", O_RDONLY, "cwd" },
		{ "ns/mnt", O_RDONLY, "ns" },       { "oom_score_adj", O_WRONLY, "oom-score" },
		{ "stack", O_RDONLY, "stack" },     { "syscall", O_RDONLY, "syscall" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		try_open(pid, rows[i].file, rows[i].flags, rows[i].what);
}

static void try_memory(int pid)
{
	char byte = 0;
	struct iovec mine = { &byte, 1 }, theirs = { (void *)say, 1 };

	say("vm-read", process_vm_readv(pid, &mine, 1, &theirs, 1, 0) < 0 && errno != EFAULT);
	say("vm-write", process_vm_writev(pid, &mine, 1, &theirs, 1, 0) < 0 && errno != EFAULT);
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	say("getfd", syscall(SYS_pidfd_getfd, pidfd, 1, 0) < 0);
	say("seize", ptrace(PTRACE_SEIZE, pid, 0, 0) < 0);
	(void)ptrace(PTRACE_DETACH, pid, 0, 0);
	say("attach", ptrace(PTRACE_ATTACH, pid, 0, 0) < 0);
	(void)ptrace(PTRACE_DETACH, pid, 0, 0);
}

static void try_limits(int pid)
{
	struct rlimit low = { 3, 3 };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	say("prlimit", prlimit(pid, RLIMIT_NOFILE, &low, NULL) < 0);
	say("nice", setpriority(PRIO_PROCESS, (id_t)pid, 19) < 0);
	say("affinity", sched_setaffinity(pid, sizeof(one), &one) < 0);
}

static void try_signals(int pid)
{
	int ok = 0;

	for (int s = 1; s <= 64; s++)
		ok += kill(pid, s) == 0;
	errno = EPERM;
	say("kill", ok == 0);
	ok = 0;
	for (int s = 1; s <= 64; s++)
		ok += syscall(SYS_tgkill, pid, pid, s) == 0;
	say("tgkill", ok == 0);
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	say("pidfd-signal", syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0);
}

int main(int argc, char **argv)
{
	int pid = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;

	try_files(pid);
	try_memory(pid);
	try_limits(pid);
	try_signals(pid);
	(void)usleep(100000);
	return 7;
}
