/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - The files of a ledger: the names of rotated ones, and the lines of one.
 *
 * A rotated file is `ledger-<number of its first line, 20 digits>.jsonl`. A scan hands out the
 * lines of one file after the other from a buffer of fixed size.
 */
#ifndef CAISSON_LEDGER_FILES_H
#define CAISSON_LEDGER_FILES_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct scan;

#define NAMES_ROOM 64

/* names_rotated() - The name of the rotated file whose first line is @seq. Return: @buf. */
const char *names_rotated(uint64_t seq, char buf[NAMES_ROOM]);

/* names_list() - The rotated files of a directory, by first line, oldest first; free() it. */
int names_list(int dirfd, uint64_t **ret, size_t *ret_n, struct err *e);

/* scan_new() - Room to scan one file after the other. */
int scan_new(struct scan **ret, struct err *e);
void scan_freep(struct scan **s);
#define _scan_ __attribute__((cleanup(scan_freep)))

/* scan_begin() - From the first byte of @fd, which is borrowed and whose offset is not used. */
void scan_begin(struct scan *s, int fd);

/*
 * scan_next() - The next line, without its newline; valid until the next call.
 * Return: 1; 0 at the end, where scan_rest() bytes without a newline may be left; -EMSGSIZE for a
 * line of CHAIN_LINE_MAX bytes or more, which is then behind us; or -errno of a read.
 */
int scan_next(struct scan *s, const char **line, size_t *len);

/* scan_again() - Forget what was read ahead: the end of the file may have changed since. */
void scan_again(struct scan *s);

/* How many lines were returned or refused; where the line after them begins; what is after it. */
uint64_t scan_lines(const struct scan *s);
uint64_t scan_offset(const struct scan *s);
uint64_t scan_rest(const struct scan *s);

#endif
