/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_roads.c - The same program, started in every unusual way.
 *
 *   exec_roads NONCE [PROGRAM32]   start one holder per way, print "ready", end with stdin
 *   exec_roads hold NONCE ROAD     a holder: try to make a user namespace, then wait
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

#define LOADER "/lib64/ld-linux-x86-64.so.2"

static char self[4096];
static const char *nonce;

static int memfd_of(const char *path, unsigned int flags)
{
	struct stat st;
	int in = open(path, O_RDONLY | O_CLOEXEC), out = memfd_create("x", flags);
	off_t at = 0;

	if (in < 0 || out < 0 || fstat(in, &st) < 0)
		return -1;
	while (at < st.st_size)
		if (sendfile(out, in, &at, (size_t)(st.st_size - at)) <= 0)
			return -1;
	(void)close(in);
	return out;
}

static void road_plain(char **argv)
{
	(void)execv(self, argv);
}

static void road_memfd(char **argv)
{
	char *env[] = { NULL };

	(void)syscall(SYS_execveat, memfd_of(self, MFD_CLOEXEC), "", argv, env, AT_EMPTY_PATH);
}

static void road_procfd(char **argv)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd_of(self, 0));
	(void)execv(path, argv);
}

static void road_loader(char **argv)
{
	char *through[8] = { LOADER, self };

	for (int i = 1; i < 6 && argv[i]; i++)
		through[i + 1] = argv[i];
	(void)execv(LOADER, through);
}

static void road_root(char **argv)
{
	char path[sizeof(self) + 16];

	(void)snprintf(path, sizeof(path), "/proc/self/root%s", self);
	(void)execv(path, argv);
}

/* A script whose interpreter is a script whose interpreter is us. */
static void road_shebang(char **argv)
{
	char a[64], b[64];

	(void)snprintf(a, sizeof(a), "/tmp/a-%d", getpid());
	(void)snprintf(b, sizeof(b), "/tmp/b-%d", getpid());
	FILE *fa = fopen(a, "w"), *fb = fopen(b, "w");

	if (!fa || !fb)
		return;
	(void)fprintf(fa, "#! \t %s hold\n", self);
	(void)fprintf(fb, "#!%s\n", a);
	(void)fclose(fa);
	(void)fclose(fb);
	(void)chmod(a, 0755);
	(void)chmod(b, 0755);
	/* Arrives as: self hold a b nonce road. */
	argv[1] = (char *)nonce;
	argv[2] = "shebang";
	argv[3] = NULL;
	(void)execv(b, argv);
}

static const struct {
	const char *name;
	void (*start)(char **argv);
} roads[] = {
	{ "plain", road_plain },   { "memfd", road_memfd }, { "procfd", road_procfd },
	{ "loader", road_loader }, { "root", road_root },   { "shebang", road_shebang },
};

static _Noreturn void hold(const char *road)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)printf("held %s unshare %d\n", road, unshare(CLONE_NEWUSER) < 0 ? errno : 0);
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

int main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "hold") == 0)
		hold(argv[argc - 1]);
	if (argc < 2)
		return 2;
	nonce = argv[1];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return 3;
	for (size_t i = 0; i < sizeof(roads) / sizeof(roads[0]); i++) {
		char *args[8] = { "holder", "hold", (char *)nonce, (char *)roads[i].name };
		pid_t pid = fork();

		if (pid == 0) {
			roads[i].start(args);
			(void)printf("road %s %s\n", roads[i].name, strerrorname_np(errno));
			(void)fflush(stdout);
			_exit(1);
		}
	}
	if (argc > 2) {
		int status = 0;
		pid_t pid = fork();

		if (pid == 0) {
			(void)execl(argv[2], argv[2], (char *)NULL);
			_exit(126);
		}
		(void)waitpid(pid, &status, 0);
		(void)printf("program32 %s %d\n", WIFSIGNALED(status) ? "signal" : "exit",
			     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)getchar();
	(void)kill(0, SIGTERM);
	return 0;
}
