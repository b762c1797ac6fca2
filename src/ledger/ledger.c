/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.c - Append lines, rotate files, and put things right after a crash or a full disk.
 *
 * Theory of operation. The file is open with O_APPEND and its length is known: `size` is the end of
 * the last whole line. A line goes out in one write(2). When less of it arrives, the file is cut
 * back to `size`; when even that fails, the file is `dirty` and the cut comes before the next line.
 * A process that dies in between leaves an end without a newline, which the next start finds
 * (`torn`), copies to a file of its own, cuts off, and records.
 *
 * Before each line the file is looked at: one that was removed or that has another length than ours
 * is not written to, because nobody would find the line, or it would not follow.
 *
 * Rotation is rename, then create. A crash between them leaves no current file, which is an empty
 * one; a create that fails is tried again with the next line. The descriptor's offset is not used.
 */
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "ledger/ledger_reader.h"

#define CREATE_FLAGS (O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC)
#define TORN_NAME_ROOM 64
#define TORN_TRIES 100 /* names of one millisecond */

struct ledger {
	int dirfd;
	int fd; /* the current file; -1 before the first */
	struct chain chain;
	struct buf line;
	struct chain_link head;
	uint64_t file_bytes;
	uint64_t (*now_ns)(void);
	uint64_t size;      /* of the current file: whole lines only */
	uint64_t first_seq; /* of the current file, 0 when it is empty */
	uint64_t torn;      /* bytes behind size that a crash left, still to be set aside... */
	int torn_fd;        /* ...here; -1 when there is no file for them yet */
	uint64_t recovered; /* bytes that were set aside and are not recorded yet... */
	char recovered_name[TORN_NAME_ROOM]; /* ...and where they are */
	bool dirty;                          /* bytes behind size are ours, to be cut off */
	bool dir_dirty;                      /* a new name is not on the disk yet */
	/* The file system or the jail has no safe rename: the file grows past its size, and the
	 * next ledger_open() rotates it where that may. */
	bool no_rotation;
};

static uint64_t real_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* ---- a cut-off last line --------------------------------------------------------------------- */

/* A new, empty file `ledger.torn-<time>`; @name is set to its name. A descriptor or -errno. */
static int make_torn(int dirfd, uint64_t time_ns, char name[TORN_NAME_ROOM])
{
	time_t seconds = (time_t)(time_ns / CLOCK_NS_PER_S);
	struct tm tm = { 0 };
	char when[40] = "", again[8] = "";
	int fd = -1;

	(void)gmtime_r(&seconds, &tm);
	(void)strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &tm);
	for (int i = 0; i < TORN_TRIES; i++) {
		if (i > 0)
			(void)snprintf(again, sizeof(again), "-%d", i);
		(void)snprintf(name, TORN_NAME_ROOM, "ledger.torn-%.20s.%03uZ%s", when,
			       (unsigned int)(time_ns / CLOCK_NS_PER_MS % 1000), again);
		fd = openat(dirfd, name, CREATE_FLAGS, 0600);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : fd;
}

static int copy(int from_fd, uint64_t from, int to)
{
	char block[4096];

	for (;;) {
		ssize_t n = fd_pread_full(from_fd, block, sizeof(block), (off_t)from);

		if (n <= 0)
			return (int)n;
		int r = fd_write_all(to, block, (size_t)n);

		if (r < 0)
			return r;
		from += (uint64_t)n;
	}
}

/* Replace the content of @to by the bytes of @fd from @from on, and bring it to the disk. @fd is
 * not changed, so no byte is lost, and a failure can be tried again. 0 or -errno. */
static int copy_torn(int dirfd, int fd, uint64_t from, int to)
{
	int r = ftruncate(to, 0) < 0 ? -errno : copy(fd, from, to);

	return r == 0 && (fdatasync(to) < 0 || fsync(dirfd) < 0) ? -errno : r;
}

/* ---- the current file ---------------------------------------------------------------------- */

static int create_current(struct ledger *l, struct err *e)
{
	l->fd = openat(l->dirfd, LEDGER_CURRENT, CREATE_FLAGS, 0600);
	if (l->fd < 0)
		return err_set(e, -errno, "make the ledger's file " LEDGER_CURRENT);
	l->size = l->first_seq = 0;
	l->dir_dirty = true;
	return 0;
}

static int cut_back(struct ledger *l, struct err *e)
{
	if (ftruncate(l->fd, (off_t)l->size) < 0) {
		l->dirty = true;
		return err_set(e, -errno, "cut an incomplete line off " LEDGER_CURRENT);
	}
	l->dirty = false;
	return 0;
}

/* The copy is kept between tries: where nothing can be removed, each would leave a file. */
static int recover(struct ledger *l, struct err *e)
{
	int r = 0;

	if (l->torn_fd < 0)
		r = l->torn_fd = make_torn(l->dirfd, l->now_ns(), l->recovered_name);
	if (r >= 0)
		r = copy_torn(l->dirfd, l->fd, l->size, l->torn_fd);
	if (r < 0)
		return err_set(e, r, "set the cut-off last line of the ledger aside in %s",
			       l->recovered_name);
	l->torn_fd = fd_close(l->torn_fd);
	l->recovered = l->torn;
	l->torn = 0;
	return cut_back(l, e);
}

/* The file is there, is ours, and ends with a whole line. */
static int prepare(struct ledger *l, struct err *e)
{
	struct stat st;

	if (l->fd < 0)
		return create_current(l, e);
	if (fstat(l->fd, &st) < 0)
		return err_set(e, -errno, "look at " LEDGER_CURRENT);
	if (st.st_nlink == 0)
		return err_say(e, -ESTALE,
			       "the ledger's file " LEDGER_CURRENT
			       " was removed while it was in use: put it back and restart");
	if (l->torn > 0)
		return recover(l, e);
	if (l->dirty)
		return cut_back(l, e);
	if ((uint64_t)st.st_size != l->size)
		return err_say(e, -ESTALE,
			       "the ledger's file " LEDGER_CURRENT " has %" PRIu64
			       " bytes instead of %" PRIu64
			       ": somebody else wrote to it; look with 'caisson audit verify'",
			       (uint64_t)st.st_size, l->size);
	return 0;
}

/* ---- append -------------------------------------------------------------------------------- */

static int rotate(struct ledger *l, struct err *e)
{
	char name[NAMES_ROOM];

	/* The last chance: afterwards nobody has it open. */
	if (fdatasync(l->fd) < 0)
		return err_set(e, -errno, "write " LEDGER_CURRENT " to the disk");
	if (renameat2(l->dirfd, LEDGER_CURRENT, l->dirfd, names_rotated(l->first_seq, name),
		      RENAME_NOREPLACE) < 0) {
		if (errno != EINVAL && errno != ENOSYS && errno != EACCES && errno != EPERM)
			return err_set(e, -errno, "rotate " LEDGER_CURRENT " to %s", name);
		l->no_rotation = true;
		return 0;
	}
	l->fd = fd_close(l->fd);
	return create_current(l, e);
}

static int write_line(struct ledger *l, const struct ledger_event *event, struct err *e)
{
	struct chain_link next;
	ssize_t n;
	int r = chain_format(&l->chain, &l->line, &l->head, l->now_ns(), event, &next);

	if (r < 0)
		return err_set(e, r, "write the event '%s' as a line of the ledger", event->event);
	if (l->size > 0 && l->size + l->line.len > l->file_bytes && !l->no_rotation &&
	    rotate(l, e) < 0)
		return e->code;
	n = TEMP_FAILURE_RETRY(write(l->fd, l->line.data, l->line.len));
	if (n != (ssize_t)l->line.len) {
		/* A write that was cut short does not say why; a full disk is what does that. */
		r = n < 0 ? -errno : -ENOSPC;
		(void)cut_back(l, NULL);
		return err_set(e, r, "append to the ledger's file " LEDGER_CURRENT);
	}
	l->size += l->line.len;
	l->head = next;
	if (l->first_seq == 0)
		l->first_seq = next.seq;
	return 0;
}

static int write_recovered(struct ledger *l, struct err *e)
{
	const struct ledger_field fields[] = {
		L_STR("file", l->recovered_name),
		L_UINT("bytes", l->recovered),
	};
	const struct ledger_event event = { "recovered", NULL, NULL, fields, ARRAY_SIZE(fields) };

	if (l->recovered == 0)
		return 0;
	if (write_line(l, &event, e) < 0)
		return e->code;
	l->recovered = 0;
	return 0;
}

int ledger_append(struct ledger *l, const struct ledger_event *event, struct err *e)
{
	struct err local = { 0 };

	if (!e)
		e = &local;
	if (prepare(l, e) < 0 || write_recovered(l, e) < 0)
		return e->code;
	return write_line(l, event, e);
}

int ledger_sync(struct ledger *l, struct err *e)
{
	if (l->fd >= 0 && fdatasync(l->fd) < 0)
		return err_set(e, -errno, "write " LEDGER_CURRENT " to the disk");
	/* Some file systems cannot sync a directory, and have no need to. */
	if (l->dir_dirty && fsync(l->dirfd) < 0 && errno != EINVAL)
		return err_set(e, -errno, "write the ledger's directory to the disk");
	l->dir_dirty = false;
	return 0;
}

int ledger_dirfd(const struct ledger *l)
{
	return l->dirfd;
}

/* ---- open ---------------------------------------------------------------------------------- */

static int damaged(const char *file, uint64_t line, struct err *e)
{
	char why[sizeof(e->msg)];

	if (e->code != -EBADMSG)
		return err_wrap(e, "read %s", file);
	(void)snprintf(why, sizeof(why), "%s", e->msg);
	if (line > 0)
		(void)snprintf(why, sizeof(why), "line %" PRIu64 ": %.300s", line, e->msg);
	return err_say(
		e, -EBADMSG,
		"the ledger is damaged: %s, %.330s; see 'caisson audit verify', then put its "
		"directory back from a copy, or move it away to begin a new ledger",
		file, why);
}

/* The last line of a rotated file, which the current one must follow. */
static int read_last(struct ledger *l, uint64_t seq, struct err *e)
{
	char name[NAMES_ROOM];
	_fd_ int fd = openat(l->dirfd, names_rotated(seq, name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open the ledger's file %s", name);
	uint64_t size = (uint64_t)st.st_size;
	size_t want = size < CHAIN_LINE_MAX ? (size_t)size : CHAIN_LINE_MAX;

	buf_clear(&l->line);
	char *room = buf_reserve(&l->line, CHAIN_LINE_MAX);
	ssize_t n = room ? pread(fd, room, want, (off_t)(size - want)) : -1;

	if (n < 0 || (size_t)n != want)
		return err_set(e, n < 0 ? -errno : -EIO, "read the ledger's file %s", name);
	if (want == 0 || room[want - 1] != '\n') {
		(void)err_say(e, -EBADMSG, "it does not end with a whole line");
		return damaged(name, 0, e);
	}
	const char *before = memrchr(room, '\n', want - 1);
	const char *last = before ? before + 1 : room;

	l->head.known = false;
	if (chain_check(&l->chain, last, (size_t)(room + want - 1 - last), &l->head, e) < 0) {
		(void)err_wrap(e, "its last line");
		return damaged(name, 0, e);
	}
	return 0;
}

static int read_current(struct ledger *l, const struct ledger_config *config, struct err *e)
{
	_mem_ struct scan *s = malloc(sizeof(*s));
	const char *line;
	size_t len;
	int r;

	if (!s)
		return err_set(e, -ENOMEM, "read a ledger");
	scan_begin(s, l->fd);
	while ((r = scan_next(s, &line, &len)) != 0) {
		if (r == -EMSGSIZE)
			(void)err_say(e, -EBADMSG, "the line is longer than a line can be");
		else if (r < 0)
			return err_set(e, r, "read " LEDGER_CURRENT);
		if (r < 0 || chain_check(&l->chain, line, len, &l->head, e) < 0)
			return damaged(LEDGER_CURRENT, s->lines, e);
		if (l->first_seq == 0)
			l->first_seq = l->head.seq;
		if (config && config->line)
			config->line(line, len, config->arg);
	}
	l->size = s->begin;
	l->torn = scan_rest(s);
	return 0;
}

static int open_current(struct ledger *l, const struct ledger_config *config, struct err *e)
{
	struct stat st;

	l->fd = openat(l->dirfd, LEDGER_CURRENT,
		       O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (l->fd < 0)
		return errno == ENOENT ?
			       0 :
			       err_set(e, -errno, "open the ledger's file " LEDGER_CURRENT);
	if (fstat(l->fd, &st) < 0)
		return err_set(e, -errno, "look at " LEDGER_CURRENT);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return err_say(e, -EINVAL,
			       "the ledger's " LEDGER_CURRENT
			       " is not a regular file with one link: move it away and restart");
	return read_current(l, config, e);
}

static int open_all(struct ledger *l, const struct ledger_config *config, struct err *e)
{
	_mem_ uint64_t *rotated = NULL;
	size_t n = 0;
	int r;

	if (names_list(l->dirfd, &rotated, &n, e) < 0 ||
	    (n > 0 && read_last(l, rotated[n - 1], e) < 0) || open_current(l, config, e) < 0)
		return e->code;
	if (!l->head.known)
		chain_start(&l->head);
	r = prepare(l, e);
	if (r == 0)
		r = write_recovered(l, e);
	/* A jail may not be able to, later. */
	if (r == 0 && l->size >= l->file_bytes)
		r = rotate(l, e);
	/* It will be tried again, and until then nothing is allowed to run. */
	return r == -ENOSPC || r == -EDQUOT ? 0 : r;
}

int ledger_open(int dirfd, const struct ledger_config *config, struct ledger **ret, struct err *e)
{
	struct ledger *l = calloc(1, sizeof(*l));
	struct err local = { 0 };
	int r;

	if (!e)
		e = &local;
	if (!l)
		return err_set(e, -ENOMEM, "open the ledger");
	l->fd = l->torn_fd = -1;
	l->file_bytes = config && config->file_bytes ? config->file_bytes : LEDGER_FILE_BYTES;
	l->now_ns = config && config->now_ns ? config->now_ns : real_now_ns;
	buf_init(&l->line, CHAIN_LINE_MAX);
	l->dirfd = dirfd;
	if (!buf_reserve(&l->line, CHAIN_LINE_MAX))
		r = err_set(e, -ENOMEM, "open the ledger");
	else
		r = chain_open(&l->chain, e);
	if (r == 0)
		r = open_all(l, config, e);
	if (r < 0) {
		ledger_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

void ledger_close(struct ledger *l)
{
	if (!l)
		return;
	(void)fd_close(l->fd);
	(void)fd_close(l->torn_fd);
	chain_close(&l->chain);
	buf_free(&l->line);
	free(l);
}
