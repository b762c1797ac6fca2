/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cgroup_enter.c - Ways into a cgroup: one process opens its files, another uses them to move.
 * A cloned process enters the hierarchies that clone3() did not. A zygote's user moves its own
 * processes and no others; on v2 it gets no file, and is moved. A failure to open leaves nothing
 * open.
 */
#include "base/err.h"
#include "base/fd.h"
#include "cell/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"
#include "cgroup_kind.h"

#define REMOVE_MS 5000

static struct cgroup_site site;
static struct cgroup cell;
static struct cgroup_enter enter;
static struct err err;
static int fds_before;

static int find_site(void **state)
{
	const char *want = getenv("CAISSON_TEST_CGROUP");

	(void)state;
	if (cgroup_site_find(&site, &err) < 0 || cgroup_site_prepare(&site, &err) < 0) {
		printf("# no site: %s\n", err.msg);
		site.kind = CGROUP_NONE;
	} else {
		printf("# site: %s, %zu directories\n", cgroup_kind_str(site.kind), site.n_dirs);
	}
	return want && strcmp(want, cgroup_kind_str(site.kind)) != 0 ? -1 : 0;
}

struct unit_fixture unit_group = { find_site, NULL };

/* A cgroup of our own for each test. */
static int setup(void **state)
{
	char name[CGROUP_NAME_MAX];

	(void)state;
	fds_before = open_fds();
	err = (struct err){ 0 };
	if (site.kind == CGROUP_NONE)
		return 0;
	(void)snprintf(name, sizeof(name), "t-enter-%d", (int)getpid());
	return cgroup_plan(&site, name, &cell, &err) < 0 ||
			       cgroup_create(&cell, &(struct cgroup_limits){ .pids = 8 }, &err) <
				       0 ?
		       -1 :
		       0;
}

static int teardown(void **state)
{
	(void)state;
	if (site.kind != CGROUP_NONE && cgroup_remove(&cell, REMOVE_MS, &err) < 0)
		return -1;
	return open_fds() == fds_before ? 0 : -1;
}

struct unit_fixture unit_fixture = { setup, teardown };

#define need_site()                                                                                \
	do {                                                                                       \
		if (site.kind == CGROUP_NONE) {                                                    \
			printf("# skipped: no cgroups to be had\n");                               \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

static bool is_unified(size_t dir)
{
	return (int)dir == cell.dir_of[CGROUP_UNIFIED];
}

/* The descriptor is for writing, ours alone, and of this file. */
static void check_file(int fd, const char *dir, const char *file)
{
	char link[64], want[CGROUP_PATH_MAX + 32];
	struct stat a, b;

	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_WRONLY);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	(void)snprintf(want, sizeof(want), "%s/%s", dir, file);
	assert_int_equal(stat(link, &a), 0);
	assert_int_equal(stat(want, &b), 0);
	assert_true(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* `tasks` of each v1 directory, in their order; the unified tree is clone3()'s business. */
static void check_v1_files(void)
{
	size_t n = 0;

	for (size_t i = 0; i < cell.n_dirs; i++)
		if (!is_unified(i))
			check_file(enter.fd[n++], cell.path[i], "tasks");
	assert_int_equal(enter.n, n);
}

TEST(open)
{
	need_site();
	memset(&enter, 0xa5, sizeof(enter));
	assert_int_equal(cgroup_enter_open(&cell, &enter, &err), 0);
	check_v1_files();
	if (cell.kind == CGROUP_V2)
		assert_int_equal(enter.n, 0);
	else
		assert_in_range(enter.n, 1, CGROUP_DIRS_MAX - 1);
	cgroup_enter_close(&enter);
	assert_int_equal(enter.n, 0);
	cgroup_enter_close(&enter);
}

/* For a zygote the same files; of a v2 tree it is given nothing. */
TEST(join_open)
{
	need_site();
	memset(&enter, 0xa5, sizeof(enter));
	assert_int_equal(cgroup_join_open(&cell, 0, &enter, &err), 0);
	check_v1_files();
	cgroup_enter_close(&enter);
}

/* The number of the cell's hierarchies that this process is in, by the Linux kernel's report. */
static size_t memberships(const struct cgroup *c)
{
	char line[1024];
	const char *name = strrchr(c->path[0], '/') + 1;
	size_t n = 0, len = strlen(name);
	FILE *f = fopen("/proc/self/cgroup", "re");

	CHILD_CHECK(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		size_t end = strcspn(line, "\n");

		n += end > len && line[end - len - 1] == '/' &&
		     strncmp(line + end - len, name, len) == 0;
	}
	(void)fclose(f);
	return n;
}

static void move_in(void)
{
	CHILD_CHECK(memberships(&cell) == 0);
	CHILD_CHECK(cgroup_enter_self(&enter) == 0);
	CHILD_CHECK(memberships(&cell) == enter.n);
	CHILD_CHECK(cgroup_enter_self(&enter) == 0); /* it is there already: no error */
	pid_t pid = fork();                          /* and what it forks is where it is */

	if (pid == 0)
		_exit(memberships(&cell) == enter.n ? 0 : 1);
	CHILD_CHECK(child_wait(pid) == 0);
}

static void move(void *arg)
{
	(void)arg;
	move_in();
}

TEST(move)
{
	need_site();
	assert_int_equal(cgroup_enter_open(&cell, &enter, &err), 0);
	child_run(move, NULL);
	cgroup_enter_close(&enter);
}

/* Whether the holder of the descriptors can put process @pid into the cell. */
static bool can_move(pid_t pid)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", (int)pid);

	for (size_t i = 0; i < enter.n; i++)
		if (write(enter.fd[i], text, (size_t)n) == n)
			return true;
	return false;
}

/* As a zygote that was taken over: its own process it can move, root's it cannot. */
static void move_as_zygote(void *arg)
{
	const pid_t *roots = arg;

	child_become_nobody();
	CHILD_CHECK(!can_move(*roots) && errno == EACCES);
	CHILD_CHECK(!can_move(getppid()));
	move_in();
}

/* The same descriptors, opened as root, would let it: that is why they are not. */
static void move_as_root(void *arg)
{
	const pid_t *roots = arg;

	child_become_nobody();
	CHILD_CHECK(can_move(*roots));
}

TEST(no_more_than_its_own)
{
	int ends[2];

	need_site();
	if (geteuid() != 0 || cell.kind == CGROUP_V2) {
		printf("# skipped: needs root and v1 cgroups\n");
		skip();
	}
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t roots = fork();

	if (roots == 0) {
		char byte;

		(void)close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		_exit(0);
	}
	assert_int_equal(cgroup_join_open(&cell, CHILD_NOBODY, &enter, &err), 0);
	child_run(move_as_zygote, &roots);
	cgroup_enter_close(&enter);
	assert_int_equal(cgroup_enter_open(&cell, &enter, &err), 0);
	child_run(move_as_root, &roots);
	cgroup_enter_close(&enter);
	fd_close(ends[0]);
	fd_close(ends[1]);
	assert_int_equal(child_wait(roots), 0);
}

/* A cell of a machine with nothing but v2, made of the bare tree of this one where it is hybrid. */
static bool only_unified(struct cgroup *ret)
{
	int dir = cell.dir_of[CGROUP_UNIFIED];

	if (dir < 0)
		return false;
	*ret = (struct cgroup){ .kind = CGROUP_V2, .n_dirs = 1, .oom_fd = -1 };
	memcpy(ret->path[0], cell.path[dir], sizeof(ret->path[0]));
	ret->dirfd[0] = cell.dirfd[dir];
	memset(ret->dir_of, 0, sizeof(ret->dir_of));
	ret->dir_of[CGROUP_CPUACCT] = -1;
	return true;
}

/* Nobody holds a descriptor of a v2 tree: the warden moves its child itself. */
static void moved(void *arg)
{
	const struct cgroup *v2 = arg;
	int go[2];
	char byte = 0;

	CHILD_CHECK(pipe2(go, O_CLOEXEC) == 0);
	pid_t pid = fork();

	if (pid == 0) {
		(void)!read(go[0], &byte, 1);
		_exit(memberships(v2) == 1 ? 0 : 1);
	}
	CHILD_CHECK(cgroup_move(v2, pid, NULL) == 0);
	CHILD_CHECK(write(go[1], "g", 1) == 1 && child_wait(pid) == 0);
	CHILD_CHECK(cgroup_move(v2, pid, NULL) == -ESRCH);
	CHILD_CHECK(memberships(v2) == 0);
}

TEST(v2)
{
	struct cgroup v2;

	need_site();
	if (!only_unified(&v2)) {
		printf("# skipped: no v2 tree here\n");
		skip();
	}
	memset(&enter, 0xa5, sizeof(enter));
	assert_int_equal(cgroup_enter_open(&v2, &enter, &err), 0);
	assert_int_equal(enter.n, 0); /* cloned straight into it */
	memset(&enter, 0xa5, sizeof(enter));
	assert_int_equal(cgroup_join_open(&v2, geteuid() == 0 ? CHILD_NOBODY : 0, &enter, &err), 0);
	assert_int_equal(enter.n, 0);
	child_run(moved, &v2);
}

/* A directory that is gone, and invalid descriptors: reported, and nothing stays open. */
TEST(open_failures)
{
	struct cgroup broken;
	int held = open_fds();

	need_site();
	for (size_t i = 0; i < cell.n_dirs; i++) {
		broken = cell;
		broken.dirfd[i] = -1;
		err = (struct err){ 0 };
		if (is_unified(i)) { /* not needed to enter, nor to join */
			assert_int_equal(cgroup_join_open(&broken, 0, &enter, &err), 0);
			cgroup_enter_close(&enter);
			continue;
		}
		assert_int_equal(cgroup_enter_open(&broken, &enter, &err), -EBADF);
		assert_int_equal(cgroup_join_open(&broken, 0, &enter, &err), -EBADF);
		assert_true(err.msg[0]);
		assert_int_equal(enter.n, 0);
		assert_int_equal(open_fds(), held);
	}
	if (!only_unified(&broken))
		return;
	_fd_ int elsewhere = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	broken.dirfd[0] = elsewhere;
	err = (struct err){ 0 };
	assert_int_equal(cgroup_move(&broken, getpid(), &err), -ENOENT);
	assert_non_null(strstr(err.msg, "cgroup"));
	assert_int_equal(open_fds(), held + 1);
}

/* A file that cannot be written to is an error, not a membership. */
TEST(enter_failures)
{
	_fd_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_fd_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	enter = (struct cgroup_enter){ .n = 0 };
	assert_int_equal(cgroup_enter_self(&enter), 0);
	enter = (struct cgroup_enter){ .n = 1, .fd = { null } };
	assert_int_equal(cgroup_enter_self(&enter), -EBADF);
	enter.fd[0] = full;
	assert_int_equal(cgroup_enter_self(&enter), -ENOSPC);
	enter = (struct cgroup_enter){ .n = 2, .fd = { -1, full } };
	assert_int_equal(cgroup_enter_self(&enter), -EBADF);
}

/* A cell that is over cannot be entered any more, though its files are still open. */
static void late(void *arg)
{
	(void)arg;
	CHILD_CHECK(cgroup_enter_self(&enter) == -ENODEV);
}

TEST(too_late)
{
	need_site();
	if (cell.kind == CGROUP_V2) {
		printf("# skipped: on v2 nobody holds files of a cell\n");
		skip();
	}
	assert_int_equal(cgroup_enter_open(&cell, &enter, &err), 0);
	assert_int_equal(cgroup_remove(&cell, REMOVE_MS, &err), 0);
	child_run(late, NULL);
	cgroup_enter_close(&enter);
}
