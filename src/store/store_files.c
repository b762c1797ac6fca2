/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_files.c - The store's files from outside: the lock, opening, moving damaged files aside.
 *
 * Nothing here reads the content of a file. This code has the rights of the daemon's starter, and
 * the content was written by a process that a stranger may have taken over.
 */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

/* Where SQLite's other users take their locks: PENDING_BYTE, RESERVED_BYTE and the shared range. */
#define SQLITE_LOCKS_AT 0x40000000
#define SQLITE_LOCKS_LEN 512
#define ENDING_MS 10000u
#define ENDING_STEP_MS 20u

/* All that SQLite ever puts beside a database. We make the first two only. */
static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };

/* ---- one daemon ---------------------------------------------------------------------------- */

static long holder(int fd)
{
	char text[24] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	return n > 0 ? strtol(text, NULL, 10) : 0;
}

static int held_by_other(int fd, const char *where, struct err *e)
{
	long pid = holder(fd);

	if (pid <= 0)
		return err_say(e, -EBUSY,
			       "another caisson serve has the state directory %s; stop it, or "
			       "choose another one with --state",
			       where);
	return err_say(e, -EBUSY,
		       "another caisson serve, pid %ld, has the state directory %s; stop it, or "
		       "choose another one with --state",
		       pid, where);
}

/* The lock is the open file's: one that was handed on is still locked, if it is the same file. */
static bool is_same(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* A daemon that was killed a moment ago: the rest of it is about to end, and then lets go. */
static bool is_ending(int fd)
{
	long pid = holder(fd);

	return pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static int lock_it(int fd)
{
	unsigned int waited_ms = 0;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int code = -errno;

		if (code != -EWOULDBLOCK || waited_ms >= ENDING_MS || !is_ending(fd))
			return code;
		(void)usleep(ENDING_STEP_MS * 1000);
		waited_ms += ENDING_STEP_MS;
	}
	return 0;
}

int store_lock(int dirfd, const char *where, int kept, pid_t pid, struct err *e)
{
	char text[24];
	_fd_ int old = kept;
	_fd_ int fd =
		openat(dirfd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(e, -errno, "state directory %s: open its lock", where);
	if (old >= 0 && is_same(old, fd)) {
		fd_close(fd);
		fd = TAKE_FD(old);
	}
	int r = lock_it(fd);

	if (r < 0)
		return r == -EWOULDBLOCK ? held_by_other(fd, where, e) :
					   err_set(e, r, "state directory %s: lock it", where);
	int n = snprintf(text, sizeof(text), "%ld\n", (long)pid);

	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return err_set(e, errno ? -errno : -ENOSPC, "state directory %s: write its lock",
			       where);
	return TAKE_FD(fd);
}

/* ---- the files ----------------------------------------------------------------------------- */

static void name_of(char out[32], size_t i)
{
	(void)snprintf(out, 32, STORE_FILE "%s", suffixes[i]);
}

/* A link, a directory or a pipe in the place of a file of ours is not opened at all. */
static int look(int dirfd, struct err *e)
{
	struct stat st;
	char name[32];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		name_of(name, i);
		if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno != ENOENT)
				return err_set(e, -errno, "look at %s", name);
		} else if (!S_ISREG(st.st_mode)) {
			return err_say(e, -EUCLEAN, "%s is not a regular file", name);
		} else if (i == 0 && st.st_size == 0) {
			/* SQLite would take it for a new one, and drop the log beside it. */
			return err_say(e, -EUCLEAN, "it is empty");
		} else if (i == 3) {
			/* Ours has none; to play it back would be to run somebody else's changes.
			 */
			return err_say(e, -EUCLEAN, "%s was not made by caisson", name);
		}
	}
	return 0;
}

static int open_one(int dirfd, size_t i, struct err *e)
{
	char name[32];

	name_of(name, i);
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	return fd < 0 ? err_set(e, -errno, "open %s", name) : fd;
}

int store_files_open(int dirfd, struct store_files *ret, struct err *e)
{
	struct flock lock = { .l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = SQLITE_LOCKS_AT,
			      .l_len = SQLITE_LOCKS_LEN };
	int r = look(dirfd, e);

	*ret = (struct store_files){ -1, -1 };
	if (r < 0)
		return r;
	_fd_ int db = open_one(dirfd, 0, e);

	if (db < 0)
		return db;
	/* Of the open file, not of the process: so it stays when a child closes its copy. */
	if (fcntl(db, F_OFD_SETLK, &lock) < 0)
		return errno == EAGAIN || errno == EACCES ?
			       err_say(e, -EBUSY,
				       STORE_FILE " is open in another program; close that") :
			       err_set(e, -errno, "lock " STORE_FILE);
	_fd_ int wal = open_one(dirfd, 1, e);

	if (wal < 0)
		return wal;
	/* The names must survive as long as what will be written. */
	if (fsync(dirfd) < 0)
		return err_set(e, -errno, "sync the store's directory");
	*ret = (struct store_files){ .db = TAKE_FD(db), .wal = TAKE_FD(wal) };
	return 0;
}

void store_files_close(struct store_files *f)
{
	f->db = fd_close(f->db);
	f->wal = fd_close(f->wal);
}

/* The log first: a database without its log is old, a log without its database is nothing. */
int store_files_aside(int dirfd, struct store_report *ret, struct err *e)
{
	char name[32], to[96];
	struct stat st;
	long long now = (long long)time(NULL);

	do /* two within one second */
		(void)snprintf(ret->aside, sizeof(ret->aside), STORE_FILE ".corrupt-%lld", now++);
	while (fstatat(dirfd, ret->aside, &st, AT_SYMLINK_NOFOLLOW) == 0);
	for (size_t i = ARRAY_SIZE(suffixes); i-- > 0;) {
		name_of(name, i);
		(void)snprintf(to, sizeof(to), "%s%s", ret->aside, suffixes[i]);
		if (renameat2(dirfd, name, dirfd, to, RENAME_NOREPLACE) < 0 && errno != ENOENT)
			return err_set(e, -errno, "put the damaged %s aside", name);
	}
	if (fsync(dirfd) < 0)
		return err_set(e, -errno, "sync the store's directory");
	return 0;
}
