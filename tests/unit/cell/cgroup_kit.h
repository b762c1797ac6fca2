/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_kit.h - Shared by the tests of cgroups on a real Linux kernel: the site, children inside
 * of a cgroup and what they do there. Included once, by test_cgroup_kernel.c.
 */
#ifndef CAISSON_TESTS_CGROUP_KIT_H
#define CAISSON_TESTS_CGROUP_KIT_H

#include "base/clock.h"
#include "base/err.h"
#include "cell/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "cgroup_kind.h"

#define MIB (UINT64_C(1) << 20)
#define REMOVE_MS 5000

static struct cgroup_site site;
static struct err err;

#define assert_done(call)                                                                          \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, err.msg);                                        \
	} while (0)

static int setup(void **state)
{
	const char *want = getenv("CAISSON_TEST_CGROUP");
	int r = cgroup_site_find(&site, &err);

	(void)state;
	if (r == 0)
		r = cgroup_site_prepare(&site, &err);
	if (r == 0)
		printf("# site: %s, %zu directories, first %s\n", cgroup_kind_str(site.kind),
		       site.n_dirs, site.prefix[0]);
	else
		printf("# no site: %s\n", err.msg);
	if (r < 0)
		site.kind = CGROUP_NONE;
	return want && strcmp(want, cgroup_kind_str(site.kind)) != 0 ? -1 : 0;
}

static void need_site(void)
{
	if (site.kind == CGROUP_NONE) {
		printf("# skipped: %s\n", err.msg);
		skip();
	}
}

static void plan(const struct cgroup_site *s, const char *what, struct cgroup *ret)
{
	char name[CGROUP_NAME_MAX];

	(void)snprintf(name, sizeof(name), "t-%s-%d", what, (int)getpid());
	assert_done(cgroup_plan(s, name, ret, &err));
}

/* A child of the cgroup that runs fn(arg) once it is in all directories. */
static pid_t start(const struct cgroup *c, int (*fn)(int), int arg)
{
	int gate[2], inside[2], into = cgroup_clone_fd(c);
	char ch;
	struct clone_args args = { .exit_signal = SIGCHLD };
	struct cgroup_enter enter;

	assert_done(cgroup_enter_open(c, &enter, &err));
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(pipe2(inside, O_CLOEXEC), 0);
	if (into >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (unsigned int)into;
	}
	(void)fflush(NULL);

	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(gate[1]);
		(void)alarm(20);
		if (cgroup_enter_self(&enter) < 0 || write(inside[1], "i", 1) != 1)
			_exit(98);
		_exit(read(gate[0], &ch, 1) == 1 ? fn(arg) : 99);
	}
	cgroup_enter_close(&enter);
	(void)close(inside[1]);
	assert_int_equal(read(inside[0], &ch, 1), 1);
	(void)close(inside[0]);
	assert_int_equal(write(gate[1], "x", 1), 1);
	(void)close(gate[0]);
	(void)close(gate[1]);
	return pid;
}

static int reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void assert_gone(const struct cgroup *c)
{
	for (size_t i = 0; i < c->n_dirs; i++) {
		assert_int_equal(access(c->path[i], F_OK), -1);
		assert_int_equal(errno, ENOENT);
	}
}

static int idle(int arg)
{
	(void)arg;
	return pause();
}

static int eat(int mib)
{
	char *p = mmap(NULL, (size_t)mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return 98;
	for (size_t i = 0; i < (size_t)mib << 20; i += 4096)
		((volatile char *)p)[i] = 1;
	return 0;
}

static int fork_many(int count)
{
	int refused = 0;

	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)alarm(20);
			(void)pause();
			_exit(0);
		}
		refused += pid < 0;
	}
	return refused;
}

static int fork_and_stay(int count)
{
	(void)fork_many(count);
	return pause();
}

static int burn(int ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)ms * CLOCK_NS_PER_MS;

	while (clock_now_ns() < end)
		;
	return 0;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

/* The kernel's own list of our child's positions names every directory of the cgroup. */
static void assert_member(const struct cgroup *c, pid_t pid)
{
	char path[64], line[1024], tail[CGROUP_NAME_MAX + 16];
	size_t seen = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	(void)snprintf(tail, sizeof(tail), "%st-%s\n",
		       c->kind == CGROUP_V2 ? "/caisson/" : "/caisson-",
		       strstr(c->path[0], "t-life") + 2);

	FILE *f = fopen(path, "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		seen += strlen(line) > strlen(tail) &&
			strcmp(line + strlen(line) - strlen(tail), tail) == 0;
	(void)fclose(f);
	assert_int_equal(seen, c->n_dirs);
}

static void drop_to(uid_t uid)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(90);
}

static int put_file(const char *dir, const char *file, const char *value)
{
	char path[CGROUP_PATH_MAX + 64];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);

	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	(void)close(fd);
	return ok ? 0 : -1;
}

/* Beside the cells: at our own place, or an ancestor's. */
static void beside(const char *prefix, const char *name, char *ret)
{
	const char *last = strstr(prefix, "/caisson");

	(void)snprintf(ret, CGROUP_PATH_MAX, "%.*s/%s-%d", (int)(last - prefix), prefix, name,
		       (int)getpid());
}

#endif
