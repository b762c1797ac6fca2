/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - The files of a ledger: `ledger-<number of the first line, 20 digits>.jsonl`. */
#ifndef CAISSON_LEDGER_NAMES_H
#define CAISSON_LEDGER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define NAMES_ROOM 64

/* names_rotated() - The name of the rotated file whose first line is @seq. Return: @buf. */
const char *names_rotated(uint64_t seq, char buf[NAMES_ROOM]);

/* names_parse() - Whether @name is that of a rotated file, and of which. */
bool names_parse(const char *name, uint64_t *ret_seq);

/* names_list() - The rotated files of a directory, by first line, oldest first; free() it. */
int names_list(int dirfd, uint64_t **ret, size_t *ret_n, struct err *e);

#endif
