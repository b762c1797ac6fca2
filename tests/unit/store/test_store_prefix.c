/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_prefix.c - Leftovers of the store after a power cut: any prefix of the log, and a
 * database that a checkpoint had half written. All of it loads, with whole transactions from the
 * first on.
 *
 * By default every byte at the ends of the log's frames and every 499th elsewhere; with
 * CAISSON_EVERY_BYTE=1 all of them.
 */
#include "store_kit.h"

#include <signal.h>

#include "../child.h"

struct unit_fixture unit_fixture = { kit_setup, kit_teardown };

#define BEFORE 3 /* records in the database */
#define LOGGED 2 /* further ones, in the log alone */
#define WAL_HEADER 32u
#define FRAME (4096u + 24u)
#define NEAR 12u

struct bytes {
	char *data;
	size_t len;
};

/* A prefix needs no disk under it: what would have reached it is what we write. */
int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

static struct bytes load(const char *name)
{
	_fd_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	struct bytes b;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	b.len = (size_t)st.st_size;
	b.data = malloc(b.len + 1);
	assert_int_equal(pread(fd, b.data, b.len, 0), b.len);
	return b;
}

static void save(const char *name, const char *data, size_t len)
{
	(void)unlinkat(dir, name, 0); /* one that is cut short and written again waits for the disk
				       */
	_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
}

static int put(struct store *s, int from, int n)
{
	char id[16];

	for (int i = from; i < from + n; i++) {
		(void)snprintf(id, sizeof(id), "box-%d", i);
		struct store_sandbox b = kit_sandbox(id, "alice", id);

		if (store_sandbox_put(s, &b, &err) < 0)
			return -1;
	}
	return 0;
}

static void log_and_die(void *arg)
{
	struct store_files f;
	struct store *s;

	(void)arg;
	CHILD_CHECK(store_files_open(dir, &f, &err) == 0 && store_open(&f, &s, &err) == 0);
	CHILD_CHECK(put(s, BEFORE, LOGGED) == 0);
	(void)raise(SIGKILL);
}

/* A database of BEFORE records, and a log of LOGGED more that was never written back. */
static void make(struct bytes *ret_db, struct bytes *ret_wal)
{
	struct store *s = kit_open();

	assert_int_equal(put(s, 0, BEFORE), 0);
	store_close(s);
	assert_int_equal(WTERMSIG(child_wait(child_start(log_and_die, NULL))), SIGKILL);
	*ret_db = load(STORE_FILE);
	*ret_wal = load(STORE_FILE "-wal");
	assert_true(ret_wal->len >= WAL_HEADER + LOGGED * FRAME);
}

static bool is_tried(size_t n, size_t len)
{
	if (getenv("CAISSON_EVERY_BYTE") || n <= WAL_HEADER + NEAR || n == len || n % 499 == 0)
		return true;
	size_t in_frame = (n - WAL_HEADER) % FRAME;

	return in_frame < NEAR || in_frame > FRAME - NEAR;
}

/* How many records there are, which must be the first ones. */
static int count_whole(void)
{
	struct store *s = kit_open();
	int n = kit_count(s);

	assert_int_equal(put(s, BEFORE + LOGGED, 1), 0); /* and it can be written */
	assert_int_equal(kit_count(s), n + 1);
	store_close(s);
	return n;
}

TEST(every_prefix_of_the_log)
{
	struct bytes db, wal;
	int last = 0;

	make(&db, &wal);
	for (size_t n = 0; n <= wal.len; n++) {
		if (!is_tried(n, wal.len))
			continue;
		save(STORE_FILE, db.data, db.len);
		save(STORE_FILE "-wal", wal.data, n);
		int now = count_whole();

		if (now < last || now > BEFORE + LOGGED || (n == 0 && now != BEFORE))
			fail_msg("%zu of %zu bytes: %d records, after %d", n, wal.len, now, last);
		last = now;
	}
	assert_int_equal(last, BEFORE + LOGGED);
	free(db.data);
	free(wal.data);
}

/* The log is on the disk before the database is touched, and stays until that is: so nothing is
 * lost. */
TEST(torn_checkpoint)
{
	struct bytes db, wal, after;

	make(&db, &wal);
	store_close(kit_open()); /* the checkpoint */
	after = load(STORE_FILE);
	assert_true(after.len >= db.len && memcmp(after.data, db.data, db.len) != 0);
	char *torn = malloc(after.len);

	for (size_t n = 0; n <= after.len; n += getenv("CAISSON_EVERY_BYTE") ? 1 : 401) {
		size_t len = n > db.len ? n : db.len;

		memcpy(torn, after.data, n);
		if (n < db.len)
			memcpy(torn + n, db.data + n, db.len - n);
		save(STORE_FILE, torn, len);
		save(STORE_FILE "-wal", wal.data, wal.len);
		assert_int_equal(count_whole(), BEFORE + LOGGED);
	}
	free(torn);
	free(after.data);
	free(db.data);
	free(wal.data);
}
