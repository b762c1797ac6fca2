/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jail_user.c - The user of a process in the jail, and its state in /proc, seen from outside.
 */
#include "base/fd.h"
#include "cell/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "jail_kit.h"

#define JAIL_ID 0x6ffffffeu

struct pipes {
	int up[2], down[2];
};

static void report_and_wait(void *arg)
{
	struct pipes *p = arg;
	char ch;

	fd_close(p->down[1]);
	struct jail_report r = enter_jail();

	CHILD_CHECK(fd_write_all(p->up[1], &r, sizeof(r)) == 0);
	(void)!read(p->down[0], &ch, 1);
}

static const char *field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	CHILD_CHECK(at != NULL);
	return at + strlen(key);
}

static void check_ids(const char *line, unsigned int want)
{
	unsigned int id[4];

	CHILD_CHECK(sscanf(line, "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4);
	for (int i = 0; i < 4; i++)
		CHILD_CHECK(id[i] == want);
}

static void check_status(const char *text, const struct jail_report *r, bool root)
{
	static const char *const sets[] = { "\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapAmb:" };

	check_ids(field(text, "\nUid:"), r->uid);
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		CHILD_CHECK(strtoull(field(text, sets[i]), NULL, 16) == 0);
	if (root) {
		CHILD_CHECK(strtoull(field(text, "\nCapBnd:"), NULL, 16) == 0);
		CHILD_CHECK(strspn(field(text, "\nGroups:"), " \t") ==
			    strcspn(field(text, "\nGroups:"), "\n"));
	}
	CHILD_CHECK(strtoul(field(text, "\nNoNewPrivs:"), NULL, 10) == 1);
	CHILD_CHECK(strtoul(field(text, "\nSeccomp:"), NULL, 10) >= (r->seccomp ? 2u : 0u));
}

static void facts(void *arg)
{
	struct pipes p;
	struct jail_report r;
	char path[64], text[8192];
	struct stat st;
	bool root;

	if (arg)
		child_become_nobody();
	root = geteuid() == 0;
	if (root)
		CHILD_CHECK(setgroups(2, (const gid_t[]){ 4, 27 }) == 0);
	CHILD_CHECK(pipe2(p.up, O_CLOEXEC) == 0 && pipe2(p.down, O_CLOEXEC) == 0);
	pid_t pid = child_start(report_and_wait, &p);

	fd_close(p.up[1]);
	CHILD_CHECK(read(p.up[0], &r, sizeof(r)) == (ssize_t)sizeof(r));
	CHILD_CHECK(r.user == root && r.caps && r.no_new_privs);
	CHILD_CHECK(r.landlock == (r.landlock_abi > 0));
#ifndef CAISSON_SANITIZED
	CHILD_CHECK(r.landlock_abi == (unsigned int)landlock_abi());
#endif
	CHILD_CHECK(root ? r.uid != 0 : r.uid == geteuid());

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	CHILD_CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0);
	check_status(text, &r, root);
	(void)snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	CHILD_CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0);
	CHILD_CHECK(strtoul(field(text, "Max core file size"), NULL, 10) == 0);
#ifndef CAISSON_SANITIZED
	/* Not dumpable: what /proc has of it is root's. */
	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	CHILD_CHECK(stat(path, &st) == 0 && st.st_uid == 0);
#else
	(void)st;
#endif
	fd_close(p.down[1]);
	CHILD_CHECK(child_wait(pid) == 0);
}

TEST(facts_root)
{
	need_root("the jail of a daemon that root started");
	child_run(facts, NULL);
}

TEST(facts_user)
{
	child_run(facts, "nobody");
}

/* ---- which user ------------------------------------------------------------------------------ */

/* An /etc of one's own, with this as its list of users. */
static void private_etc(const char *passwd)
{
	if (unshare(CLONE_NEWNS) < 0)
		CHILD_SKIP("no mount namespace here");
	CHILD_CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHILD_CHECK(mount("none", "/etc", "tmpfs", 0, NULL) == 0);
	_fd_ int fd = open("/etc/passwd", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHILD_CHECK(fd >= 0 && fd_write_all(fd, passwd, strlen(passwd)) == 0);
}

ROOT_TEST(no_such_user, "another /etc")
{
	private_etc("root:x:0:0::/root:/bin/sh\n");
	struct jail_report r = enter_jail();

	CHILD_CHECK(r.user && r.uid == JAIL_ID);
	CHILD_CHECK(getuid() == JAIL_ID && getegid() == JAIL_ID);
}

ROOT_TEST(own_user, "another /etc")
{
	private_etc("root:x:0:0::/root:/bin/sh\ncaisson:x:4242:4243::/:/bin/false\n");
	struct jail_report r = enter_jail();

	CHILD_CHECK(r.user && r.uid == 4242);
	CHILD_CHECK(getuid() == 4242 && getegid() == 4243);
}

/* A mistake in /etc/passwd does not make a front that runs as root. */
ROOT_TEST(user_is_root, "another /etc")
{
	struct jail_report r = { 0 };
	struct err e = { 0 };

	private_etc("caisson:x:0:0::/:/bin/false\n");
	CHILD_CHECK(jail_enter(-1, &r, &e) == -EINVAL);
	CHILD_CHECK(strstr(e.msg, "'caisson' has uid 0") != NULL);
	CHILD_CHECK(!r.user && !r.caps && r.uid == 0);
}

/* Root of a user namespace that has no other id. */
ROOT_TEST(no_such_id, "another /etc")
{
	struct jail_report r;
	struct err e = { 0 };

	private_etc("root:x:0:0::/root:/bin/sh\n");
	if (unshare(CLONE_NEWUSER) < 0)
		CHILD_SKIP("no user namespace here");
	CHILD_CHECK(fd_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") == 0);
	CHILD_CHECK(fd_write_file(AT_FDCWD, "/proc/self/uid_map", "0 0 1") == 0);
	CHILD_CHECK(fd_write_file(AT_FDCWD, "/proc/self/gid_map", "0 0 1") == 0);
	CHILD_CHECK(jail_enter(-1, &r, &e) < 0);
	CHILD_CHECK(strstr(e.msg, "make a user 'caisson'") != NULL);
}

static void *wait_for_byte(void *arg)
{
	char ch;

	(void)!read(*(int *)arg, &ch, 1);
	return NULL;
}

/* A thread that runs would stay outside; nothing is done then. */
CHILD_TEST(two_threads)
{
	struct jail_report r;
	struct err e = { 0 };
	uid_t before = geteuid();
	pthread_t thread;
	int gate[2];

	CHILD_CHECK(pipe2(gate, O_CLOEXEC) == 0);
	CHILD_CHECK(pthread_create(&thread, NULL, wait_for_byte, &gate[0]) == 0);
	CHILD_CHECK(jail_enter(-1, &r, &e) == -EBUSY);
	CHILD_CHECK(strstr(e.msg, "2 threads") != NULL);
	CHILD_CHECK(geteuid() == before && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
}
