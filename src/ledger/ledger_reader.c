/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_reader.c - Files in order, lines in order, and the first thing that does not fit.
 *
 * A daemon may write and rotate meanwhile. So the current file is opened first and the others are
 * listed then: if it was rotated in between, it is in the list too, with the same inode, and is
 * read in its place there, as the last one. An end without a newline may be a line that is just
 * being written: it gets a moment to become whole.
 *
 * Lines are read ahead with pread(2). Bytes without a newline are not a line, however many there
 * are: a crash leaves such an end, perhaps of many empty blocks. They are a line that is too long
 * only if a newline follows.
 */
#include "ledger/ledger_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "ledger/ledger.h"

#define FILES_MAX 1000000u /* of 64 MiB each */
#define DIGITS 20
#define SETTLE_TRIES 10
#define SETTLE_NS 20000000L

/* ---- names ---------------------------------------------------------------------------------- */

static const char prefix[] = "ledger-";
static const char suffix[] = ".jsonl";

const char *names_rotated(uint64_t seq, char buf[NAMES_ROOM])
{
	(void)snprintf(buf, NAMES_ROOM, "%s%0*" PRIu64 "%s", prefix, DIGITS, seq, suffix);
	return buf;
}

/* Whether @name is that of a rotated file, and the number of its first line. */
static bool names_parse(const char *name, uint64_t *ret_seq)
{
	const char *p = name + strlen(prefix);
	char again[NAMES_ROOM];
	uint64_t v = 0;

	if (strncmp(name, prefix, strlen(prefix)) != 0 || !num_digits(p, strnlen(p, DIGITS), &v) ||
	    strcmp(name, names_rotated(v, again)) != 0)
		return false;
	*ret_seq = v;
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int names_list(int dirfd, uint64_t **ret, size_t *ret_n, struct err *e)
{
	_mem_ uint64_t *list = NULL;
	size_t n = 0, room = 0;
	_dir_ DIR *dir = dir_list(openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const char *name;
	uint64_t seq;

	if (!dir)
		return err_set(e, -errno, "list the ledger's directory");
	while ((name = dir_next(dir))) {
		if (!names_parse(name, &seq))
			continue;
		if (n == FILES_MAX || mem_grow(&list, &room, n + 1, sizeof(seq)) < 0)
			return err_set(e, -ENOMEM, "list the ledger's files");
		list[n++] = seq;
	}
	if (errno)
		return err_set(e, -errno, "list the ledger's files");
	if (n > 0)
		qsort(list, n, sizeof(*list), compare);
	*ret = list;
	*ret_n = n;
	list = NULL;
	return 0;
}

/* ---- lines --------------------------------------------------------------------------------- */

void scan_begin(struct scan *s, int fd)
{
	s->fd = fd;
	s->lines = s->begin = s->ahead = 0;
	s->used = s->have = 0;
}

/* Read more, behind what is there. 1, 0 at the end of the file, or -errno. */
static int more(struct scan *s)
{
	if (s->used > 0) {
		memmove(s->data, s->data + s->used, s->have - s->used);
		s->have -= s->used;
		s->used = 0;
	}
	ssize_t n = TEMP_FAILURE_RETRY(
		pread(s->fd, s->data + s->have, sizeof(s->data) - s->have, (off_t)s->ahead));

	if (n < 0)
		return -errno;
	s->have += (size_t)n;
	s->ahead += (uint64_t)n;
	return n > 0;
}

int scan_next(struct scan *s, const char **line, size_t *len)
{
	size_t seen = 0;
	bool too_long = false;

	for (;;) {
		char *from = s->data + s->used;
		char *newline = memchr(from + seen, '\n', s->have - s->used - seen);
		int r;

		if (newline) {
			*line = from;
			*len = (size_t)(newline - from);
			s->used += *len + 1;
			s->begin = s->ahead - (s->have - s->used);
			s->lines++;
			return too_long || *len >= CHAIN_LINE_MAX ? -EMSGSIZE : 1;
		}
		seen = s->have - s->used;
		if (seen >= CHAIN_LINE_MAX) {
			too_long = true;
			s->used = s->have;
			seen = 0;
		}
		r = more(s);
		if (r <= 0)
			return r;
	}
}

uint64_t scan_rest(const struct scan *s)
{
	return s->ahead - s->begin;
}

/* ---- all of them ---------------------------------------------------------------------------- */

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
	struct reader_line line = { file, r->scan->lines, text, len, false };
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
	struct scan *s = r->scan;
	int code = 0;

	for (int i = 0; i < SETTLE_TRIES && code == 0 && scan_rest(s) > 0; i++) {
		(void)nanosleep(&moment, NULL);
		s->ahead = s->begin; /* forget what was read ahead: it may have changed since */
		s->used = s->have = 0;
		code = scan_next(s, text, len);
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
			damage(r, file, r->scan->lines, "the line is longer than a line can be");
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
		damage(r, file, r->scan->lines + 1,
		       named ? "the last line is cut off" :
			       "the last line is cut off; the next start of the daemon sets it "
			       "aside");
	} else if (named != 0 && r->scan->lines == 0) {
		damage(r, file, 1, "the file is empty");
	}
	return 0;
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
		_fd_ int fd = openat(r->dirfd, names_rotated(seqs[i], name),
				     O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			return err_set(e, -errno, "open %s", name);
		if ((code = read_file(r, name, fd, seqs[i], e)) < 0)
			return code;
	}
	if (current >= 0 && (!r->report->damaged || r->past_damage))
		return read_file(r, LEDGER_CURRENT, current, 0, e);
	return 0;
}

int reader_run(int dirfd, bool past_damage, reader_fn fn, void *arg, struct reader_report *ret,
	       struct err *e)
{
	_chain_ struct chain chain = { 0 };
	_mem_ struct scan *scan = malloc(sizeof(*scan));
	struct err local = { 0 };

	if (!e)
		e = &local;
	*ret = (struct reader_report){ 0 };
	chain_start(&ret->head);
	if (!scan)
		return err_set(e, -ENOMEM, "read a ledger");
	if (chain_open(&chain, e) < 0)
		return e->code;
	struct reader r = {
		.dirfd = dirfd,
		.past_damage = past_damage,
		.fn = fn,
		.arg = arg,
		.chain = &chain,
		.scan = scan,
		.report = ret,
	};

	return read_all(&r, e);
}
