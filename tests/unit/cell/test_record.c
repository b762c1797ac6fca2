/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_record.c - The journal: a living owner is never touched, a dead one always swept, and no
 * bytes on the disk, however cut or damaged, make the sweep do anything else.
 */
#include "base/err.h"
#include "base/fd.h"
#include "cell/cgroup.h"
#include "cell/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"

static char top[UNIT_DIR_MAX]; /* removed with all in it after each test */
static char state[96];         /* the journal's directory, below it */
static char ranges[96];
static int cells = -1; /* state/cells */
static struct err err;

static int setup(void **unused)
{
	(void)unused;
	if (!unit_dir_make(top, true))
		return -1;
	(void)snprintf(state, sizeof(state), "%s/state", top);
	cells = record_dir(state, &err);
	/* Tests take all there are: not those of this machine. */
	(void)snprintf(ranges, sizeof(ranges), "%s/ids", top);
	return cells < 0 || record_ranges(ranges, &err) < 0 ? -1 : 0;
}

static int teardown(void **unused)
{
	(void)unused;
	cells = fd_close(cells);
	return unit_dir_remove(top);
}

struct unit_fixture unit_fixture = { setup, teardown };

/* How many entries there are in state/@name; 0 without that directory. */
static unsigned int count(const char *name)
{
	char path[128];
	unsigned int n = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", state, name);
	DIR *d = opendir(path);

	for (struct dirent *ent; d && (ent = readdir(d));)
		n += ent->d_name[0] != '.';
	if (d)
		(void)closedir(d);
	return n;
}

static void slot_name(uint32_t slot, char name[16])
{
	(void)snprintf(name, 16, "%04u", slot);
}

/* A plan whose directories do not exist: the sweep finds them gone. */
static void fake_plan(struct cgroup *c, size_t n_dirs)
{
	memset(c, 0, sizeof(*c));
	c->n_dirs = n_dirs;
	for (size_t i = 0; i < n_dirs; i++)
		(void)snprintf(c->path[i], CGROUP_PATH_MAX, "%s/none%zu/caisson/c0001-f00d", top,
			       i);
}

static struct sweep_result sweep(void)
{
	struct sweep_result res = { 9, 9, 9 };

	if (record_sweep(cells, &res, &err) < 0)
		fail_msg("record_sweep: %s", err.msg);
	return res;
}

#define assert_swept(res, n_swept, n_failed, n_quarantined)                                        \
	do {                                                                                       \
		struct sweep_result res_ = (res);                                                  \
		assert_int_equal(res_.swept, n_swept);                                             \
		assert_int_equal(res_.failed, n_failed);                                           \
		assert_int_equal(res_.quarantined, n_quarantined);                                 \
	} while (0)

static void begin(struct record *r)
{
	if (record_begin(cells, r, &err) < 0)
		fail_msg("record_begin: %s", err.msg);
}

/* The bytes of a committed record. */
static size_t committed(size_t n_dirs, char *bytes, size_t size)
{
	struct record r;
	struct cgroup c;
	char name[16];

	fake_plan(&c, n_dirs);
	begin(&r);
	assert_int_equal(record_commit(&r, &c, &err), 0);
	slot_name(r.slot, name);
	_fd_ int fd = openat(cells, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, bytes, size);

	assert_in_range(n, 1, size - 1);
	record_end(&r);
	return (size_t)n;
}

static void put_record(const char *name, const char *bytes, size_t len)
{
	_fd_ int fd = openat(cells, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, bytes, len), 0);
}

/* ---- the directory --------------------------------------------------------------------------- */

TEST(dir)
{
	struct stat st;
	char path[128];

	assert_int_equal(stat(state, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstat(cells, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fcntl(cells, F_GETFD), FD_CLOEXEC);

	/* Once more, over what is there. */
	_fd_ int again = record_dir(state, &err);

	assert_true(again >= 0);

	(void)snprintf(path, sizeof(path), "%s/missing/state", top);
	assert_int_equal(record_dir(path, &err), -ENOENT);
	assert_non_null(strstr(err.msg, path));
	(void)snprintf(path, sizeof(path), "%s/link", top);
	assert_int_equal(symlink(state, path), 0);
	assert_true(record_dir(path, &err) < 0);
	(void)snprintf(path, sizeof(path), "%s/file", top);
	fd_close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(record_dir(path, &err), -ENOTDIR);
}

/* In a shared /tmp another user may be first, to plant records or to read ours. */
TEST(dir_of_a_stranger)
{
	static const mode_t open_modes[] = { 0720, 0702, 0777, 01777, 0770 };
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(open_modes); i++) {
		assert_int_equal(chmod(state, open_modes[i]), 0);
		assert_int_equal(record_dir(state, &err), -EPERM);
		assert_non_null(strstr(err.msg, state));
	}
	assert_int_equal(chmod(state, 0755), 0);
	fd_close(record_dir(state, &err));
	assert_int_equal(chmod(state, 0700), 0);

	need_root("a directory of another user");
	(void)snprintf(path, sizeof(path), "%s/theirs", top);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, CHILD_NOBODY, CHILD_NOBODY), 0);
	assert_int_equal(record_dir(path, &err), -EPERM);
	/* A link in place of the inner directory leads nowhere either. */
	(void)snprintf(path, sizeof(path), "%s/other", top);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/other/cells", top);
	assert_int_equal(symlink("/tmp", path), 0);
	(void)snprintf(path, sizeof(path), "%s/other", top);
	assert_true(record_dir(path, &err) < 0);
}

/* ---- one record ------------------------------------------------------------------------------ */

TEST(life)
{
	struct record r;
	struct cgroup c;
	struct stat st;
	char name[16];

	begin(&r);
	assert_true(r.fd >= 0 && r.dirfd == cells && r.slot < WARDEN_CELLS_MAX);
	assert_int_equal(fcntl(r.fd, F_GETFD), FD_CLOEXEC);
	slot_name(r.slot, name);
	assert_int_equal(fstatat(cells, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_size, 0); /* nothing was made */
	assert_int_equal(st.st_mode & 07777, 0600);

	/* Locked: another process that opens it cannot have it. */
	_fd_ int other = openat(cells, name, O_RDWR | O_CLOEXEC);

	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);

	fake_plan(&c, 2);
	assert_int_equal(record_commit(&r, &c, &err), 0);
	assert_int_equal(fstat(r.fd, &st), 0);
	assert_true(st.st_size > 2 * CGROUP_PATH_MAX);
	assert_swept(sweep(), 0, 0, 0);
	assert_int_equal(count("cells"), 1);

	record_end(&r);
	assert_int_equal(r.fd, -1);
	assert_int_equal(count("cells"), 0);
	record_end(&r); /* idempotent */
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
}

/* ---- host ids -------------------------------------------------------------------------------- */

/* Ids in use by another warden, with a state directory of its own; a lock per byte. */
static void use_elsewhere(int fd, off_t from, off_t n, short type)
{
	const struct flock l = { .l_type = type, .l_start = from, .l_len = n };

	assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
}

static int open_ranges(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/taken", ranges);
	return open(path, O_RDWR | O_CLOEXEC);
}

TEST(ids_of_another_state_directory)
{
	struct record r, second;
	_fd_ int other = open_ranges();

	use_elsewhere(other, 0, 7, F_WRLCK);
	use_elsewhere(other, 8, WARDEN_CELLS_MAX - 8, F_WRLCK);
	begin(&r);
	assert_int_equal(r.slot, 7);
	assert_int_equal(record_begin(cells, &second, &err), -EAGAIN);
	assert_int_equal(count("cells"), 1); /* nothing is left of what was tried */

	/* Ours, and its own again afterwards. */
	const struct flock mine = { .l_type = F_WRLCK, .l_start = 7, .l_len = 1 };

	assert_int_equal(fcntl(other, F_OFD_SETLK, &mine), -1);
	record_end(&r);
	assert_int_equal(fcntl(other, F_OFD_SETLK, &mine), 0);

	/* The other one dies. */
	other = fd_close(other);
	begin(&r);
	record_end(&r);
}

/* Something of it may still run. */
TEST(ids_of_one_that_is_kept)
{
	struct record r;
	_fd_ int other = open_ranges();

	begin(&r);
	const struct flock its = { .l_type = F_WRLCK, .l_start = r.slot, .l_len = 1 };

	record_keep(&r);
	assert_int_equal(fcntl(other, F_OFD_SETLK, &its), -1);
}

TEST(ranges_of_a_stranger)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/no/such", top);
	assert_int_equal(record_ranges(path, &err), -ENOENT);
	(void)snprintf(path, sizeof(path), "%s/open", top);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(record_ranges(path, &err), -EPERM);
	(void)snprintf(path, sizeof(path), "%s/link", top);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(record_ranges(path, &err), -ENOTDIR);
}

/* A cell that could not be removed: the record stays, without its lock. */
TEST(keep)
{
	struct record r;
	struct cgroup c;

	fake_plan(&c, CGROUP_DIRS_MAX);
	begin(&r);
	assert_int_equal(record_commit(&r, &c, &err), 0);
	record_keep(&r);
	record_keep(&r);
	assert_int_equal(r.fd, -1);
	assert_int_equal(count("cells"), 1);
	assert_swept(sweep(), 1, 0, 0);
	assert_int_equal(count("cells"), 0);
}

TEST(commit_without_cgroup)
{
	struct record r;

	begin(&r);
	assert_int_equal(record_commit(&r, NULL, &err), 0);
	record_keep(&r);
	assert_swept(sweep(), 1, 0, 0);
}

/* The disk is full, or the descriptor is not what it was: an error, not a silent "committed". */
TEST(commit_that_fails)
{
	struct record r;
	struct cgroup c;
	int real;

	fake_plan(&c, 1);
	begin(&r);
	real = r.fd;
	r.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(record_commit(&r, &c, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "journal"));
	fd_close(r.fd);
	r.fd = real;
	record_end(&r);
}

TEST(slots_are_distinct)
{
	static struct record r[200];
	static bool taken[WARDEN_CELLS_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
		begin(&r[i]);
		assert_false(taken[r[i].slot]);
		taken[r[i].slot] = true;
	}
	assert_swept(sweep(), 0, 0, 0);
	assert_int_equal(count("cells"), ARRAY_SIZE(r));
	for (size_t i = 0; i < ARRAY_SIZE(r); i++)
		record_end(&r[i]);
	assert_int_equal(count("cells"), 0);
}

TEST(all_slots_taken)
{
	struct record r;
	char name[16];

	for (uint32_t i = 0; i < WARDEN_CELLS_MAX; i++) {
		slot_name(i, name);
		put_record(name, "", 0);
	}
	assert_int_equal(record_begin(cells, &r, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "4096"));
	/* One free slot among all is found, whichever it is. */
	assert_int_equal(unlinkat(cells, "2741", 0), 0);
	begin(&r);
	assert_int_equal(r.slot, 2741);
	assert_swept(sweep(), WARDEN_CELLS_MAX - 1, 0, 0);
	assert_int_equal(count("cells"), 1);
	record_end(&r);
}

TEST(begin_that_fails)
{
	struct record r;

	_fd_ int not_a_dir = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(record_begin(not_a_dir, &r, &err), -ENOTDIR);
	assert_int_equal(record_begin(-1, &r, &err), -EBADF);
}

/* ---- what the sweep finds -------------------------------------------------------------------- */

/* Any prefix loads. A short one was never committed, so there is nothing to remove. */
TEST(every_prefix)
{
	char bytes[8192];
	size_t len = committed(3, bytes, sizeof(bytes));

	for (size_t n = 0; n <= len; n++) {
		put_record("0042", bytes, n);
		assert_swept(sweep(), 1, 0, 0);
		assert_int_equal(count("cells"), 0);
	}
	assert_int_equal(count("quarantine"), 0);
	/* Trailing bytes are not ours, and change nothing. */
	put_record("0042", bytes, sizeof(bytes));
	assert_swept(sweep(), 1, 0, 0);
}

/* Every single byte changed, one record each: none is believed, none is lost. */
TEST(every_damaged_byte)
{
	char bytes[8192];
	size_t len = committed(3, bytes, sizeof(bytes));

	assert_true(len < 10000);
	for (size_t i = 0; i < len; i++) {
		char name[16];

		slot_name((uint32_t)i, name);
		bytes[i] = (char)(bytes[i] ^ (1 << i % 8));
		put_record(name, bytes, len);
		bytes[i] = (char)(bytes[i] ^ (1 << i % 8));
	}
	assert_swept(sweep(), 0, 0, len);
	assert_int_equal(count("cells"), 0);
	assert_int_equal(count("quarantine"), len);
}

TEST(noise)
{
	char bytes[8192];
	unsigned int seed = 7;
	size_t len = committed(1, bytes, sizeof(bytes));

	for (int round = 0; round < 50; round++) {
		char name[16];

		for (size_t i = 0; i < len; i++)
			bytes[i] = (char)rand_r(&seed);
		slot_name((uint32_t)round, name);
		put_record(name, bytes, len);
	}
	assert_swept(sweep(), 0, 0, 50);
	assert_int_equal(count("quarantine"), 50);
}

/* A path that belongs to no cell is not removed because of a record; the record stays. */
TEST(path_that_is_not_ours)
{
	struct record r;
	struct cgroup c;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/precious", top);
	assert_int_equal(mkdir(path, 0700), 0);
	fake_plan(&c, 2);
	(void)snprintf(c.path[1], CGROUP_PATH_MAX, "%s", path);
	begin(&r);
	assert_int_equal(record_commit(&r, &c, &err), 0);
	record_keep(&r);
	for (int again = 0; again < 2; again++) {
		assert_swept(sweep(), 0, 1, 0);
		assert_int_equal(count("cells"), 1);
		assert_int_equal(access(path, F_OK), 0);
	}
	/* Nor one that has the right look but is not on a cgroup file system. */
	(void)snprintf(path, sizeof(path), "%s/caisson-precious", top);
	assert_int_equal(mkdir(path, 0700), 0);
	fake_plan(&c, 1);
	(void)snprintf(c.path[0], CGROUP_PATH_MAX, "%s", path);
	begin(&r);
	assert_int_equal(record_commit(&r, &c, &err), 0);
	record_keep(&r);
	assert_swept(sweep(), 0, 2, 0);
	assert_int_equal(access(path, F_OK), 0);
}

TEST(things_that_are_no_records)
{
	char path[160];

	assert_int_equal(mkdirat(cells, "0001", 0700), 0);
	assert_int_equal(mkfifoat(cells, "0002", 0600), 0);
	(void)snprintf(path, sizeof(path), "%s/target", top);
	fd_close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(symlinkat(path, cells, "0003"), 0);
	assert_int_equal(symlinkat("0003", cells, "0004"), 0);
	put_record(".hidden", "x", 1);
	assert_swept(sweep(), 0, 0, 0);
	assert_int_equal(count("cells"), 4);
	assert_int_equal(access(path, F_OK), 0);
}

/* ---- owners ---------------------------------------------------------------------------------- */

enum step { STEP_BEGIN, STEP_COMMIT, STEP_MADE, STEPS };

struct owner {
	enum step until;
	bool real; /* a real cgroup, else one that is only planned */
	struct cgroup cgroup;
	int ready[2];
};

/* A warden for the journal: goes to a step, reports it, and waits to be killed. */
static void own(void *arg)
{
	struct owner *o = arg;
	struct cgroup_limits limits = { .pids = 5 };
	struct record r;

	CHILD_CHECK(record_begin(cells, &r, &err) == 0);
	if (o->until >= STEP_COMMIT)
		CHILD_CHECK(record_commit(&r, &o->cgroup, &err) == 0);
	if (o->until >= STEP_MADE && o->real)
		CHILD_CHECK(cgroup_create(&o->cgroup, &limits, &err) == 0);
	CHILD_CHECK(write(o->ready[1], "x", 1) == 1);
	for (;;)
		(void)pause();
}

static pid_t start_owner(struct owner *o)
{
	char ch;

	assert_int_equal(pipe2(o->ready, O_CLOEXEC), 0);
	pid_t pid = child_start(own, o);

	fd_close(o->ready[1]);
	assert_int_equal(read(o->ready[0], &ch, 1), 1);
	fd_close(o->ready[0]);
	return pid;
}

TEST(owners)
{
	for (enum step s = STEP_BEGIN; s < STEPS; s++) {
		struct owner o = { .until = s };

		fake_plan(&o.cgroup, 2);
		pid_t pid = start_owner(&o);

		for (int i = 0; i < 3; i++)
			assert_swept(sweep(), 0, 0, 0);
		assert_int_equal(count("cells"), 1);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_true(WIFSIGNALED(child_wait(pid)));
		assert_swept(sweep(), 1, 0, 0);
		assert_int_equal(count("cells"), 0);
		assert_swept(sweep(), 0, 0, 0);
	}
}

/* The same with directories that are really there when the owner dies. */
TEST(owners_with_cgroups)
{
	struct cgroup_site site;
	int r = cgroup_site_find(&site, &err);

	if (r == 0)
		r = cgroup_site_prepare(&site, &err);
	if (r < 0) {
		printf("# skipped: %s\n", err.msg);
		skip();
	}
	for (enum step s = STEP_BEGIN; s < STEPS; s++) {
		struct owner o = { .until = s, .real = true };
		char name[CGROUP_NAME_MAX];

		(void)snprintf(name, sizeof(name), "t-record-%d-%d", (int)getpid(), (int)s);
		assert_int_equal(cgroup_plan(&site, name, &o.cgroup, &err), 0);
		pid_t pid = start_owner(&o);

		assert_swept(sweep(), 0, 0, 0);
		for (size_t i = 0; i < o.cgroup.n_dirs; i++)
			assert_int_equal(access(o.cgroup.path[i], F_OK), s == STEP_MADE ? 0 : -1);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_true(WIFSIGNALED(child_wait(pid)));
		assert_swept(sweep(), 1, 0, 0);
		for (size_t i = 0; i < o.cgroup.n_dirs; i++)
			assert_int_equal(access(o.cgroup.path[i], F_OK), -1);
	}
}

#define RACE_ROUNDS 500

/* A record that is ours after record_begin() stays ours, whatever sweeps around us. */
static void race_maker(void *arg)
{
	struct cgroup c;

	(void)arg;
	fake_plan(&c, 1);
	for (int i = 0; i < RACE_ROUNDS; i++) {
		struct record r;
		struct stat mine, named;
		char name[16];

		CHILD_CHECK(record_begin(cells, &r, &err) == 0);
		slot_name(r.slot, name);
		CHILD_CHECK(record_commit(&r, &c, &err) == 0);
		CHILD_CHECK(fstat(r.fd, &mine) == 0 && mine.st_nlink == 1);
		CHILD_CHECK(fstatat(cells, name, &named, 0) == 0 && named.st_ino == mine.st_ino);
		if (i % 3)
			record_end(&r);
		else
			record_keep(&r);
	}
}

static void race_sweeper(void *arg)
{
	(void)arg;
	for (int i = 0; i < RACE_ROUNDS; i++) {
		struct sweep_result res;

		CHILD_CHECK(record_sweep(cells, &res, &err) == 0);
		CHILD_CHECK(res.quarantined == 0 && res.failed == 0);
	}
}

TEST(race)
{
	pid_t pids[] = { child_start(race_maker, NULL), child_start(race_sweeper, NULL),
			 child_start(race_maker, NULL), child_start(race_sweeper, NULL) };

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		assert_int_equal(child_wait(pids[i]), 0);
	(void)sweep();
	assert_int_equal(count("cells"), 0);
}
