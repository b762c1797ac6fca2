/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - Names of rotated files, and lines that are read ahead with pread(2).
 *
 * Bytes without a newline are not a line, however many there are: a crash leaves such an end,
 * perhaps of many empty blocks. They are a line that is too long only if a newline follows.
 */
#include "ledger/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "ledger/chain.h"

#define FILES_MAX 1000000u /* of 64 MiB each */
#define DIGITS 20
#define ROOM (8 * CHAIN_LINE_MAX)

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

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	for (unsigned int i = 0; i < DIGITS; i++, p++)
		if (*p < '0' || *p > '9')
			return false;
		else
			v = v * 10 + (uint64_t)(*p - '0');
	/* A number that did not fit gives another name. */
	if (strcmp(name, names_rotated(v, again)) != 0)
		return false;
	*ret_seq = v;
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int collect(DIR *dir, uint64_t **list, size_t *n, struct err *e)
{
	size_t room = 0;
	const struct dirent *entry;
	uint64_t seq;

	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		if (!names_parse(entry->d_name, &seq))
			continue;
		if (*n == FILES_MAX || mem_grow(list, &room, *n + 1, sizeof(seq)) < 0)
			return err_set(e, -ENOMEM, "list the ledger's files");
		(*list)[(*n)++] = seq;
	}
	return errno ? err_set(e, -errno, "list the ledger's files") : 0;
}

int names_list(int dirfd, uint64_t **ret, size_t *ret_n, struct err *e)
{
	_mem_ uint64_t *list = NULL;
	size_t n = 0;
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		r = err_set(e, -errno, "list the ledger's directory");
		(void)fd_close(fd);
		return r;
	}
	r = collect(dir, &list, &n, e);
	(void)closedir(dir);
	if (r < 0)
		return r;
	if (n > 0)
		qsort(list, n, sizeof(*list), compare);
	*ret = list;
	*ret_n = n;
	list = NULL;
	return 0;
}

/* ---- lines --------------------------------------------------------------------------------- */

struct scan {
	int fd;
	uint64_t lines;
	uint64_t begin;    /* file offset of the line that is not handed out yet */
	uint64_t ahead;    /* file offset of the first byte that is not read yet */
	size_t used, have; /* data[used] up to data[have] is read and not handed out */
	char data[ROOM];
};

int scan_new(struct scan **ret, struct err *e)
{
	*ret = malloc(sizeof(**ret));
	return *ret ? 0 : err_set(e, -ENOMEM, "read a ledger");
}

void scan_freep(struct scan **s)
{
	free(*s);
}

void scan_begin(struct scan *s, int fd)
{
	s->fd = fd;
	s->lines = s->begin = s->ahead = 0;
	s->used = s->have = 0;
}

/* Read more, behind what is there. 1, 0 at the end of the file, or -errno. */
static int more(struct scan *s)
{
	ssize_t n;

	if (s->used > 0) {
		memmove(s->data, s->data + s->used, s->have - s->used);
		s->have -= s->used;
		s->used = 0;
	}
	do {
		n = pread(s->fd, s->data + s->have, ROOM - s->have, (off_t)s->ahead);
	} while (n < 0 && errno == EINTR);
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

void scan_again(struct scan *s)
{
	s->ahead = s->begin;
	s->used = s->have = 0;
}

uint64_t scan_lines(const struct scan *s)
{
	return s->lines;
}

uint64_t scan_offset(const struct scan *s)
{
	return s->begin;
}

uint64_t scan_rest(const struct scan *s)
{
	return s->ahead - s->begin;
}
