/* SPDX-License-Identifier: Apache-2.0 */
/* test_idmap.c - Which host ids stand behind a cell's: no two cells share one, maps are exact. */
#include "base/err.h"
#include "base/fd.h"
#include "cell/idmap.h"
#include "cell/spec.h"
#include "wire/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"

static struct err err;

TEST(ranges_do_not_meet)
{
	uint64_t end = IDMAP_BASE;

	for (uint32_t slot = 0; slot < WARDEN_CELLS_MAX; slot++) {
		struct idmap m;

		memset(&m, 0xa5, sizeof(m));
		idmap_choose(slot, &m);
		assert_int_equal(m.ranged, geteuid() == 0);
		assert_int_equal(m.caller_uid, geteuid());
		assert_int_equal(m.caller_gid, getegid());
		assert_int_equal(m.base, end);
		end = (uint64_t)m.base + IDMAP_COUNT;
		/* The users agent and nobody have ids of the range, too. */
		assert_true(CELL_UID < IDMAP_COUNT && CELL_GID < IDMAP_COUNT);
	}
	/* Ids with the top bit set are taken for negative by some programs. */
	assert_true(end <= UINT64_C(1) << 31);
}

/* A process in a user namespace of its own, which does nothing. */
static pid_t start_in_userns(void)
{
	int ready[2];
	char ch = 0;

	CHILD_CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid_t pid = fork();

	CHILD_CHECK(pid >= 0);
	if (pid == 0) {
		(void)alarm(CHILD_DEADLINE_S);
		ch = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
		(void)!write(ready[1], &ch, 1);
		for (;;)
			(void)pause();
	}
	CHILD_CHECK(read(ready[0], &ch, 1) == 1);
	fd_close(ready[0]);
	fd_close(ready[1]);
	if (ch != 'y') {
		(void)kill(pid, SIGKILL);
		CHILD_SKIP("no user namespaces here");
	}
	return pid;
}

/* The numbers of a map file: one line of three, nothing more. */
static void check_map(pid_t pid, const char *name, unsigned int in, unsigned int out,
		      unsigned int count)
{
	char path[64], text[256], want[64], got[64];
	unsigned int v[3];
	int used = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	CHILD_CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0);
	CHILD_CHECK(sscanf(text, "%u %u %u %n", &v[0], &v[1], &v[2], &used) == 3);
	CHILD_CHECK(text[used] == '\0');
	(void)snprintf(want, sizeof(want), "%u %u %u", in, out, count);
	(void)snprintf(got, sizeof(got), "%u %u %u", v[0], v[1], v[2]);
	CHILD_CHECK(strcmp(want, got) == 0);
}

ROOT_TEST(write_ranged, "a range of ids")
{
	struct idmap m;
	pid_t pid = start_in_userns();

	idmap_choose(4095, &m);
	CHILD_CHECK(idmap_write(&m, pid, &err) == 0);
	check_map(pid, "uid_map", 0, 0x7fff0000u, 65536);
	check_map(pid, "gid_map", 0, 0x7fff0000u, 65536);
	/* The kernel takes a map once. */
	CHILD_CHECK(idmap_write(&m, pid, &err) == -EPERM);
	CHILD_CHECK(strstr(err.msg, "uid_map") != NULL);
	(void)kill(pid, SIGKILL);
	CHILD_CHECK(waitpid(pid, NULL, 0) == pid);
}

CHILD_TEST(write_single)
{
	struct idmap m;
	char path[64], text[16];

	child_become_nobody();
	pid_t pid = start_in_userns();

	idmap_choose(7, &m);
	CHILD_CHECK(!m.ranged);
	CHILD_CHECK(idmap_write(&m, pid, &err) == 0);
	/* Outer ids are shown as the reader sees them: its own. */
	check_map(pid, "uid_map", CELL_UID, (unsigned int)geteuid(), 1);
	check_map(pid, "gid_map", CELL_GID, (unsigned int)getegid(), 1);
	(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)pid);
	CHILD_CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0);
	CHILD_CHECK(strcmp(text, "deny\n") == 0);
	(void)kill(pid, SIGKILL);
	CHILD_CHECK(waitpid(pid, NULL, 0) == pid);
}

/* The Linux kernel refuses a range to a caller without the right to it; nothing is mapped. */
CHILD_TEST(write_forbidden)
{
	struct idmap m = { .ranged = true, .base = IDMAP_BASE };
	char path[64], text[64];

	child_become_nobody();
	pid_t pid = start_in_userns();

	CHILD_CHECK(idmap_write(&m, pid, &err) == -EPERM);
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	CHILD_CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) == 0);
	(void)kill(pid, SIGKILL);
	CHILD_CHECK(waitpid(pid, NULL, 0) == pid);
}

static void gone_at_once(void *arg)
{
	(void)arg;
}

TEST(write_to_a_process_that_is_gone)
{
	pid_t pid = child_start(gone_at_once, NULL);
	struct idmap m;

	idmap_choose(0, &m);
	assert_int_equal(child_wait(pid), 0);
	assert_int_equal(idmap_write(&m, pid, &err), -ENOENT);
	assert_true(err.msg[0]);
}

static void userns(void *arg)
{
	int before = open_fds();

	(void)arg;
	_fd_ int fd = idmap_userns(0, 0, IDMAP_BASE, IDMAP_COUNT, &err);

	CHILD_CHECK(fd >= 0);
	CHILD_CHECK(ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWUSER);
	CHILD_CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHILD_CHECK(open_fds() == before + 1);
	/* The process that lent it is gone, and the namespace lives on: it can be entered. */
	CHILD_CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	CHILD_CHECK(setns(fd, CLONE_NEWUSER) == 0);
	check_map(getpid(), "uid_map", 0, IDMAP_BASE, IDMAP_COUNT);
	check_map(getpid(), "gid_map", 0, IDMAP_BASE, IDMAP_COUNT);
}

static void userns_refused(void *arg)
{
	int before = open_fds();

	(void)arg;
	CHILD_CHECK(idmap_userns(0, 0, IDMAP_BASE, 0, &err) == -EINVAL);
	CHILD_CHECK(err.code == -EINVAL && err.msg[0]);
	CHILD_CHECK(idmap_userns(UINT32_MAX - 1, UINT32_MAX - 1, 0, 2, &err) < 0);
	CHILD_CHECK(open_fds() == before);
	CHILD_CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

TEST(userns)
{
	need_root("a range of ids");
	child_run(userns, NULL);
	child_run(userns_refused, NULL);
}
