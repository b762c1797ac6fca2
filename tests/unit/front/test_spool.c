/* SPDX-License-Identifier: Apache-2.0 */
/* test_spool.c - Written bytes are read back, or reported as lost; and searched. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/output/spool.h"

#define MIB (UINT64_C(1) << 20)

struct kit {
	char dir[64];
	int dirfd;
	struct spool_bank bank;
};

static int setup(void **state)
{
	struct kit *k = calloc(1, sizeof(*k));
	struct err e = { 0 };

	(void)snprintf(k->dir, sizeof(k->dir), "/tmp/test-spool-XXXXXX");
	assert_non_null(mkdtemp(k->dir));
	k->dirfd = open(k->dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	assert_true(k->dirfd >= 0);
	assert_int_equal(spool_bank_open(&k->bank, k->dirfd, 16 * MIB, MIB, &e), 0);
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct kit *k = *state;

	assert_int_equal(k->bank.memory, 0);
	assert_int_equal(k->bank.blocks, 0);
	spool_bank_close(&k->bank);
	fd_close(k->dirfd);
	assert_int_equal(rmdir(k->dir), 0); /* and nothing was left in it */
	free(k);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Byte @i of the stream that tests write: a page never equals another. */
static char byte_at(uint64_t i)
{
	return (char)((i * 2654435761u) >> 13);
}

static void write_some(struct spool *s, uint64_t from, size_t len)
{
	char *data = malloc(len + 1);

	for (size_t i = 0; i < len; i++)
		data[i] = byte_at(from + i);
	spool_append(s, data, len);
	free(data);
}

static void check_some(const struct spool *s, uint64_t from, size_t len, size_t expected)
{
	char *data = malloc(len + 1);

	assert_int_equal(spool_read(s, from, data, len), expected);
	for (size_t i = 0; i < expected; i++)
		if (data[i] != byte_at(from + i))
			fail_msg("byte %llu is wrong", (unsigned long long)(from + i));
	free(data);
}

/* ---- keeping ------------------------------------------------------------------------------- */

TEST(everything_comes_back)
{
	struct kit *k = *test_state;
	struct spool s;
	unsigned int seed = 7;
	uint64_t at = 0;

	spool_init(&s, &k->bank, SPOOL_CAP);
	check_some(&s, 0, 10, 0);
	while (at < MIB) {
		size_t n = (size_t)rand_r(&seed) % 9000;

		write_some(&s, at, n);
		at += n;
	}
	assert_int_equal(s.bytes, at);
	assert_int_equal(s.kept, at);
	assert_int_equal(s.loss, SPOOL_WHOLE);
	check_some(&s, 0, (size_t)at, (size_t)at);
	for (int i = 0; i < 200; i++) {
		uint64_t from = (uint64_t)rand_r(&seed) % (at + 100);
		size_t len = (size_t)rand_r(&seed) % 200000;
		uint64_t left = from < at ? at - from : 0;

		check_some(&s, from, len, len < left ? len : (size_t)left);
	}
	spool_free(&s);
	spool_free(&s);
}

TEST(small_streams_need_no_block)
{
	struct kit *k = *test_state;
	struct spool s;

	spool_init(&s, &k->bank, SPOOL_CAP);
	write_some(&s, 0, SPOOL_MEMORY);
	assert_int_equal(k->bank.blocks, 0);
	write_some(&s, SPOOL_MEMORY, 1);
	assert_int_equal(k->bank.blocks, 1);
	check_some(&s, SPOOL_MEMORY - 3, 100, 4);
	spool_free(&s);
}

/* The beginning is in memory whatever others took, and goes to the file when the stream has ended.
 */
TEST(a_reserve_does_not_depend_on_others)
{
	static const uint64_t sizes[] = { 10, 3 * SPOOL_BLOCK - 5, 300000, MIB + 12345 };
	const uint64_t reserve = 200000;
	struct kit *k = *test_state;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct spool s, other;

		spool_init(&other, &k->bank, SPOOL_CAP);
		k->bank.memory += MIB; /* another spool has all of it */
		spool_init(&s, &k->bank, SPOOL_CAP);
		spool_reserve(&s, reserve);
		write_some(&s, 0, (size_t)sizes[i]);
		assert_true(s.memory.len >= (sizes[i] < reserve ? sizes[i] : reserve));
		check_some(&s, 0, (size_t)sizes[i], (size_t)sizes[i]);
		spool_settle(&s);
		assert_true(s.memory.len <= SPOOL_MEMORY);
		assert_int_equal(s.kept, sizes[i]);
		assert_int_equal(s.loss, SPOOL_WHOLE);
		check_some(&s, 0, (size_t)sizes[i], (size_t)sizes[i]);
		spool_free(&s);
		spool_free(&other);
		k->bank.memory -= MIB;
	}
}

TEST(a_reserve_that_the_file_has_no_room_for)
{
	struct kit *k = *test_state;
	struct spool s, other;

	spool_init(&other, &k->bank, SPOOL_CAP);
	write_some(&other, 0, 16 * MIB - SPOOL_BLOCK); /* with its memory two blocks are left */
	spool_init(&s, &k->bank, SPOOL_CAP);
	spool_reserve(&s, 8 * SPOOL_BLOCK);
	write_some(&s, 0, 7 * SPOOL_BLOCK);
	assert_int_equal(s.kept, 7 * SPOOL_BLOCK);
	spool_settle(&s);
	assert_int_equal(s.loss, SPOOL_BUDGET);
	assert_int_equal(s.kept, SPOOL_MEMORY + 2 * SPOOL_BLOCK);
	check_some(&s, 0, 7 * SPOOL_BLOCK, SPOOL_MEMORY + 2 * SPOOL_BLOCK);
	spool_free(&s);
	spool_free(&other);
}

TEST(streams_do_not_mix)
{
	struct kit *k = *test_state;
	struct spool s[5];
	uint64_t at[5];

	/* Each at its own offset of the pattern, turn by turn, with one that goes and comes back.
	 */
	for (size_t i = 0; i < 5; i++) {
		spool_init(&s[i], &k->bank, SPOOL_CAP);
		at[i] = 0;
	}
	for (int round = 0; round < 60; round++)
		for (size_t i = 0; i < 5; i++) {
			if (i == 2 && round == 30) {
				spool_free(&s[i]);
				spool_init(&s[i], &k->bank, SPOOL_CAP);
				at[i] = 0;
			}
			write_some(&s[i], at[i], 20000 + i);
			at[i] += 20000 + i;
		}
	for (size_t i = 0; i < 5; i++) {
		check_some(&s[i], 0, (size_t)at[i] + 5, (size_t)at[i]);
		spool_free(&s[i]);
	}
}

/* ---- losing -------------------------------------------------------------------------------- */

TEST(beyond_the_cap_is_counted)
{
	struct kit *k = *test_state;
	struct spool s;

	spool_init(&s, &k->bank, 300000);
	write_some(&s, 0, 299990);
	assert_int_equal(s.loss, SPOOL_WHOLE);
	write_some(&s, 299990, 1000);
	assert_int_equal(s.loss, SPOOL_OVER);
	assert_int_equal(s.kept, 300000);
	assert_int_equal(s.bytes, 300990);
	write_some(&s, 300990, 5);
	assert_int_equal(s.bytes, 300995);
	check_some(&s, 299000, 5000, 1000);
	assert_string_equal(spool_loss_name(s.loss), "stream_limit");
	spool_free(&s);
}

TEST(a_cap_that_is_met_exactly_loses_nothing)
{
	struct kit *k = *test_state;
	struct spool s;

	spool_init(&s, &k->bank, 100);
	write_some(&s, 0, 100);
	assert_int_equal(s.loss, SPOOL_WHOLE);
	assert_null(spool_loss_name(s.loss));
	spool_free(&s);
}

TEST(the_budget_is_for_all)
{
	struct kit *k = *test_state;
	struct spool a, b;

	spool_init(&a, &k->bank, 64 * MIB);
	spool_init(&b, &k->bank, 64 * MIB);
	for (uint64_t at = 0; at < 20 * MIB; at += MIB)
		write_some(&a, at, MIB);
	assert_int_equal(a.loss, SPOOL_BUDGET);
	assert_int_equal(a.kept, 16 * MIB + SPOOL_MEMORY);
	assert_int_equal(a.bytes, 20 * MIB);
	write_some(&b, 0, 100000);
	assert_int_equal(b.loss, SPOOL_BUDGET);
	assert_int_equal(b.kept, SPOOL_MEMORY);
	/* Blocks that were given back can be had again; lost output stays lost. */
	spool_free(&a);
	write_some(&b, 100000, 10);
	assert_int_equal(b.kept, SPOOL_MEMORY);
	spool_free(&b);
	spool_init(&b, &k->bank, 64 * MIB);
	write_some(&b, 0, MIB);
	check_some(&b, 0, MIB, MIB);
	spool_free(&b);
}

TEST(without_memory_it_goes_to_the_file)
{
	struct kit *k = *test_state;
	struct spool s[20];

	for (size_t i = 0; i < 20; i++) {
		spool_init(&s[i], &k->bank, SPOOL_CAP);
		write_some(&s[i], 0, SPOOL_MEMORY - 1);
	}
	assert_true(k->bank.memory <= k->bank.memory_max);
	assert_true(k->bank.blocks > 0);
	for (size_t i = 0; i < 20; i++) {
		check_some(&s[i], 0, SPOOL_MEMORY, SPOOL_MEMORY - 1);
		spool_free(&s[i]);
	}
}

TEST(without_a_file)
{
	struct spool_bank bank;
	struct spool s;

	assert_int_equal(spool_bank_open(&bank, -1, MIB, MIB, NULL), 0);
	spool_init(&s, &bank, SPOOL_CAP);
	write_some(&s, 0, 2 * SPOOL_MEMORY);
	assert_int_equal(s.kept, SPOOL_MEMORY);
	assert_int_equal(s.loss, SPOOL_BUDGET);
	check_some(&s, 0, 2 * SPOOL_MEMORY, SPOOL_MEMORY);
	spool_free(&s);
	spool_bank_close(&bank);
}

/* In a child, because of the mount. Exit code 77: not allowed here. */
static int on_small_disk(const char *dir)
{
	struct spool_bank bank;
	struct spool s;
	struct statfs before, after;
	char one;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, "size=1m") < 0)
		return 77;
	int dirfd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	if (spool_bank_open(&bank, dirfd, 16 * MIB, MIB, NULL) < 0)
		return 1;
	spool_init(&s, &bank, 64 * MIB);
	for (uint64_t at = 0; at < 3 * MIB; at += 50000)
		write_some(&s, at, 50000);
	if (s.loss != SPOOL_DISK || s.kept < MIB / 2 || s.kept > 2 * MIB || s.bytes < 3 * MIB)
		return 2;
	if (spool_read(&s, s.kept - 1, &one, 1) != 1 || one != byte_at(s.kept - 1) ||
	    spool_read(&s, s.kept, &one, 1) != 0)
		return 3;
	if (strcmp(spool_loss_name(s.loss), "disk") != 0)
		return 4;
	/* Freed, the disk has its room again. */
	(void)statfs(dir, &before);
	spool_free(&s);
	(void)statfs(dir, &after);
	if (after.f_bfree <= before.f_bfree)
		return 5;
	spool_init(&s, &bank, 64 * MIB);
	write_some(&s, 0, 500000);
	bool whole = s.loss == SPOOL_WHOLE;

	spool_free(&s);
	spool_bank_close(&bank);
	return whole ? 0 : 6;
}

TEST(a_full_disk)
{
	struct kit *k = *test_state;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(on_small_disk(k->dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: no file system of our own here (not root)\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(blocks_given_back_are_holes)
{
	struct kit *k = *test_state;
	struct spool a, b;
	struct stat before, after;

	spool_init(&a, &k->bank, 64 * MIB);
	spool_init(&b, &k->bank, 64 * MIB);
	for (uint64_t at = 0; at < 4 * MIB; at += MIB) {
		write_some(&a, at, MIB);
		write_some(&b, at, MIB);
	}
	(void)fsync(k->bank.fd);
	assert_int_equal(fstat(k->bank.fd, &before), 0);
	spool_free(&a);
	(void)fsync(k->bank.fd);
	assert_int_equal(fstat(k->bank.fd, &after), 0);
	assert_true(after.st_blocks < before.st_blocks * 3 / 4);
	check_some(&b, 0, 4 * MIB, 4 * MIB);
	spool_free(&b);
	assert_int_equal(fstat(k->bank.fd, &after), 0);
	assert_int_equal(after.st_size, 0);
}

TEST(leftovers_are_removed)
{
	struct kit *k = *test_state;
	struct spool_bank other;

	fd_close(openat(k->dirfd, "spool.tmp", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(spool_bank_open(&other, k->dirfd, MIB, MIB, NULL), 0);
	assert_int_equal(faccessat(k->dirfd, "spool.tmp", F_OK, 0), -1);
	spool_bank_close(&other);
}

/* ---- searching ----------------------------------------------------------------------------- */

struct found {
	size_t n;
	uint64_t offset[400], line[400];
	char text[400][80]; /* the beginning */
	size_t len[400];
};

static void on_match(void *arg, uint64_t offset, uint64_t line, const char *text, size_t len)
{
	struct found *f = arg;

	assert_true(f->n < 400);
	assert_true(len <= SPOOL_LINE_MAX);
	f->offset[f->n] = offset;
	f->line[f->n] = line;
	f->len[f->n] = len;
	(void)snprintf(f->text[f->n], sizeof(f->text[0]), "%.*s", (int)len, text);
	f->n++;
}

/* To the end, @matches lines and @bytes at a time. */
static void search_all(const struct spool *s, const char *pattern, size_t matches, uint64_t bytes,
		       struct found *f)
{
	struct spool_search at = { 0 };
	struct spool_pattern p;
	int r;

	assert_true(spool_pattern_make(&p, pattern, strlen(pattern), false));
	f->n = 0;
	do {
		size_t before = f->n;

		r = spool_search(s, &at, &p, matches, bytes, on_match, f);
		assert_true(r >= 0);
		assert_true(f->n - before <= matches);
	} while (r == 1);
}

static void put(struct spool *s, const char *text)
{
	spool_append(s, text, strlen(text));
}

TEST(search_finds_each_line_once)
{
	struct kit *k = *test_state;
	struct spool s;
	struct found f;

	spool_init(&s, &k->bank, SPOOL_CAP);
	put(&s, "alpha\nbeta error here error\n\nerror\ngamma\nlast error");
	search_all(&s, "error", 100, MIB, &f);
	assert_int_equal(f.n, 3);
	assert_int_equal(f.line[0], 2);
	assert_int_equal(f.offset[0], 11);
	assert_string_equal(f.text[0], "beta error here error");
	assert_int_equal(f.line[1], 4);
	assert_string_equal(f.text[1], "error");
	assert_int_equal(f.line[2], 6);
	assert_string_equal(f.text[2], "last error");
	search_all(&s, "nowhere", 100, MIB, &f);
	assert_int_equal(f.n, 0);
	/* One at a time: the same. */
	search_all(&s, "error", 1, MIB, &f);
	assert_int_equal(f.n, 3);
	assert_int_equal(f.line[2], 6);
	spool_free(&s);
}

/* A match at every position around the borders of memory, blocks and windows. */
TEST(search_across_borders)
{
	static const char pattern[] = "needle-in-the-stream";
	struct kit *k = *test_state;
	char *filler = malloc(SPOOL_BLOCK * 4);

	memset(filler, 'x', SPOOL_BLOCK * 4);
	for (size_t i = 99; i < SPOOL_BLOCK * 4; i += 100)
		filler[i] = '\n';
	for (size_t border = SPOOL_BLOCK; border <= 3 * SPOOL_BLOCK; border += SPOOL_BLOCK)
		for (size_t back = 0; back <= sizeof(pattern); back++) {
			struct spool s;
			struct found f;
			size_t at = border - back;

			spool_init(&s, &k->bank, SPOOL_CAP);
			spool_append(&s, filler, at);
			put(&s, pattern);
			put(&s, "\n");
			spool_append(&s, filler, 1000);
			search_all(&s, pattern, 10, 1, &f);
			assert_int_equal(f.n, 1);
			assert_int_equal(f.offset[0], at);
			assert_int_equal(f.line[0], at / 100 + 1);
			spool_free(&s);
		}
	free(filler);
}

TEST(search_in_long_lines)
{
	struct kit *k = *test_state;
	struct spool s;
	struct found f;
	char *filler = malloc(300000);

	memset(filler, 'y', 300000);
	spool_init(&s, &k->bank, SPOOL_CAP);
	spool_append(&s, filler, 300000);
	put(&s, "HIT");
	spool_append(&s, filler, 300000);
	put(&s, "HIT\nHIT\n");
	search_all(&s, "HIT", 10, 70000, &f);
	assert_int_equal(f.n, 2); /* the first line once */
	assert_int_equal(f.offset[0], 300000);
	assert_int_equal(f.line[0], 1);
	assert_int_equal(f.len[0], SPOOL_LINE_MAX);
	assert_int_equal(f.line[1], 2);
	assert_string_equal(f.text[1], "HIT");
	spool_free(&s);

	/* A line that is cut keeps what was looked for. */
	struct spool_search at = { 0 };
	struct spool_pattern p;

	spool_init(&s, &k->bank, SPOOL_CAP);
	spool_append(&s, filler, 10000);
	put(&s, "HIT\n");
	f.n = 0;
	assert_true(spool_pattern_make(&p, "HIT", 3, false));
	assert_int_equal(spool_search(&s, &at, &p, 10, MIB, on_match, &f), 0);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.len[0], 256 + 3);
	spool_free(&s);
	free(filler);
}

/* Against the plain way to do it. */
TEST(search_agrees_with_a_simple_one)
{
	struct kit *k = *test_state;
	unsigned int seed = 11;
	size_t len = 400000;
	char *text = malloc(len + 1);

	for (int round = 0; round < 20; round++) {
		struct spool s;
		struct found f;
		size_t n = 0, line = 1;

		for (size_t i = 0; i < len; i++)
			text[i] = "ab\nccccccccccccccccccccccccccccc"[rand_r(&seed) % 32];
		text[len] = '\0';
		spool_init(&s, &k->bank, SPOOL_CAP);
		spool_append(&s, text, len);
		search_all(&s, "abab", (size_t)rand_r(&seed) % 5 + 1,
			   (uint64_t)rand_r(&seed) % 200000 + 1, &f);
		for (char *l = text, *nl; l; l = nl ? nl + 1 : NULL, line++) {
			nl = strchr(l, '\n');
			if (nl)
				*nl = '\0';
			char *hit = strstr(l, "abab");

			if (!hit)
				continue;
			assert_true(n < f.n);
			assert_int_equal(f.offset[n], hit - text);
			assert_int_equal(f.line[n], line);
			n++;
		}
		assert_int_equal(f.n, n);
		spool_free(&s);
	}
	free(text);
}

/* The plain way to match a glob anywhere in a line, which tries everything. */
static bool glob_here(const char *p, const char *t, const char *end)
{
	if (!*p)
		return true;
	if (*p == '*')
		return glob_here(p + 1, t, end) || (t < end && glob_here(p, t + 1, end));
	if (t == end || (*p != '?' && *p != *t))
		return false;
	return glob_here(p + 1, t + 1, end);
}

static size_t count_lines(const char *text, const char *pattern)
{
	size_t n = 0;

	for (const char *line = text; *line;) {
		const char *end = strchrnul(line, '\n');
		bool hit = false;

		for (const char *t = line; t <= end && !hit; t++)
			hit = glob_here(pattern, t, end);
		n += hit;
		line = *end ? end + 1 : end;
	}
	return n;
}

TEST(globs)
{
	static const char *const patterns[] = { "a*b", "?a",  "a?b*c", "ab",
						"*a*", "a??", "?",     "b*a*b" };
	struct kit *k = *test_state;
	char text[201];
	unsigned int seed = 7;

	for (size_t round = 0; round < 300; round++) {
		struct spool s;
		struct spool_search at = { 0 };
		struct spool_pattern p;
		struct found f = { 0 };
		const char *pattern = patterns[round % ARRAY_SIZE(patterns)];

		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			seed = seed * 1103515245u + 12345u;
			text[i] = "aabcc\n"[(seed >> 16) % 6];
		}
		text[sizeof(text) - 1] = '\0';
		spool_init(&s, &k->bank, SPOOL_CAP);
		put(&s, text);
		assert_true(spool_pattern_make(&p, pattern, strlen(pattern), true));
		int r = 1;
		size_t n = 0;

		while (r == 1) { /* one by one, each from where the last one ended */
			struct spool_search next = { .from = at.offset };

			at = next;
			f.n = 0;
			do
				r = spool_search(&s, &at, &p, 1 - f.n, MIB, on_match, &f);
			while (r == 1 && at.matched);
			n += f.n;
		}
		assert_int_equal(n, count_lines(text, pattern));
		spool_free(&s);
	}
}

TEST(a_glob_over_a_border)
{
	struct kit *k = *test_state;
	char *filler = malloc(100000);
	struct spool_search at = { 0 };
	struct spool_pattern p;
	struct found f = { 0 };
	struct spool s;

	memset(filler, '.', 100000);
	spool_init(&s, &k->bank, SPOOL_CAP);
	put(&s, "one\nbegin");
	spool_append(&s, filler, 100000);
	put(&s, "end\nbegin\nend\n\\*x");
	assert_true(spool_pattern_make(&p, "begin*e?d", 9, true));
	assert_int_equal(spool_search(&s, &at, &p, 10, MIB, on_match, &f), 0);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.line[0], 2);
	at = (struct spool_search){ 0 };
	f.n = 0;
	assert_true(spool_pattern_make(&p, "\\\\\\*x", 5, true));
	assert_int_equal(spool_search(&s, &at, &p, 10, MIB, on_match, &f), 0);
	assert_int_equal(f.n, 1);
	spool_free(&s);
	free(filler);
}

TEST(search_refuses_invalid_patterns)
{
	struct kit *k = *test_state;
	struct spool_search at = { 0 };
	struct found f = { 0 };
	char long_one[SPOOL_PATTERN_MAX + 1];
	struct spool_pattern p;
	struct spool s;

	memset(long_one, 'x', sizeof(long_one));
	spool_init(&s, &k->bank, SPOOL_CAP);
	assert_false(spool_pattern_make(&p, "", 0, false));
	assert_false(spool_pattern_make(&p, "**", 2, true));
	assert_false(spool_pattern_make(&p, "a\nb", 3, true));
	assert_false(spool_pattern_make(&p, long_one, sizeof(long_one), false));
	assert_true(spool_pattern_make(&p, "x", 1, false));
	assert_int_equal(spool_search(&s, &at, &p, 1, 1, on_match, &f), 0); /* nothing there */
	spool_free(&s);
}
