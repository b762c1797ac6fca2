/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_remove.c - Kill what is in a cgroup and remove it, from a handle or from a path alone.
 *
 * Theory of operation: cgroup.kill (v2, also the bare tree of a hybrid machine) reaches every
 * process at once, forks in flight included. Without it: forbid forks (pids.max 0 where the
 * directory has it; a process with SIGKILL pending cannot fork in any case), then signal until
 * every listed process is dead. A pid read from cgroup.procs may be reaped and reused before it is
 * signalled, so each is opened as a pidfd and must be listed still in a second reading: while the
 * pidfd's process is not reaped its number belongs to nobody else, so then it is a member; and if
 * it was reaped, signalling says ESRCH.
 *
 * Not every process has to be in every directory of a cell: a zygote is not in its own of a bare v2
 * tree (launch.c), and a hostile one holds the files to enter single v1 directories of its cells.
 * So each directory is emptied by itself when rmdir says that it is busy, and those that can forbid
 * forks are told so before anything is killed. In one that cannot, several rounds without a pause
 * outrun processes that fork.
 *
 * rmdir returns EBUSY for a short while after the last process died; it is retried with a growing
 * pause until the deadline, or by the caller (cgroup_try_remove()).
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/cgroup_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_FIRST_NS 50000u
#define PAUSE_MAX_NS 5000000u
#define BATCH 64    /* pidfds open at a time */
#define LISTED 1024 /* pids looked at in one round; the next round sees the others */
#define ROUNDS 8    /* without a pause: more than a fork takes */

static uint64_t deadline_in(unsigned int ms)
{
	return clock_now_ns() + (uint64_t)ms * CLOCK_NS_PER_MS;
}

static uint64_t pause_grow(uint64_t ns)
{
	const struct timespec ts = { .tv_nsec = (long)ns };

	(void)nanosleep(&ts, NULL);
	return ns * 2 > PAUSE_MAX_NS ? PAUSE_MAX_NS : ns * 2;
}

/* A removed directory: looking up a file in it says one of these. */
static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

/* The first LISTED members. Return: how many, or -errno. */
static int list(int dirfd, pid_t *ret)
{
	char buf[LISTED * 8];
	_fd_ int fd = openat(dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : fd_read_full(fd, buf, sizeof(buf));

	if (n < 0)
		return (int)n;
	while (n > 0 && buf[n - 1] != '\n')
		n--; /* a cut number is another process */
	return (int)cgroup_text_pids((struct cgroup_text){ buf, (size_t)n }, ret, LISTED);
}

static bool listed(const pid_t *pids, int n, pid_t pid)
{
	for (int i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* Signal up to BATCH of @pids. Return: how many of them are still alive, or -errno. */
static int kill_batch(int dirfd, const pid_t *pids, int n)
{
	pid_t again[LISTED] = { 0 };
	int pidfd[BATCH], alive = 0, failed = 0;

	for (int i = 0; i < n; i++)
		pidfd[i] = (int)syscall(SYS_pidfd_open, pids[i], 0);

	int n_again = list(dirfd, again);

	for (int i = 0; i < n; i++) {
		struct pollfd dead = { .fd = pidfd[i], .events = POLLIN };

		/* A zombie that waits for its parent is as dead as it can be. */
		if (pidfd[i] >= 0 && listed(again, n_again, pids[i]) && poll(&dead, 1, 0) == 0) {
			alive++;
			if (syscall(SYS_pidfd_send_signal, pidfd[i], SIGKILL, NULL, 0) < 0 &&
			    errno != ESRCH)
				failed = -errno;
		}
		(void)fd_close(pidfd[i]);
	}
	return failed ? failed : alive;
}

/* Most directories do not have this file. */
static void forbid_forks(int dirfd)
{
	(void)fd_write_file(dirfd, "pids.max", "0");
}

/* SIGKILL to every process in it. Return: how many lived, or -errno; 0 when it is gone. */
static int kill_round(int dirfd, struct err *e)
{
	pid_t pids[LISTED] = { 0 };
	int n = list(dirfd, pids), alive = 0;

	if (is_gone(n))
		return 0;
	if (n < 0)
		return err_set(e, n, "read cgroup.procs");
	if (listed(pids, n, 0) || listed(pids, n, getpid()))
		return err_say(e, -EBUSY,
			       "cgroup holds a process that must not be killed from here");
	for (int i = 0; i < n; i += BATCH) {
		int r = kill_batch(dirfd, pids + i, n - i < BATCH ? n - i : BATCH);

		if (r < 0)
			return err_set(e, r, "kill processes of a cgroup");
		alive += r;
	}
	return alive + (n == LISTED); /* there may be more */
}

/* The same until all are dead, at most ROUNDS times. */
static int kill_rounds(int dirfd, struct err *e)
{
	int alive = 1;

	for (int i = 0; i < ROUNDS && alive > 0; i++)
		alive = kill_round(dirfd, e);
	return alive;
}

static int kill_loop(int dirfd, uint64_t deadline_ns, struct err *e)
{
	uint64_t wait = PAUSE_FIRST_NS;
	int alive;

	forbid_forks(dirfd);
	while ((alive = kill_rounds(dirfd, e)) > 0) {
		if (clock_now_ns() >= deadline_ns)
			return err_say(e, -ETIMEDOUT,
				       "%d processes of a cgroup did not die in time", alive);
		wait = pause_grow(wait);
	}
	return alive;
}

/* rmdir with retries. */
static int rmdir_until(int parent, const char *name, uint64_t deadline_ns, struct err *e)
{
	uint64_t wait = PAUSE_FIRST_NS;

	while (unlinkat(parent, name, AT_REMOVEDIR) < 0) {
		if (is_gone(-errno))
			return 0;
		if (errno != EBUSY || clock_now_ns() >= deadline_ns)
			return err_set(e, -errno, "rmdir cgroup %s", name);
		wait = pause_grow(wait);
	}
	return 0;
}

static bool is_cgroup(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) == 0 && ((unsigned long)st.f_type == CGROUP_SUPER_MAGIC ||
					 (unsigned long)st.f_type == CGROUP2_SUPER_MAGIC);
}

/* openat2 where the kernel has it: no symbolic link anywhere in the path. */
static int open_plain(const char *path)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = fd_openat2(AT_FDCWD, path, flags, RESOLVE_NO_SYMLINKS);

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open(path, flags);
	return fd < 0 ? -errno : fd;
}

int cgroup_remove_path(const char *path, unsigned int deadline_ms, struct err *e)
{
	uint64_t deadline_ns = deadline_in(deadline_ms);
	char base[CGROUP_PATH_MAX];

	if (!cgroup_path_removable(path))
		return err_say(e, -EINVAL, "not a path of a cell's cgroup: '%.200s'", path);

	bool has_base = cgroup_parent(path, base);
	const char *name = path + strlen(base) + 1;
	_fd_ int parent = open_plain(base);

	if (is_gone(parent))
		return 0;
	if (parent < 0)
		return err_set(e, parent, "open cgroup %s", base);
	if (!is_cgroup(parent))
		return err_say(e, -EINVAL, "%s is not on a cgroup filesystem", base);

	_fd_ int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && !is_gone(-errno))
		return err_set(e, -errno, "open cgroup %s", path);
	if (fd >= 0) {
		int r = fd_write_file(fd, "cgroup.kill", "1");

		if (r < 0)
			r = kill_loop(fd, deadline_ns, e);
		if (r == 0)
			r = rmdir_until(parent, name, deadline_ns, e);
		if (r < 0)
			return err_wrap(e, "remove %s", path);
	}
	if (has_base)
		(void)rmdir(base); /* the last cell takes it away; others keep it busy */
	return 0;
}

void cgroup_stop_path(const char *path)
{
	_fd_ int fd = cgroup_path_removable(path) ? open_plain(path) : -EINVAL;

	if (fd >= 0 && is_cgroup(fd))
		forbid_forks(fd);
}

static void empty(int dirfd)
{
	if (dirfd < 0 || fd_write_file(dirfd, "cgroup.kill", "1") == 0)
		return;
	(void)kill_rounds(dirfd, NULL);
}

void cgroup_kill(const struct cgroup *c)
{
	/* Forks are not forbidden here: their refusals would be counted as a limit that was hit. */
	empty(cgroup_dir(c, CGROUP_UNIFIED));
	if (c->kind != CGROUP_V2)
		empty(cgroup_dir(c, CGROUP_PIDS));
}

int cgroup_try_remove(struct cgroup *c, struct err *e)
{
	bool busy[CGROUP_DIRS_MAX] = { false };
	int result = 0, pids = cgroup_dir(c, CGROUP_PIDS);

	for (size_t i = 0; i < c->n_dirs; i++) {
		char base[CGROUP_PATH_MAX];

		busy[i] = rmdir(c->path[i]) < 0 && !is_gone(-errno);
		if (busy[i] && (result == 0 || errno != EBUSY))
			result = err_set(e, -errno, "rmdir cgroup %s", c->path[i]);
		else if (!busy[i] && cgroup_parent(c->path[i], base))
			(void)rmdir(base);
	}
	if (result == 0) {
		cgroup_close(c);
		return 0;
	}
	if (pids >= 0)
		forbid_forks(pids);
	for (size_t i = 0; i < c->n_dirs; i++)
		if (busy[i])
			empty(c->dirfd[i]);
	return result;
}

int cgroup_remove(struct cgroup *c, unsigned int deadline_ms, struct err *e)
{
	uint64_t deadline_ns = deadline_in(deadline_ms), wait = PAUSE_FIRST_NS;
	int r;

	while ((r = cgroup_try_remove(c, e)) == -EBUSY && clock_now_ns() < deadline_ns)
		wait = pause_grow(wait);
	cgroup_close(c);
	return r;
}
