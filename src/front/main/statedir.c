/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statedir.c - Open the state directory, with whatever is in it.
 *
 * Theory of operation. A front wrote the store, and an attacker may have taken that front over. So
 * no process with rights parses it: a child enters the jail and reads the store from end to end,
 * and the parent gets one number and a line of text from it. If the child reports that the store is
 * damaged, or dies of reading it, the parent renames the files and makes new ones. An error that
 * says nothing about the data (a disk that fails, no memory) stops the start instead: good data
 * must not be put aside.
 */
#include "front/main/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "front/support/jail.h"
#include "front/support/log.h"

#define CHECK_SECONDS 600
#define LOST_REASON "the daemon was restarted"

/* ---- directories --------------------------------------------------------------------------- */

static int open_top(const char *path, struct err *e)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "--state: make %s", path);
	_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "--state: open %s", path);
	/* In /tmp another user may have made it first. */
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 022)
		return err_say(e, -EPERM,
			       "--state: %s must belong to uid %u and be writable by no other user",
			       path, (unsigned)geteuid());
	return TAKE_FD(fd);
}

/* A directory in it, for @uid alone. */
static int open_part(int top, const char *path, const char *name, uid_t uid, gid_t gid,
		     struct err *e)
{
	struct stat st;

	if (mkdirat(top, name, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "--state: make %s/%s", path, name);
	_fd_ int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "--state: open %s/%s", path, name);
	if ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0)
		return err_set(e, -errno, "--state: give %s/%s to uid %u", path, name,
			       (unsigned)uid);
	if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
		return err_set(e, -errno, "--state: close %s/%s to others", path, name);
	return TAKE_FD(fd);
}

/* ---- the store ----------------------------------------------------------------------------- */

/* In the child. The result is in @e. */
static void check_in_jail(const struct store_files *f, struct err *e)
{
	struct jail_report ignored;

	(void)alarm(CHECK_SECONDS);
	if (jail_enter(-1, &ignored, e) == 0)
		(void)store_check(f, e);
}

/* The child ended without a result. A fault of its own comes from the content of the store. */
static int judge_end(int status, struct err *e)
{
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	switch (sig) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGABRT:
		return err_say(e, -EUCLEAN, "reading it ended with SIG%s", sigabbrev_np(sig));
	case SIGALRM:
		return err_say(e, -ETIMEDOUT, "reading it took more than %d s", CHECK_SECONDS);
	default:
		return err_say(e, -EIO, "the process that reads it was ended (status %d)", status);
	}
}

static int check_store(const struct store_files *f, struct err *e)
{
	struct err found = { 0 };
	int fds[2], status = 0;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a pipe");
	_fd_ int in = fds[0], out = fds[1];
	pid_t pid = fork();

	if (pid == 0) {
		check_in_jail(f, &found);
		_exit(fd_write_all(out, &found, sizeof(found)) < 0);
	}
	if (pid < 0)
		return err_set(e, -errno, "fork");
	out = fd_close(out);

	ssize_t n;

	while ((n = read(in, &found, sizeof(found))) < 0 && errno == EINTR)
		;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(found) || status != 0)
		return judge_end(status, e);
	found.msg[sizeof(found.msg) - 1] = '\0';
	return found.code ? err_say(e, found.code, "%s", found.msg) : 0;
}

static int open_checked(int dirfd, struct store_files *ret, struct err *e)
{
	int r = store_files_open(dirfd, ret, e);

	if (r == 0 && (r = check_store(ret, e)) < 0)
		store_files_close(ret);
	return r;
}

static int open_store(int dirfd, const char *path, struct store_files *ret, struct err *e)
{
	struct store_report report = { 0 };
	struct err why = { 0 };
	int r = open_checked(dirfd, ret, &why);

	if (r == -EUCLEAN) {
		if (store_files_aside(dirfd, &report, e) < 0)
			return err_wrap(e, "--state: %s/store (%s)", path, why.msg);
		log_event(LOG_LEVEL_WARNING, "store_quarantined", F_STR("why", why.msg),
			  F_STR("file", report.aside), F_STR("directory", path));
		r = open_checked(dirfd, ret, &why);
	}
	return r < 0 ? err_say(e, r, "--state: %s/store: %s", path, why.msg) : 0;
}

int statedir_open(const char *path, int lock, pid_t pid, struct statedir *ret, struct err *e)
{
	uid_t uid;
	gid_t gid;
	_fd_ int top = open_top(path, e);

	*ret = (struct statedir){ -1, -1, -1, { -1, -1 } };
	if (top < 0 || (ret->lock = store_lock(top, path, lock, pid, e)) < 0 ||
	    jail_identity(&uid, &gid, e) < 0)
		return e->code;
	ret->ledger = open_part(top, path, "ledger", uid, gid, e);
	if (ret->ledger < 0)
		return ret->ledger;
	ret->spool = open_part(top, path, "spool", geteuid(), getegid(), e);
	if (ret->spool < 0)
		return ret->spool;
	_fd_ int store = open_part(top, path, "store", geteuid(), getegid(), e);

	return store < 0 ? store : open_store(store, path, &ret->files, e);
}

int statedir_load(struct statedir *d, const char *const *kept, size_t n, struct store **ret,
		  struct err *e)
{
	struct timespec now;
	int64_t lost;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (store_open(&d->files, ret, e) < 0)
		return err_wrap(e, "--state");
	lost = store_mark_lost(*ret, LOST_REASON, kept, n, e);
	if (lost < 0 || store_forget_old(*ret, (int64_t)now.tv_sec * 1000, e) < 0)
		return err_wrap(e, "--state");
	if (lost > 0)
		log_event(LOG_LEVEL_WARNING, "sandboxes_lost", F_INT("sandboxes", lost),
			  F_STR("why", LOST_REASON));
	return 0;
}
