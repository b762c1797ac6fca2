/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - Journal files and the sweep over dead ones.
 *
 * Races, and why they end well. A sweeper may lock a file that its maker has created but not yet
 * locked: it then finds it empty, so nothing was made, and unlinks it; the maker fails to lock, or
 * locks an unlinked file, and takes another slot. A maker that dies while writing leaves a short
 * file: short means "not committed", so nothing was made. A full-size file that does not check out
 * was damaged by another program; it is moved aside, never deleted.
 *
 * Host ids. Locks on bytes of one file say which slots are in use on this machine. They are of the
 * open file (OFD), so they end with the warden, and cost one system call each. A warden's own locks
 * do not exclude itself, which the journal does: so the journal's file comes first, and a slot
 * whose file exists is never unlocked.
 */
#include "cell/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cell/idmap.h"

#define RECORD_MAGIC 0x43524331u /* "1CRC" */
#define SWEEP_DEADLINE_MS 5000u

struct record_body {
	uint32_t magic;
	uint32_t size;
	uint32_t n_dirs;
	uint32_t check;
	char path[CGROUP_DIRS_MAX][CGROUP_PATH_MAX];
};

static uint32_t checksum(const struct record_body *b)
{
	const unsigned char *p = (const unsigned char *)b->path;
	uint32_t h = 2166136261u ^ b->n_dirs; /* FNV-1a: against accidents, not against malice */

	for (size_t i = 0; i < sizeof(b->path); i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

/* ---- host ids ------------------------------------------------------------------------------ */

static int ranges = -1; /* -1: cells have no ranges, or only ours */

/*
 * A directory that is made if it is missing, and is ours alone: in /tmp another user may have made
 * it first, to read records or to plant some.
 */
static int open_own(const char *what, const char *path, struct err *e)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make %s %s", what, path);
	_fd_ int fd = open(path, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open %s %s", what, path);
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return err_say(e, -EPERM,
			       "%s %s must belong to uid %u and be writable by no other user", what,
			       path, (unsigned)geteuid());
	return TAKE_FD(fd);
}

int record_ranges(const char *dir, struct err *e)
{
	_fd_ int at = open_own("the daemons' directory of host ids", dir, e);

	if (at < 0)
		return at;
	int fd = openat(at, "taken", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(e, -errno, "open %s/taken, where daemons agree on host ids", dir);
	fd_close(ranges);
	ranges = fd;
	return 0;
}

/* 1: it is ours; 0: another warden has it; or -errno. */
static int lock_range(uint32_t slot, short type)
{
	const struct flock l = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = slot,
		.l_len = 1,
	};

	if (ranges < 0 || fcntl(ranges, F_OFD_SETLK, &l) == 0)
		return 1;
	return errno == EAGAIN || errno == EACCES ? 0 : -errno;
}

/* ---- the journal --------------------------------------------------------------------------- */

int record_dir(const char *state, struct err *e)
{
	struct idmap ids;

	idmap_choose(0, &ids);
	if (ids.ranged && record_ranges(RECORD_RANGES, e) < 0)
		return e->code;
	_fd_ int top = open_own("state directory", state, e);

	if (top < 0)
		return top;
	if (mkdirat(top, "cells", 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make %s/cells", state);
	int fd = openat(top, "cells", O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(e, -errno, "open %s/cells", state) : fd;
}

static void slot_name(uint32_t slot, char name[16])
{
	(void)snprintf(name, 16, "%04u", slot);
}

/* 1: taken by us; 0: another warden has it; or -errno. */
static int try_slot(int dirfd, uint32_t slot, struct record *ret)
{
	char name[16];
	struct stat st;

	slot_name(slot, name);
	_fd_ int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_nlink == 0)
		return 0;
	int ours = lock_range(slot, F_WRLCK);

	if (ours < 1) {
		(void)unlinkat(dirfd, name, 0);
		return ours;
	}
	*ret = (struct record){ .fd = TAKE_FD(fd), .dirfd = dirfd, .slot = slot };
	return 1;
}

int record_begin(int dirfd, struct record *ret, struct err *e)
{
	uint32_t start = 0;

	/* Random, so that a slot (and with it host ids) is not used again right away. */
	(void)!getrandom(&start, sizeof(start), 0);
	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++) {
		int r = try_slot(dirfd, (start + i) % WARDEN_CELLS_MAX, ret);

		if (r < 0)
			return err_set(e, r, "write a journal record");
		if (r == 1)
			return 0;
	}
	return err_say(e, -EAGAIN, "%u cells exist already on this machine", WARDEN_CELLS_MAX);
}

int record_commit(const struct record *r, const struct cgroup *planned, struct err *e)
{
	static struct record_body b;

	memset(&b, 0, sizeof(b));
	b.magic = RECORD_MAGIC;
	b.size = sizeof(b);
	if (planned) {
		b.n_dirs = (uint32_t)planned->n_dirs;
		for (size_t i = 0; i < planned->n_dirs; i++)
			(void)snprintf(b.path[i], CGROUP_PATH_MAX, "%s", planned->path[i]);
	}
	b.check = checksum(&b);
	int n = fd_write_all(r->fd, &b, sizeof(b));

	return n < 0 ? err_set(e, n, "write the journal record") : 0;
}

void record_end(struct record *r)
{
	char name[16];

	if (r->fd < 0)
		return;
	slot_name(r->slot, name);
	(void)unlinkat(r->dirfd, name, 0);
	(void)lock_range(r->slot, F_UNLCK);
	r->fd = fd_close(r->fd);
}

/* Something of the cell may still run: its ids are ours for as long as we live. */
void record_keep(struct record *r)
{
	r->fd = fd_close(r->fd);
}

static int quarantine(int dirfd, const char *name)
{
	(void)mkdirat(dirfd, "../quarantine", 0700);
	_fd_ int q =
		openat(dirfd, "../quarantine", O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char to[64];
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)snprintf(to, sizeof(to), "%.16s.%lld.%09ld", name, (long long)now.tv_sec,
		       now.tv_nsec);
	return q < 0 ? -errno : renameat2(dirfd, name, q, to, RENAME_NOREPLACE);
}

/* Read a committed record. 1 good, 0 never committed, -EBADMSG damaged. */
static int read_body(int fd, struct record_body *b)
{
	ssize_t n = fd_read_full(fd, b, sizeof(*b));

	if (n != (ssize_t)sizeof(*b))
		return n < 0 ? (int)n : 0;
	if (b->magic != RECORD_MAGIC || b->size != sizeof(*b) || b->n_dirs > CGROUP_DIRS_MAX ||
	    b->check != checksum(b))
		return -EBADMSG;
	for (uint32_t i = 0; i < b->n_dirs; i++)
		b->path[i][CGROUP_PATH_MAX - 1] = '\0';
	return 1;
}

/* One file whose lock we hold: its owner is dead. */
static void sweep_one(int dirfd, const char *name, int fd, struct sweep_result *res)
{
	static struct record_body b;
	int r = read_body(fd, &b);

	if (r == -EBADMSG && quarantine(dirfd, name) >= 0) {
		res->quarantined++;
		return;
	}
	if (r < 0) {
		res->failed++;
		return;
	}
	/* Processes that fork without end have to be stopped before they are killed. */
	for (uint32_t i = 0; r == 1 && i < b.n_dirs; i++)
		cgroup_stop_path(b.path[i]);
	for (uint32_t i = 0; r == 1 && i < b.n_dirs; i++)
		if (cgroup_remove_path(b.path[i], SWEEP_DEADLINE_MS, NULL) < 0) {
			res->failed++; /* keep the record: a later sweep tries again */
			return;
		}
	(void)unlinkat(dirfd, name, 0);
	res->swept++;
}

int record_sweep(int dirfd, struct sweep_result *ret, struct err *e)
{
	_dir_ DIR *dir = dir_list(openat(dirfd, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC));
	const char *name;

	*ret = (struct sweep_result){ 0 };
	if (!dir)
		return err_set(e, -errno, "read the journal");
	while ((name = dir_next(dir))) {
		if (name[0] == '.')
			continue;
		struct stat st;
		_fd_ int fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue; /* gone meanwhile, or its owner lives */
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 0)
			sweep_one(dirfd, name, fd, ret);
	}
	return 0;
}
