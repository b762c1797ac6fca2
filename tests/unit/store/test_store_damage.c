/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_damage.c - Whatever lies where the store should be: it is either read as it is, or put
 * aside whole. It is never deleted, and nothing makes the process end.
 */
#include "store_kit.h"

#include <sqlite3.h>

#include "../child.h"

struct unit_fixture unit_fixture = { kit_setup, kit_teardown };

/* A good store with a few records, closed. Return: the size of its database. */
static size_t make_store(void)
{
	struct store *s = kit_open();
	char id[16];
	struct stat st;

	for (int i = 0; i < 200; i++) {
		(void)snprintf(id, sizeof(id), "box-%d", i);
		struct store_sandbox b = kit_sandbox(id, "alice", id);

		assert_int_equal(store_sandbox_put(s, &b, &err), 0);
	}
	store_close(s);
	assert_int_equal(fstatat(dir, STORE_FILE, &st, 0), 0);
	assert_true(st.st_size > 8192);
	return (size_t)st.st_size;
}

/* 0 when the store can be used, or the error. */
static int judge(void)
{
	struct store_files f;
	int r = store_files_open(dir, &f, &err);

	if (r == 0)
		r = store_check(&f, &err);
	store_files_close(&f);
	return r;
}

static bool exists(const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Put aside, and all is well with the next one; what was there is still there. */
static void put_aside(void)
{
	struct store_report report = { 0 };
	struct stat before, after;

	assert_int_equal(fstatat(dir, STORE_FILE, &before, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(store_files_aside(dir, &report, &err), 0);
	assert_int_equal(strncmp(report.aside, "state.db.corrupt-", 17), 0);
	assert_int_equal(fstatat(dir, report.aside, &after, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
	assert_false(exists(STORE_FILE));
	assert_false(exists(STORE_FILE "-wal"));
	struct store *s = kit_open();

	assert_int_equal(kit_count(s), 0);
	store_close(s);
}

static void write_store(const void *data, size_t len)
{
	_fd_ int fd = openat(dir, STORE_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && fd_write_all(fd, data, len) == 0);
}

TEST(empty)
{
	write_store("", 0);
	assert_int_equal(judge(), -EUCLEAN);
	put_aside();
}

/* An empty database makes SQLite drop the log, which is where everything was. */
TEST(emptied_keeps_its_log)
{
	struct store_report report = { 0 };
	char wal[96], text[8];

	write_store("", 0);
	_fd_ int fd = openat(dir, STORE_FILE "-wal", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(fd_write_all(fd, "precious", 8), 0);
	assert_int_equal(judge(), -EUCLEAN);
	assert_int_equal(store_files_aside(dir, &report, &err), 0);
	(void)snprintf(wal, sizeof(wal), "%s-wal", report.aside);
	_fd_ int kept = openat(dir, wal, O_RDONLY | O_CLOEXEC);

	assert_true(kept >= 0 && read(kept, text, 8) == 8 && memcmp(text, "precious", 8) == 0);
}

TEST(garbage)
{
	char junk[20000];

	for (unsigned i = 0; i < sizeof(junk); i++)
		junk[i] = (char)(i * 2654435761u >> 13);
	static const size_t sizes[] = { 1, 15, 16, 99, 100, 4095, 4096, 20000 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		write_store(junk, sizes[i]);
		assert_int_equal(judge(), -EUCLEAN);
		put_aside();
	}
	memset(junk, 0, sizeof(junk));
	write_store(junk, 8192);
	assert_int_equal(judge(), -EUCLEAN);
	put_aside();
}

TEST(truncated)
{
	size_t size = make_store();
	_mem_ char *good = malloc(size);
	_fd_ int fd = openat(dir, STORE_FILE, O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, good, size), size);
	for (size_t keep = size - 4096; keep > 4096; keep = keep / 2) {
		write_store(good, keep);
		assert_int_equal(judge(), -EUCLEAN);
		put_aside();
	}
}

/*
 * One byte changed, all over the file. Some of them cannot be seen (there are no checksums, and
 * text is text), but then every record can still be read; all the others must be seen. Nothing
 * crashes.
 */
TEST(flipped)
{
	size_t size = make_store(), seen = 0, tried = 0;
	_mem_ char *good = malloc(size);
	_fd_ int fd = openat(dir, STORE_FILE, O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, good, size), size);
	for (size_t at = 0; at < size; at += at < 4200 ? 7 : 251) {
		__attribute__((unused))
		_fd_ int wal = openat(dir, STORE_FILE "-wal", O_WRONLY | O_TRUNC | O_CLOEXEC);

		good[at] = (char)(good[at] ^ (1 << at % 8));
		write_store(good, size);
		good[at] = (char)(good[at] ^ (1 << at % 8));
		int r = judge();

		tried++;
		if (r == -EUCLEAN) {
			seen++;
			continue;
		}
		assert_int_equal(r, 0);
		struct store *s = kit_open();

		assert_int_equal(kit_count(s), 200);
		store_close(s);
	}
	printf("# %zu of %zu changes were seen\n", seen, tried);
	assert_true(seen > 50); /* most of a file is room between rows, and tables that are empty */
}

/* Run SQL on the store as another program would. */
static void meddle(const char *sql)
{
	char path[96];
	sqlite3 *db;
	char *msg = NULL;

	(void)snprintf(path, sizeof(path), "%s/" STORE_FILE, top);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &msg) != SQLITE_OK)
		fail_msg("%s: %s", sql, msg);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

TEST(newer_version)
{
	(void)make_store();
	meddle("PRAGMA user_version=1000");
	assert_int_equal(judge(), -EUCLEAN);
	assert_non_null(strstr(err.msg, "newer version"));
	put_aside();
}

TEST(another_programs)
{
	char before[20000], after[20000];

	meddle("CREATE TABLE cookies (a)");
	_fd_ int fd = openat(dir, STORE_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t n = pread(fd, before, sizeof(before), 0);

	assert_int_equal(judge(), -EUCLEAN);
	assert_non_null(strstr(err.msg, "another program"));
	assert_int_equal(pread(fd, after, sizeof(after), 0), n);
	assert_memory_equal(before, after, (size_t)n);
	put_aside();
}

/* Tables that are not ours to the letter could hold what no check of ours looked at. */
TEST(other_tables)
{
	static const char *const changes[] = {
		"CREATE TABLE more (a)",
		"CREATE VIEW v AS SELECT * FROM sandbox",
		"CREATE TRIGGER t AFTER INSERT ON sandbox BEGIN DELETE FROM sandbox; END",
		"DROP INDEX sandbox_name",
		"ALTER TABLE sandbox ADD COLUMN more TEXT",
		"DROP TABLE idempotency",
		"ALTER TABLE sandbox RENAME COLUMN cell TO hole",
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		(void)make_store();
		meddle(changes[i]);
		assert_int_equal(judge(), -EUCLEAN);
		assert_non_null(strstr(err.msg, "tables"));
		put_aside();
	}
}

/* Rows that our own code would never have written. */
TEST(rows_out_of_bounds)
{
	static const char *const changes[] = {
		"UPDATE sandbox SET name = hex(zeroblob(40)) WHERE id = 'box-7'",
		"UPDATE sandbox SET state = 'dancing' WHERE id = 'box-7'",
		"UPDATE sandbox SET epoch = -1 WHERE id = 'box-7'",
		"UPDATE sandbox SET spec = hex(zeroblob(1000000)) WHERE id = 'box-7'",
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		char sql[256];

		(void)make_store();
		(void)snprintf(sql, sizeof(sql), "PRAGMA ignore_check_constraints=1; %s",
			       changes[i]);
		meddle(sql);
		assert_int_equal(judge(), -EUCLEAN);
		put_aside();
	}
}

TEST(no_regular_file)
{
	assert_int_equal(symlinkat("/etc/passwd", dir, STORE_FILE), 0);
	assert_int_equal(judge(), -EUCLEAN);
	put_aside();
	assert_int_equal(unlinkat(dir, STORE_FILE, 0), 0);
	assert_int_equal(mkdirat(dir, STORE_FILE, 0700), 0);
	assert_int_equal(judge(), -EUCLEAN);
	put_aside();
	assert_int_equal(unlinkat(dir, STORE_FILE "-wal", 0), 0);
	assert_int_equal(mknodat(dir, STORE_FILE "-wal", S_IFIFO | 0600, 0), 0);
	assert_int_equal(judge(), -EUCLEAN);
	put_aside();
}

/* A journal to roll back would have pages of another author. */
TEST(journal_of_another)
{
	(void)make_store();
	_fd_ int fd = openat(dir, STORE_FILE "-journal", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(judge(), -EUCLEAN);
	put_aside();
	assert_false(exists(STORE_FILE "-journal"));
}

/* Two in one second get two names. */
TEST(aside_twice)
{
	struct store_report a, b;

	write_store("x", 1);
	assert_int_equal(store_files_aside(dir, &a, &err), 0);
	write_store("y", 1);
	assert_int_equal(store_files_aside(dir, &b, &err), 0);
	assert_string_not_equal(a.aside, b.aside);
	assert_true(exists(a.aside) && exists(b.aside));
}

/* ---- what a crash leaves ------------------------------------------------------------------- */

static void write_and_die(void *arg)
{
	struct store_files f;
	struct store *s;
	struct store_sandbox b = kit_sandbox("last", "alice", "last");

	(void)arg;
	CHILD_CHECK(store_files_open(dir, &f, &err) == 0 && store_open(&f, &s, &err) == 0);
	CHILD_CHECK(store_sandbox_put(s, &b, &err) == 0);
	(void)raise(SIGKILL);
}

TEST(killed)
{
	struct stat st;

	(void)make_store();
	assert_int_equal(WTERMSIG(child_wait(child_start(write_and_die, NULL))), SIGKILL);
	assert_true(fstatat(dir, STORE_FILE "-wal", &st, 0) == 0 && st.st_size > 0);
	struct store *s = kit_open();

	assert_int_equal(kit_count(s), 201); /* what was committed is there */
	store_close(s);
}

/* The end of the log was not written: the last transactions are gone, whole ones, and no more. */
TEST(torn_log)
{
	(void)make_store();
	assert_int_equal(WTERMSIG(child_wait(child_start(write_and_die, NULL))), SIGKILL);
	_fd_ int wal = openat(dir, STORE_FILE "-wal", O_RDWR | O_CLOEXEC);

	assert_int_equal(ftruncate(wal, 2000), 0);
	struct store *s = kit_open();

	assert_int_equal(kit_count(s), 200);
	store_close(s);
}
