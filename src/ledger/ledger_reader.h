/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_reader.h - All lines of a ledger in order, checked; also while a daemon writes to it.
 *
 * A chain shows every change, insertion, removal and swap between its first and its last line.
 * Alone it cannot show that lines were taken from the end, or that a process that can write the
 * files made all of it anew. For that, `caisson audit verify --head` compares a head that was noted
 * elsewhere. Files from the beginning may have gone to an archive; first_seq is the first line
 * found.
 */
#ifndef CAISSON_LEDGER_LEDGER_READER_H
#define CAISSON_LEDGER_LEDGER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/chain.h"

struct err;

#define NAMES_ROOM 64

struct reader_report {
	uint64_t files, lines;       /* seen so far */
	uint64_t bytes, total_bytes; /* seen so far; of all files, as they were at the start */
	uint64_t first_seq;          /* 0: no line */
	struct chain_link head;      /* the last good line */
	bool damaged;                /* the first damage, in these three: */
	char file[NAMES_ROOM];
	uint64_t line; /* counted from 1 in that file */
	char why[256];
	uint64_t torn; /* bytes of a last line that was cut off; this is a damage too */
};

struct reader_line {
	const char *file;
	uint64_t line;
	const char *text; /* without the newline, not terminated */
	size_t len;
	bool good; /* it is part of the unbroken chain from the first line */
};

/* A negative value ends the reading, and is what reader_run() returns. */
typedef int (*reader_fn)(const struct reader_line *line, const struct reader_report *so_far,
			 void *arg);

/*
 * reader_run() - Read everything.
 * @dirfd: the ledger's directory, open for reading
 * @past_damage: go on after the first damage; lines from there on are not `good`
 * @fn: NULL when only the report is wanted. Not called for lines that are too long.
 *
 * Return: 0 also when damaged (look at @ret); -ENOENT when there is no ledger; -errno when
 * something cannot be read.
 */
int reader_run(int dirfd, bool past_damage, reader_fn fn, void *arg, struct reader_report *ret,
	       struct err *e);

/*
 * ---- Files and lines, for ledger.c --------------------------------------------------------------
 *
 * A rotated file is `ledger-<number of its first line, 20 digits>.jsonl`. A scan hands out the
 * lines of one file after the other from a buffer of fixed size.
 */

/* names_rotated() - The name of the rotated file whose first line is @seq. Return: @buf. */
const char *names_rotated(uint64_t seq, char buf[NAMES_ROOM]);

/* names_list() - The rotated files of a directory, by first line, oldest first; free() it. */
int names_list(int dirfd, uint64_t **ret, size_t *ret_n, struct err *e);

struct scan {
	int fd;
	uint64_t lines;    /* that were returned or refused */
	uint64_t begin;    /* file offset of the line that is not handed out yet */
	uint64_t ahead;    /* file offset of the first byte that is not read yet */
	size_t used, have; /* data[used] up to data[have] is read and not handed out */
	char data[8 * CHAIN_LINE_MAX];
};

/* scan_begin() - From the first byte of @fd, which is borrowed and whose offset is not used. */
void scan_begin(struct scan *s, int fd);

/*
 * scan_next() - The next line, without its newline; valid until the next call.
 * Return: 1; 0 at the end, where scan_rest() bytes without a newline may be left; -EMSGSIZE for a
 * line of CHAIN_LINE_MAX bytes or more, which is then behind us; or -errno of a read.
 */
int scan_next(struct scan *s, const char **line, size_t *len);

/* scan_rest() - How many bytes that were read follow the last line. */
uint64_t scan_rest(const struct scan *s);

#endif
