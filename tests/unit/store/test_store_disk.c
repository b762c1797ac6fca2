/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_disk.c - A disk that is full, read-only or failing, and another process at the same
 * files: a clear error, nothing incomplete, and everything works when the cause is gone.
 */
#include "store_kit.h"

#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "../child.h"

struct unit_fixture unit_fixture = { kit_setup, kit_teardown };

/* The C library's own, as the store calls it; each test chooses the calls that fail. */
static int write_errno;

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
	if (write_errno) {
		errno = write_errno;
		return -1;
	}
	return (ssize_t)syscall(SYS_pwrite64, fd, data, len, at);
}

static void put(struct store *s, const char *id, int want)
{
	struct store_sandbox b = kit_sandbox(id, "alice", id);

	assert_int_equal(store_sandbox_put(s, &b, &err), want);
}

/* ---- writes that fail ---------------------------------------------------------------------- */

static void check_failing(int errno_, const char *says)
{
	struct store *s = kit_open();
	struct store_key k = { .owner = "o", .key = "k", .route = "r", .body = "x", .body_len = 1 };

	put(s, "before", 0);
	write_errno = errno_;
	for (int i = 0; i < 3; i++) {
		put(s, "during", -errno_);
		assert_non_null(strstr(err.msg, says));
		assert_int_equal(store_key_put(s, &k, &err), -errno_);
		assert_int_equal(store_sandbox_del(s, "before", &err), -errno_);
		assert_int_equal(store_mark_lost(s, "x", NULL, 0, &err), -errno_);
		assert_int_equal(kit_count(s), 1); /* it can still be read */
	}
	write_errno = 0;
	assert_int_equal(kit_count(s), 1);
	put(s, "after", 0);
	assert_int_equal(kit_count(s), 2);
	store_close(s);
	s = kit_open();
	assert_int_equal(kit_count(s), 2);
	store_close(s);
}

TEST(read_only)
{
	check_failing(EROFS, "read-only");
}

TEST(full)
{
	check_failing(ENOSPC, "full");
}

TEST(quota)
{
	check_failing(EDQUOT, "full");
}

TEST(failing)
{
	check_failing(EIO, "fails");
}

/* Neither does a store that could not even be begun. */
TEST(full_from_the_start)
{
	struct store_files f;
	struct store *s;

	write_errno = ENOSPC;
	assert_int_equal(store_files_open(dir, &f, &err), 0);
	assert_int_equal(store_check(&f, &err), -ENOSPC);
	assert_int_equal(store_open(&f, &s, &err), -ENOSPC);
	assert_true(f.db == -1 && f.wal == -1);
	write_errno = 0;
}

/* ---- a real file system that is full ------------------------------------------------------- */

static void small_disk(const char *flags)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0)
		CHILD_SKIP("no mount namespace here");
	if (uid) {
		(void)snprintf(map, sizeof(map), "0 %u 1", uid);
		(void)fd_write_file(AT_FDCWD, "/proc/self/uid_map", map);
		(void)fd_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
		(void)snprintf(map, sizeof(map), "0 %u 1", gid);
		(void)fd_write_file(AT_FDCWD, "/proc/self/gid_map", map);
	}
	CHILD_CHECK(mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0);
	CHILD_CHECK(mount("none", top, "tmpfs", 0, flags) == 0);
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHILD_CHECK(dir >= 0);
}

static struct store *child_open(void)
{
	struct store_files f;
	struct store *s;

	CHILD_CHECK(store_files_open(dir, &f, &err) == 0);
	CHILD_CHECK(store_check(&f, &err) == 0 && store_open(&f, &s, &err) == 0);
	return s;
}

/* Take all that is left of the disk. */
static void fill(void)
{
	static char page[4096];
	_fd_ int fd = openat(dir, "ballast", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	while (write(fd, page, sizeof(page)) > 0)
		;
	CHILD_CHECK(errno == ENOSPC);
}

static int put_many(struct store *s, int n)
{
	char id[16];

	for (int i = 0; i < n; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		struct store_sandbox b = kit_sandbox(id, "alice", id);
		int r = store_sandbox_put(s, &b, &err);

		if (r < 0)
			return r;
	}
	return 0;
}

CHILD_TEST(full_tmpfs)
{
	small_disk("size=8m");
	struct store *s = child_open();
	int n = 0;

	fill();
	CHILD_CHECK(put_many(s, 5000) == -ENOSPC);
	CHILD_CHECK(strstr(err.msg, "free some space") != NULL);
	CHILD_CHECK(store_sandbox_each(s, kit_count_one, &n, &err) == 0);
	CHILD_CHECK(put_many(s, 5000) == -ENOSPC);
	CHILD_CHECK(unlinkat(dir, "ballast", 0) == 0);
	CHILD_CHECK(put_many(s, 300) == 0);
	store_close(s);
	s = child_open();
	n = 0;
	CHILD_CHECK(store_sandbox_each(s, kit_count_one, &n, &err) == 0 && n >= 300);
	store_close(s);
}

CHILD_TEST(read_only_tmpfs)
{
	struct store_files f;

	small_disk("size=1m");
	store_close(child_open());
	CHILD_CHECK(mount("none", top, "none", MS_REMOUNT | MS_RDONLY, NULL) == 0);
	CHILD_CHECK(store_files_open(dir, &f, &err) == -EROFS);
	CHILD_CHECK(f.db == -1 && f.wal == -1);
	CHILD_CHECK(store_lock(dir, "/some/where", -1, getpid(), &err) == -EROFS);
	CHILD_CHECK(strstr(err.msg, "/some/where") != NULL);
}

/* ---- another process ----------------------------------------------------------------------- */

TEST(lock)
{
	char text[32] = "", want[32];

	int fd = store_lock(dir, "/var/lib/x", -1, getpid(), &err);

	assert_true(fd >= 0);
	assert_true(fd_read_file(dir, "lock", text, sizeof(text)) > 0);
	(void)snprintf(want, sizeof(want), "%d\n", (int)getpid());
	assert_string_equal(text, want);
	assert_int_equal(store_lock(dir, "/var/lib/x", -1, getpid(), &err), -EBUSY);
	(void)snprintf(want, sizeof(want), "pid %d,", (int)getpid());
	assert_non_null(strstr(err.msg, want));
	assert_non_null(strstr(err.msg, "/var/lib/x"));
	assert_null(strchr(err.msg, '\n'));
	fd_close(fd);
	fd = store_lock(dir, "/var/lib/x", -1, getpid(), &err);
	assert_true(fd >= 0);
	fd_close(fd);
}

static void lock_and_die(void *arg)
{
	(void)arg;
	CHILD_CHECK(store_lock(dir, "x", -1, getpid(), &err) >= 0);
	(void)raise(SIGKILL);
}

TEST(lock_ends_with_its_holder)
{
	assert_int_equal(WTERMSIG(child_wait(child_start(lock_and_die, NULL))), SIGKILL);
	_fd_ int fd = store_lock(dir, "x", -1, getpid(), &err);

	assert_true(fd >= 0);
}

/* The sqlite3 command finds the store locked, and we find it in use while that is at it. */
TEST(other_program)
{
	struct store *s = kit_open();
	struct store_files f;
	char path[96];
	sqlite3 *db;

	(void)snprintf(path, sizeof(path), "%s/" STORE_FILE, top);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT * FROM sandbox", NULL, NULL, NULL), SQLITE_BUSY);
	assert_int_equal(sqlite3_exec(db, "DELETE FROM sandbox", NULL, NULL, NULL), SQLITE_BUSY);
	assert_int_equal(store_files_open(dir, &f, &err), -EBUSY);
	store_close(s);
	assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(store_files_open(dir, &f, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "another program"));
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	store_close(kit_open());
}
