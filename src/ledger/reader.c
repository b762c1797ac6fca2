/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - Files in order, lines in order, and the first thing that does not fit.
 *
 * A daemon may write and rotate meanwhile. So the current file is opened first and the others are
 * listed then: if it was rotated in between, it is in the list too, with the same inode, and is
 * read in its place there, as the last one. An end without a newline may be a line that is just
 * being written: it gets a moment to become whole.
 */
#include "ledger/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "ledger/ledger.h"

#define SETTLE_TRIES 10
#define SETTLE_NS 20000000L

struct reader {
	int dirfd;
	bool past_damage;
	reader_fn fn;
	void *arg;
	struct chain *chain;
	struct scan *scan;
	struct chain_link link;
	struct reader_report *report;
};

static void damage(struct reader *r, const char *file, uint64_t line, const char *why)
{
	r->link.known = false;
	if (r->report->damaged)
		return;
	r->report->damaged = true;
	(void)snprintf(r->report->file, sizeof(r->report->file), "%s", file);
	r->report->line = line;
	(void)snprintf(r->report->why, sizeof(r->report->why), "%.255s", why);
}

static int take_line(struct reader *r, const char *file, uint64_t named, const char *text,
		     size_t len, struct err *e)
{
	struct err why = { 0 };
	struct reader_report *report = r->report;
	struct reader_line line = { file, scan_lines(r->scan), text, len, false };
	uint64_t before = report->bytes;
	int code = chain_check(r->chain, text, len, &r->link, &why);

	if (code < 0 && code != -EBADMSG)
		return err_say(e, code, "%s", why.msg);
	report->lines++;
	report->bytes = before + len + 1;
	if (code < 0)
		damage(r, file, line.line, why.msg);
	else if (line.line == 1 && named != 0 && r->link.seq != named)
		damage(r, file, 1, "the file's name says that it begins with another line");
	if (!report->damaged) {
		line.good = true;
		report->head = r->link;
		if (report->first_seq == 0)
			report->first_seq = r->link.seq;
	} else if (!r->past_damage) {
		return 0;
	}
	return r->fn ? r->fn(&line, report, r->arg) : 0;
}

/* At the end of the current file: wait for what may be half a write. 1 when there is more now. */
static int settle(struct reader *r, const char **text, size_t *len)
{
	const struct timespec moment = { .tv_nsec = SETTLE_NS };
	int code = 0;

	for (int i = 0; i < SETTLE_TRIES && code == 0 && scan_rest(r->scan) > 0; i++) {
		(void)nanosleep(&moment, NULL);
		scan_again(r->scan);
		code = scan_next(r->scan, text, len);
	}
	return code;
}

/* @named: the number that the file's name gives its first line; 0 for the current one. */
static int read_file(struct reader *r, const char *file, int fd, uint64_t named, struct err *e)
{
	struct reader_report *report = r->report;
	const char *text;
	size_t len;
	int code;

	report->files++;
	scan_begin(r->scan, fd);
	while (!report->damaged || r->past_damage) {
		code = scan_next(r->scan, &text, &len);
		if (code == 0 && named == 0)
			code = settle(r, &text, &len);
		if (code == 0)
			break;
		if (code == -EMSGSIZE) {
			damage(r, file, scan_lines(r->scan),
			       "the line is longer than a line can be");
			continue;
		}
		if (code < 0)
			return err_set(e, code, "read %s", file);
		code = take_line(r, file, named, text, len, e);
		if (code < 0)
			return code;
	}
	if (report->damaged && !r->past_damage)
		return 0;
	if (scan_rest(r->scan) > 0) {
		report->torn = scan_rest(r->scan);
		damage(r, file, scan_lines(r->scan) + 1,
		       named ? "the last line is cut off" :
			       "the last line is cut off; the next start of the daemon sets it aside");
	} else if (named != 0 && scan_lines(r->scan) == 0) {
		damage(r, file, 1, "the file is empty");
	}
	return 0;
}

static int open_rotated(const struct reader *r, uint64_t seq, char name[NAMES_ROOM], struct err *e)
{
	int fd = openat(r->dirfd, names_rotated(seq, name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_set(e, -errno, "open %s", name) : fd;
}

/* Add up sizes, for progress; find out whether the current file is among the rotated by now. */
static bool measure(struct reader *r, int current, const uint64_t *seqs, size_t n)
{
	struct stat mine = { 0 }, st;
	char name[NAMES_ROOM];
	bool among = false;

	if (current >= 0 && fstat(current, &mine) == 0)
		r->report->total_bytes += (uint64_t)mine.st_size;
	for (size_t i = 0; i < n; i++) {
		if (fstatat(r->dirfd, names_rotated(seqs[i], name), &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (current >= 0 && st.st_ino == mine.st_ino && st.st_dev == mine.st_dev)
			among = true;
		else
			r->report->total_bytes += (uint64_t)st.st_size;
	}
	return among;
}

static int read_all(struct reader *r, struct err *e)
{
	_mem_ uint64_t *seqs = NULL;
	size_t n = 0;
	_fd_ int current =
		openat(r->dirfd, LEDGER_CURRENT, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int code;

	if (current < 0 && errno != ENOENT)
		return err_set(e, -errno, "open " LEDGER_CURRENT);
	if (names_list(r->dirfd, &seqs, &n, e) < 0)
		return e->code;
	if (current < 0 && n == 0)
		return err_say(e, -ENOENT, "there is no ledger here");
	if (measure(r, current, seqs, n))
		current = fd_close(current);
	for (size_t i = 0; i < n && (!r->report->damaged || r->past_damage); i++) {
		char name[NAMES_ROOM];
		_fd_ int fd = open_rotated(r, seqs[i], name, e);

		code = fd < 0 ? fd : read_file(r, name, fd, seqs[i], e);
		if (code < 0)
			return code;
	}
	if (current >= 0 && (!r->report->damaged || r->past_damage))
		return read_file(r, LEDGER_CURRENT, current, 0, e);
	return 0;
}

int reader_run(int dirfd, bool past_damage, reader_fn fn, void *arg, struct reader_report *ret,
	       struct err *e)
{
	_chain_ struct chain *chain = NULL;
	_scan_ struct scan *scan = NULL;
	struct err local = { 0 };

	if (!e)
		e = &local;
	*ret = (struct reader_report){ 0 };
	chain_start(&ret->head);
	if (chain_new(&chain, e) < 0 || scan_new(&scan, e) < 0)
		return e->code;
	struct reader r = {
		.dirfd = dirfd,
		.past_damage = past_damage,
		.fn = fn,
		.arg = arg,
		.chain = chain,
		.scan = scan,
		.report = ret,
	};

	return read_all(&r, e);
}
