/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - Read ahead with pread(2), hand out whole lines.
 *
 * What has no newline is not a line, however long it is: a crash leaves such an end, perhaps of
 * many empty blocks. Only when a newline follows is it a line that is too long.
 */
#include "ledger/scan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "ledger/chain.h"

#define ROOM (8 * CHAIN_LINE_MAX)

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

void scan_free(struct scan *s)
{
	free(s);
}

void scan_freep(struct scan **s)
{
	scan_free(*s);
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
