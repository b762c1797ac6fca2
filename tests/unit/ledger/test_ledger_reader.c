/* SPDX-License-Identifier: Apache-2.0 */
/* test_ledger_reader.c - The report of a reader on ledgers that were tampered with, or are being
 * written. */
#include "ledger_kit.h"

#include <sys/wait.h>

struct unit_fixture unit_fixture = { kit_setup, kit_teardown };

/* Lines of the current file as strings without newlines; the last is NULL. */
static size_t split(char *data, char **lines)
{
	size_t n = 0;
	char *save = NULL;

	for (char *l = strtok_r(data, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		lines[n++] = l;
	return n;
}

static void put_lines(struct kit *k, const char *name, char **lines, size_t n)
{
	_fd_ int fd = openat(k->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (size_t i = 0; i < n; i++)
		assert_true(dprintf(fd, "%s\n", lines[i]) > 0);
}

static void assert_damage(struct kit *k, const char *file, uint64_t line, const char *why)
{
	struct reader_report r = kit_verify(k);

	assert_true(r.damaged);
	assert_string_equal(r.file, file);
	assert_int_equal(r.line, line);
	if (!strstr(r.why, why))
		fail_msg("'%s' is not in '%s'", why, r.why);
}

TEST(lines_removed_swapped_repeated)
{
	struct kit *k = *test_state;
	char *lines[8], *tmp;

	kit_open(k);
	kit_fill(k, 5);
	_mem_ char *data = kit_read(k, LEDGER_CURRENT, NULL);

	assert_int_equal(split(data, lines), 5);
	put_lines(k, LEDGER_CURRENT, lines, 5);
	assert_false(kit_verify(k).damaged);
	tmp = lines[1];
	lines[1] = lines[2];
	lines[2] = tmp;
	put_lines(k, LEDGER_CURRENT, lines, 5);
	assert_damage(k, LEDGER_CURRENT, 2, "number 2 is missing");
	lines[1] = lines[0];
	put_lines(k, LEDGER_CURRENT, lines, 5);
	assert_damage(k, LEDGER_CURRENT, 2, "swapped, repeated or put in");
	lines[1] = lines[2] = lines[3];
	put_lines(k, LEDGER_CURRENT, lines, 2);
	assert_damage(k, LEDGER_CURRENT, 2, "numbers 2 to 3 are missing");
	char empty[] = "";

	lines[1] = empty;
	put_lines(k, LEDGER_CURRENT, lines, 2);
	assert_damage(k, LEDGER_CURRENT, 2, "too short");
}

TEST(files_removed_renamed_emptied)
{
	struct kit *k = *test_state;
	const char *second = "ledger-00000000000000000004.jsonl";

	k->file_bytes = 800;
	kit_open(k);
	kit_fill(k, 10);
	assert_int_equal(kit_verify(k).files, 4);
	assert_int_equal(renameat(k->dir, second, k->dir, "ledger-00000000000000000005.jsonl"), 0);
	assert_damage(k, "ledger-00000000000000000005.jsonl", 1, "name says");
	assert_int_equal(renameat(k->dir, "ledger-00000000000000000005.jsonl", k->dir, second), 0);
	assert_false(kit_verify(k).damaged);
	assert_int_equal(renameat(k->dir, second, k->dir, "kept"), 0);
	assert_damage(k, "ledger-00000000000000000007.jsonl", 1, "numbers 4 to 6 are missing");
	kit_write(k, second, "", 0);
	assert_damage(k, second, 1, "empty");
	assert_int_equal(unlinkat(k->dir, second, 0), 0);
	/* From the beginning: no damage in itself, but the report has the first line. */
	assert_int_equal(unlinkat(k->dir, "ledger-00000000000000000001.jsonl", 0), 0);

	struct reader_report r = kit_verify(k);

	assert_false(r.damaged);
	assert_int_equal(r.first_seq, 7);
	/* Names that are not ours do not matter. */
	kit_write(k, "ledger-1.jsonl", "x\n", 2);
	kit_write(k, "ledger-99999999999999999999.jsonl", "x\n", 2);
	kit_write(k, "ledger-00000000000000000007.jsonl.bak", "x\n", 2);
	assert_false(kit_verify(k).damaged);
}

struct seen {
	unsigned int good, bad;
	int stop_after;
};

static int count(const struct reader_line *line, const struct reader_report *so_far, void *arg)
{
	struct seen *s = arg;

	assert_int_equal(line->text[0], '{');
	assert_in_range(so_far->bytes, 1, so_far->total_bytes);
	if (line->good)
		s->good++;
	else
		s->bad++;
	return s->stop_after > 0 && (int)s->good == s->stop_after ? -ECANCELED : 0;
}

TEST(goes_on_after_damage_when_asked)
{
	struct kit *k = *test_state;
	struct seen seen = { 0 };
	struct reader_report r;
	size_t len;

	k->file_bytes = 800;
	kit_open(k);
	kit_fill(k, 8);
	_mem_ char *data = kit_read(k, "ledger-00000000000000000001.jsonl", &len);

	*strstr(data, "\"i\":1") = 'x';
	kit_write(k, "ledger-00000000000000000001.jsonl", data, len);
	assert_int_equal(reader_run(k->dir, true, count, &seen, &r, NULL), 0);
	assert_true(r.damaged);
	assert_int_equal(r.line, 2);
	assert_int_equal(seen.good, 1);
	assert_int_equal(seen.bad, 7);
	assert_int_equal(r.head.seq, 1);
	seen = (struct seen){ 0 };
	assert_int_equal(reader_run(k->dir, false, count, &seen, &r, NULL), 0);
	assert_int_equal(seen.good + seen.bad, 1);
	seen = (struct seen){ .stop_after = 1 };
	assert_int_equal(reader_run(k->dir, true, count, &seen, &r, NULL), -ECANCELED);
}

/* Somebody writes and rotates all the time; a reader must never see damage. */
TEST(while_it_is_written)
{
	struct kit *k = *test_state;
	int reads = 0, status;
	uint64_t last = 0;

	k->file_bytes = 2000;
	kit_open(k);
	kit_fill(k, 1);
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < 3000; i++)
			if (kit_append(k, i) < 0)
				_exit(1);
		_exit(0);
	}
	do {
		struct reader_report r = kit_verify(k);

		if (r.damaged)
			fail_msg("%s, line %d: %s", r.file, (int)r.line, r.why);
		assert_true(r.head.seq >= last);
		last = r.head.seq;
		reads++;
	} while (waitpid(pid, &status, WNOHANG) == 0);
	assert_int_equal(status, 0);
	assert_int_equal(kit_verify(k).lines, 3001);
	assert_true(reads > 0);
}

TEST(nothing_there)
{
	struct kit *k = *test_state;
	struct reader_report r;

	assert_int_equal(reader_run(k->dir, false, NULL, NULL, &r, &k->e), -ENOENT);
	kit_open(k);
	r = kit_verify(k);
	assert_false(r.damaged);
	assert_int_equal(r.first_seq, 0);
}
