/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_kit.h - Shared by the tests of started commands: the program that is started, and the
 * surroundings of init.
 *
 * The program is the test itself, copied to where any user may execute it. Called with "look" it
 * prints its descriptors, waits for one byte, and exits with 7. Tests run in children (child.h): as
 * root with a user of its own for the command, as in a cell that root makes, and as the only user
 * of a user namespace, as in a cell of any other user.
 */
#ifndef CAISSON_TESTS_START_KIT_H
#define CAISSON_TESTS_START_KIT_H

#include "base/fd.h"
#include "init/init_command.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"

#define AGENT 1000u
#define LOOKED 7 /* exit code of the program */
#define FDS_SEEN 256
#define FORGOTTEN 60

static char top[64], program[96], script_path[96];

/* ---- the program ----------------------------------------------------------------------------- */

/* One descriptor as the program sees it. */
struct seen {
	int fd;
	int mode; /* of access */
	int flags;
	unsigned int type, rdev;
	uid_t uid;
};

static inline int look(int out, int in)
{
	char go;

	for (int fd = 0; fd < FDS_SEEN; fd++) {
		struct stat st;
		struct seen s = { .fd = fd, .flags = fcntl(fd, F_GETFD) };

		if (s.flags < 0)
			continue;
		if (fstat(fd, &st) < 0)
			return 1;
		s.mode = fcntl(fd, F_GETFL) & O_ACCMODE;
		s.type = st.st_mode & S_IFMT;
		s.rdev = (unsigned int)st.st_rdev;
		s.uid = st.st_uid;
		if (write(out, &s, sizeof(s)) != (ssize_t)sizeof(s))
			return 2;
	}
	if (write(out, &(struct seen){ .fd = -1 }, sizeof(struct seen)) < 0)
		return 3;
	return read(in, &go, 1) == 1 ? LOOKED : 4;
}

/* A kernel: also writes to each stream, and opens one by its name. */
static inline int look_kernel(void)
{
	char go;
	int r = look(4, 3);
	int again = open("/dev/stdout", O_WRONLY | O_CLOEXEC);

	if (r != LOOKED || read(0, &go, 1) != 0)
		return 5;
	if (write(1, "out", 3) != 3 || write(2, "err", 3) != 3)
		return 6;
	return write(again, "put", 3) == 3 ? LOOKED : 8;
}

/* ---- the world of a test --------------------------------------------------------------------- */

static struct init_config config;

static inline void put(const char *path, const char *text)
{
	CHILD_CHECK(fd_write_file(AT_FDCWD, path, text) == 0);
}

/* In a child: as init stands in a cell that has a user for it (root's), or only one (anybody's). */
static inline void enter_world(bool separate)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	/* Nothing of the test's own, so that the low numbers are free as they are in init. */
	CHILD_CHECK(syscall(SYS_close_range, 3u, ~0u, 0u) == 0);
	/* A descriptor without close-on-exec: no program may inherit it. */
	CHILD_CHECK(fcntl(STDERR_FILENO, F_DUPFD, FORGOTTEN) == FORGOTTEN);
	config = (struct init_config){ .uid = AGENT,
				       .gid = AGENT,
				       .separate = separate,
				       .files = 1024,
				       .disk_bytes = 1 << 30,
				       .pids = 4096 };
	if (separate && uid != 0)
		CHILD_SKIP("a user beside init's needs root");
	if (separate)
		return;
	if (unshare(CLONE_NEWUSER) < 0)
		CHILD_SKIP("no user namespace: %s", strerror(errno));
	(void)snprintf(map, sizeof(map), "%u %u 1", AGENT, uid);
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "%u %u 1", AGENT, gid);
	put("/proc/self/gid_map", map);
	CHILD_CHECK(setresgid(AGENT, AGENT, AGENT) == 0 && setresuid(AGENT, AGENT, AGENT) == 0);
}

struct words {
	char *argv[5];
	char *envp[1];
};

static inline struct command command(struct words *w, uint32_t flags, const char *out,
				     const char *in)
{
	static char what[] = "look", path[sizeof(program)];

	memcpy(path, program, sizeof(path));
	*w = (struct words){ .argv = { path, what, (char *)out, (char *)in } };
	return (struct command){
		.flags = flags,
		.uid = AGENT,
		.gid = AGENT,
		.cwd = "/",
		.script_path = "",
		.argv = w->argv,
		.envp = w->envp,
		.script_fd = -1,
		.stdio = { -1, -1, -1 },
	};
}

static inline struct seen read_seen(int fd)
{
	struct seen s = { 0 };

	CHILD_CHECK(read(fd, &s, sizeof(s)) == (ssize_t)sizeof(s));
	return s;
}

static inline void check_fd(int from, int fd, unsigned int type, int mode, uid_t uid)
{
	struct seen s = read_seen(from);

	CHILD_CHECK(s.fd == fd && s.type == type && s.mode == mode && s.flags == 0);
	CHILD_CHECK(s.uid == uid || type == S_IFCHR);
	CHILD_CHECK(type != S_IFCHR || mode != O_RDWR || s.rdev == makedev(1, 3)); /* null */
}

static inline void check_no_more(int from)
{
	CHILD_CHECK(read_seen(from).fd == -1);
}

static inline void check_read(int fd, const char *text)
{
	char got[16];
	size_t len = strlen(text);

	CHILD_CHECK(read(fd, got, len) == (ssize_t)len && memcmp(got, text, len) == 0);
}

static inline void no_hold(uint32_t id, pid_t pid)
{
	(void)id;
	(void)pid;
	CHILD_CHECK(false); /* it was not requested */
}

/* ---- around them ----------------------------------------------------------------------------- */

/* A directory of the agent's, and the program in it. */
static inline int setup(void **state)
{
	char byte[65536];
	ssize_t n;

	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/test-command-XXXXXX");
	if (!mkdtemp(top) || chmod(top, 0755) < 0)
		return -1;
	(void)snprintf(program, sizeof(program), "%s/program", top);
	(void)snprintf(script_path, sizeof(script_path), "%s/main.py", top);
	_fd_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_fd_ int to = open(program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	if (from < 0 || to < 0 || fchmod(to, 0755) < 0)
		return -1;
	while ((n = read(from, byte, sizeof(byte))) > 0)
		if (fd_write_all(to, byte, (size_t)n) < 0)
			return -1;
	return geteuid() != 0 || chown(top, AGENT, AGENT) == 0 ? (int)n : -1;
}

static inline int teardown(void **state)
{
	(void)state;
	(void)unlink(script_path);
	return unlink(program) < 0 || rmdir(top) < 0 ? -1 : 0;
}

/* In main(), before anything else: the program, if that is what we were started as. */
#define START_KIT_PROGRAM(argc, argv)                                                              \
	do {                                                                                       \
		if ((argc) > 2 && strcmp((argv)[1], "look") == 0)                                  \
			return strcmp((argv)[2], "kernel") == 0 ? look_kernel() : look(1, 0);      \
	} while (0)

#endif
