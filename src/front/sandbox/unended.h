/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unended.h - Executions that began, says the ledger, and of which it knows no end: a front died in between.
 *
 * Filled while the ledger is opened, from the file that is written; told when the front begins.
 */
#ifndef CAISSON_FRONT_UNENDED_H
#define CAISSON_FRONT_UNENDED_H

#include <stddef.h>

struct front;
struct unended_one;

#define UNENDED_BUCKETS 4096u

struct unended {
	struct unended_one
		*buckets[UNENDED_BUCKETS]; /* by the first digits of the id, which is random */
};

/* unended_line() - A line that was found whole. Without memory it is as if it were not there. @arg: struct unended. */
void unended_line(const char *line, size_t len, void *arg);

/* unended_close() - Write their ends, and be empty. */
void unended_close(struct unended *u, struct front *f);

#endif
