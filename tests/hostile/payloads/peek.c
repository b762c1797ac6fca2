/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peek.c - Look into, or act on, another process by every interface there is.
 *
 *   peek PID   the victim. Its memory is searched for the text that follows "secret:".
 *   peek victim SECRET   be a victim: print the pid, hold the secret in memory and a pipe on 3
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

#define PLACE ((char *)0x200000000000ul) /* where a victim keeps its secret */

static int victim(const char *secret)
{
	char *p = mmap(PLACE, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		       -1, 0);
	int pair[2];

	if (p == MAP_FAILED || pipe(pair) < 0 || dup2(pair[0], 3) < 0)
		return 3;
	(void)snprintf(p, 4096, "secret:%s", secret);
	(void)printf("victim %d\n", getpid());
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

static void found(const char *how, const char *text)
{
	if (strncmp(text, "secret:", 7) == 0)
		(void)printf("READ %s %.64s\n", how, text + 7);
}

static void memory(int pid)
{
	char text[256] = "", path[64];
	struct iovec mine = { text, sizeof(text) - 1 }, theirs = { PLACE, sizeof(text) - 1 };

	if (say("process_vm_readv", process_vm_readv(pid, &mine, 1, &theirs, 1, 0)) > 0)
		found("process_vm_readv", text);
	say("process_vm_writev", process_vm_writev(pid, &mine, 1, &theirs, 1, 0));
	text[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	int fd = (int)say("open-mem", open(path, O_RDWR));

	if (fd >= 0 && pread(fd, text, sizeof(text) - 1, (off_t)(uintptr_t)PLACE) > 0)
		found("mem", text);
	if (say("ptrace-attach", ptrace(PTRACE_ATTACH, pid, 0, 0)) == 0) {
		long word;

		(void)waitpid(pid, NULL, __WALL);
		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, pid, PLACE, 0);
		(void)printf("ptrace-peek %d\n", errno == 0 && memcmp(&word, "secret:", 7) == 0);
		(void)ptrace(PTRACE_DETACH, pid, 0, 0);
	}
	say("ptrace-seize", ptrace(PTRACE_SEIZE, pid, 0, 0));
}

/* Everything in /proc/PID that leads somewhere or tells something. */
static void proc(int pid)
{
	static const char *const names[] = { "environ", "auxv",       "maps",    "smaps",
					     "pagemap", "stack",      "syscall", "personality",
					     "io",      "exe",        "root",    "cwd",
					     "fd",      "map_files",  "fdinfo",  "ns/mnt",
					     "ns/user", "mountstats", "timers",  "fd/0",
					     "fd/3",    "task" };
	char path[96], text[96], data[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, names[i]);
		(void)snprintf(text, sizeof(text), "open-%s", names[i]);
		int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof(data));

		/* A directory opens for listing; a file of another's only tells when it is read. */
		if (fd >= 0 && n < 0 && errno == EISDIR) {
			int count = 0;
			DIR *d = fdopendir(fd);

			while (d && readdir(d))
				count++;
			n = count;
		}
		say(text, n);
		(void)snprintf(text, sizeof(text), "readlink-%s", names[i]);
		if (readlink(path, data, sizeof(data)) > 0)
			say(text, 1);
		(void)snprintf(text, sizeof(text), "write-%s", names[i]);
		if (open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) >= 0)
			say(text, 1);
	}
}

static void handles(int pid)
{
	int pidfd = (int)say("pidfd_open", syscall(SYS_pidfd_open, pid, 0));

	say("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, 3, 0));
	say("setns-pidfd", setns(pidfd, CLONE_NEWNS));
	say("kcmp", syscall(SYS_kcmp, pid, getpid(), KCMP_FILES, 0, 0));
	say("process_madvise", syscall(SYS_process_madvise, pidfd, NULL, 0ul, MADV_COLD, 0u));
	say("process_mrelease", syscall(SYS_process_mrelease, pidfd, 0));
	say("perf_event_open", syscall(SYS_perf_event_open, NULL, pid, -1, -1, 0ul));
}

/* Attacks that need no more than the same user id; another layer has to stop them. */
static void steer(int pid)
{
	struct rlimit now, one = { 1, 1 };
	struct sched_param none = { 0 };
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	say("steer-getrlimit", prlimit(pid, RLIMIT_NOFILE, NULL, &now));
	say("steer-prlimit-cpu", prlimit(pid, RLIMIT_CPU, &one, NULL));
	say("steer-prlimit-nofile", prlimit(pid, RLIMIT_NOFILE, &one, NULL));
	say("steer-setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 19));
	say("steer-scheduler", sched_setscheduler(pid, SCHED_IDLE, &none));
	say("steer-affinity", sched_setaffinity(pid, sizeof(cpus), &cpus));
	say("steer-ioprio", syscall(SYS_ioprio_set, 1, pid, 3 << 13));
	say("steer-setpgid", setpgid(pid, pid));
	say("steer-migrate", syscall(SYS_migrate_pages, pid, 0ul, NULL, NULL));
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "victim") == 0)
		return victim(argv[2]);
	if (argc < 2)
		return 2;
	int pid = atoi(argv[1]);

	memory(pid);
	proc(pid);
	handles(pid);
	if (argc == 2)
		steer(pid);
	(void)printf("done\n");
	return 0;
}
