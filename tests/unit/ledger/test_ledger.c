/* SPDX-License-Identifier: Apache-2.0 */
/* test_ledger.c - Append, rotate, and come back after crashes, full disks and strangers' hands. */
#include "../child.h"
#include "ledger_kit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

struct unit_fixture unit_fixture = { kit_setup, kit_teardown };

/* Thousands of openings in a row need no disk under them. */
static bool no_disk;

int fsync(int fd)
{
	return no_disk ? 0 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return no_disk ? 0 : (int)syscall(SYS_fdatasync, fd);
}

TEST(survives_reopening)
{
	struct kit *k = *test_state;

	kit_open(k);
	assert_int_equal(kit_verify(k).head.seq, 0);
	kit_fill(k, 3);
	assert_int_equal(ledger_sync(k->ledger, &k->e), 0);
	kit_open(k);
	assert_int_equal(kit_verify(k).head.seq, 3);
	kit_fill(k, 2);

	struct reader_report r = kit_verify(k);

	assert_false(r.damaged);
	assert_int_equal(r.lines, 5);
	assert_int_equal(r.first_seq, 1);
	assert_int_equal(r.head.seq, 5);
}

TEST(rotates)
{
	struct kit *k = *test_state;

	k->file_bytes = 800; /* three lines each */
	kit_open(k);
	kit_fill(k, 4);
	assert_non_null(kit_find(k, "ledger-00000000000000000001.jsonl"));
	kit_fill(k, 3);
	assert_non_null(kit_find(k, "ledger-00000000000000000004.jsonl"));
	kit_open(k);
	kit_fill(k, 3);

	struct reader_report r = kit_verify(k);

	assert_false(r.damaged);
	assert_int_equal(r.lines, 10);
	assert_int_equal(r.files, 4);
}

/* A crash between the rename and the new file. */
TEST(goes_on_without_a_current_file)
{
	struct kit *k = *test_state;

	kit_open(k);
	kit_fill(k, 3);
	assert_int_equal(
		renameat(k->dir, LEDGER_CURRENT, k->dir, "ledger-00000000000000000001.jsonl"), 0);
	kit_open(k);
	assert_int_equal(kit_verify(k).head.seq, 3);
	kit_fill(k, 1);
	assert_false(kit_verify(k).damaged);
	/* The older files were archived: the current one still begins in the middle. */
	assert_int_equal(unlinkat(k->dir, "ledger-00000000000000000001.jsonl", 0), 0);
	kit_open(k);
	kit_fill(k, 1);
	assert_int_equal(kit_verify(k).first_seq, 4);
}

TEST(rotation_overwrites_nothing)
{
	struct kit *k = *test_state;

	k->file_bytes = 800;
	kit_open(k);
	kit_fill(k, 3);
	kit_write(k, "ledger-00000000000000000001.jsonl", "precious", 8);
	assert_int_equal(kit_append(k, 3), -EEXIST);
	assert_int_equal(unlinkat(k->dir, "ledger-00000000000000000001.jsonl", 0), 0);
	kit_fill(k, 1);
	assert_int_equal(kit_verify(k).lines, 4);
}

/* Every length that a crash can leave of the last line. */
TEST(torn_line_is_set_aside)
{
	struct kit *k = *test_state;
	size_t len, whole;

	kit_open(k);
	kit_fill(k, 2);
	_mem_ char *good = kit_read(k, LEDGER_CURRENT, &len);

	whole = (size_t)(strchr(good, '\n') + 1 - good);
	for (size_t n = whole + 1; n < len; n += 13) {
		kit_write(k, LEDGER_CURRENT, good, n);
		assert_true(kit_verify(k).damaged);
		assert_int_equal(kit_verify(k).torn, n - whole);
		kit_open(k);
		assert_int_equal(kit_verify(k).head.seq, 2); /* the event `recovered` */
		kit_fill(k, 1);
		assert_false(kit_verify(k).damaged);

		const char *name = kit_find(k, "ledger.torn-");
		size_t torn_len;

		assert_non_null(name);
		_mem_ char *torn = kit_read(k, name, &torn_len);
		_mem_ char *now = kit_read(k, LEDGER_CURRENT, NULL);

		assert_int_equal(torn_len, n - whole);
		assert_memory_equal(torn, good + whole, torn_len);
		assert_memory_equal(now, good, whole);
		assert_non_null(strstr(now, "\"event\":\"recovered\""));
		assert_non_null(strstr(now, name));
		assert_int_equal(unlinkat(k->dir, name, 0), 0);
	}
}

/* Every byte prefix of the file that is written, alone and behind a rotated one: whole lines stay,
 * and it goes on. */
static void check_prefixes(struct kit *k, uint64_t lines_before)
{
	size_t len;
	_mem_ char *good = kit_read(k, LEDGER_CURRENT, &len);
	uint64_t whole = lines_before;

	no_disk = true;
	for (size_t n = 0; n <= len; n++) {
		bool torn = n > 0 && good[n - 1] != '\n';

		whole += n > 0 && !torn;
		/* A new file: one that is cut short and written again waits for the disk. */
		assert_int_equal(unlinkat(k->dir, LEDGER_CURRENT, 0), 0);
		kit_write(k, LEDGER_CURRENT, good, n);
		kit_open(k);
		assert_int_equal(kit_verify(k).head.seq, whole + torn);
		kit_fill(k, 1);
		assert_false(kit_verify(k).damaged);
		for (const char *name; (name = kit_find(k, "ledger.torn-"));)
			assert_int_equal(unlinkat(k->dir, name, 0), 0);
	}
	no_disk = false;
}

TEST(every_prefix_loads)
{
	struct kit *k = *test_state;

	kit_open(k);
	kit_fill(k, 3);
	check_prefixes(k, 0);
}

TEST(every_prefix_behind_a_rotated_file)
{
	struct kit *k = *test_state;
	size_t len;

	k->file_bytes = 800;
	kit_open(k);
	kit_fill(k, 5);
	_mem_ char *old = kit_read(k, "ledger-00000000000000000001.jsonl", &len);
	uint64_t lines = 0;

	for (size_t i = 0; i < len; i++)
		lines += old[i] == '\n';
	k->file_bytes = 0;
	check_prefixes(k, lines);
}

/* Blocks that were allocated and never written, longer than any line. */
TEST(empty_blocks_at_the_end)
{
	struct kit *k = *test_state;
	struct stat st;

	kit_open(k);
	kit_fill(k, 1);
	_fd_ int fd = openat(k->dir, LEDGER_CURRENT, O_RDWR | O_CLOEXEC);

	assert_true(fstat(fd, &st) == 0 && ftruncate(fd, st.st_size + 5 * CHAIN_LINE_MAX) == 0);
	kit_open(k);
	assert_false(kit_verify(k).damaged);
	assert_int_equal(fstatat(k->dir, kit_find(k, "ledger.torn-"), &st, 0), 0);
	assert_int_equal(st.st_size, 5 * CHAIN_LINE_MAX);
	/* Only that nothing ends it makes it a torn line. */
	assert_true(lseek(fd, 20000, SEEK_END) > 20000);
	assert_int_equal(write(fd, "\n", 1), 1);
	assert_int_equal(kit_try_open(k), -EBADMSG);
	assert_non_null(strstr(k->e.msg, "ledger.jsonl, line 3: the line is longer"));
}

TEST(damage_stops_the_start)
{
	struct kit *k = *test_state;
	size_t len;

	kit_open(k);
	kit_fill(k, 3);
	_mem_ char *data = kit_read(k, LEDGER_CURRENT, &len);

	*strstr(data, "\"i\":1") = 'x';
	kit_write(k, LEDGER_CURRENT, data, len);
	assert_int_equal(kit_try_open(k), -EBADMSG);
	/* File, line, what it is, and the way out. */
	assert_non_null(strstr(k->e.msg, "ledger.jsonl, line 2: the line was changed"));
	assert_non_null(strstr(k->e.msg, "caisson audit verify"));
	assert_non_null(strstr(k->e.msg, "move it away"));
	/* Nothing was touched. */
	_mem_ char *after = kit_read(k, LEDGER_CURRENT, NULL);

	assert_string_equal(after, data);
}

TEST(damage_across_files_stops_the_start)
{
	struct kit *k = *test_state;
	const char *rotated = "ledger-00000000000000000001.jsonl";
	size_t len;

	k->file_bytes = 800;
	kit_open(k);
	kit_fill(k, 4);
	_mem_ char *data = kit_read(k, rotated, &len);
	char *last = memrchr(data, '\n', len - 1);

	/* The last line of the older file is gone, or is cut. */
	kit_write(k, rotated, data, (size_t)(last + 1 - data));
	assert_int_equal(kit_try_open(k), -EBADMSG);
	assert_non_null(strstr(k->e.msg, "ledger.jsonl, line 1: line number 3 is missing"));
	kit_write(k, rotated, data, len - 5);
	assert_int_equal(kit_try_open(k), -EBADMSG);
	assert_non_null(strstr(k->e.msg, rotated));
	kit_write(k, rotated, data, len);
	kit_open(k);
}

TEST(refuses_other_than_files)
{
	struct kit *k = *test_state;

	assert_int_equal(symlinkat("elsewhere", k->dir, LEDGER_CURRENT), 0);
	assert_int_equal(kit_try_open(k), -ELOOP);
	assert_int_equal(unlinkat(k->dir, LEDGER_CURRENT, 0), 0);
	assert_int_equal(mkfifoat(k->dir, LEDGER_CURRENT, 0600), 0);
	assert_int_equal(kit_try_open(k), -EINVAL);
}

/* A write that is cut short: as on a full disk, at every length of the room that is left. */
static void run_short_writes(void *arg)
{
	struct kit *k = arg;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct stat st;

	CHILD_CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	CHILD_CHECK(kit_append(k, 0) == 0 && fstatat(k->dir, LEDGER_CURRENT, &st, 0) == 0);
	for (rlim_t room = 0; room < 240; room += 7) {
		uint64_t seq = kit_verify(k).head.seq;

		limit.rlim_cur = (rlim_t)st.st_size + room;
		CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
		for (int i = 0; i < 2; i++) {
			int r = kit_append(k, 1);

			CHILD_CHECK(r == -ENOSPC || r == -EFBIG);
			CHILD_CHECK(kit_verify(k).head.seq == seq);
		}
		struct stat now;

		CHILD_CHECK(fstatat(k->dir, LEDGER_CURRENT, &now, 0) == 0);
		CHILD_CHECK(now.st_size == st.st_size);
	}
	limit.rlim_cur = RLIM_INFINITY;
	CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHILD_CHECK(kit_append(k, 2) == 0);
}

TEST(short_write_leaves_nothing)
{
	struct kit *k = *test_state;

	kit_open(k);
	child_run(run_short_writes, k);
	assert_false(kit_verify(k).damaged);
	assert_int_equal(kit_verify(k).lines, 2);
}

TEST(notices_strangers)
{
	struct kit *k = *test_state;

	kit_open(k);
	kit_fill(k, 2);
	_fd_ int fd = openat(k->dir, LEDGER_CURRENT, O_RDWR | O_APPEND | O_CLOEXEC);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(write(fd, "x\n", 2), 2);
	assert_int_equal(kit_append(k, 2), -ESTALE);
	assert_int_equal(ftruncate(fd, st.st_size), 0);
	assert_int_equal(kit_append(k, 2), 0);
	/* Removed: a line would be lost. */
	assert_int_equal(unlinkat(k->dir, LEDGER_CURRENT, 0), 0);
	assert_int_equal(kit_append(k, 3), -ESTALE);
}

/* A mistake in an event refuses that event, and nothing after it. */
TEST(goes_on_after_a_bad_event)
{
	struct kit *k = *test_state;

	kit_open(k);
	assert_int_equal(ledger_record(k->ledger, &k->e, "test", NULL, NULL, L_STR("hash", "mine")),
			 -EINVAL);
	kit_fill(k, 1);
	assert_int_equal(kit_verify(k).lines, 1);
}

static void run_unprivileged(void *arg)
{
	struct kit *k = arg;

	CHILD_CHECK(geteuid() != 0 ||
		    (setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 &&
		     setresuid(65534, 65534, 65534) == 0));
	CHILD_CHECK(kit_try_open(k) == -EACCES);
	CHILD_CHECK(strstr(k->e.msg, LEDGER_CURRENT) != NULL);
}

TEST(directory_that_cannot_be_written)
{
	struct kit *k = *test_state;

	assert_int_equal(fchmod(k->dir, 0555), 0);
	child_run(run_unprivileged, k);
	assert_int_equal(fchmod(k->dir, 0700), 0);
}
