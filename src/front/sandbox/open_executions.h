/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_executions.h - Executions with a begin in the ledger but no end, because a front died in
 * between.
 *
 * The table is filled while the ledger is opened, from the file that is written; when the front
 * begins, it writes the missing ends.
 */
#ifndef CAISSON_FRONT_OPEN_EXECUTIONS_H
#define CAISSON_FRONT_OPEN_EXECUTIONS_H

#include <stddef.h>

struct open_execution;
struct sandboxes;

#define UNENDED_BUCKETS 4096u

struct open_executions {
	struct open_execution *buckets[UNENDED_BUCKETS]; /* by the first digits of the id, which is
							    random */
};

/*
 * open_executions_line() - Note a line of the ledger that was found whole. Without memory it is
 * ignored. @arg: struct open_executions.
 */
void open_executions_line(const char *line, size_t len, void *arg);

/* open_executions_close() - Write the missing ends to the ledger, and empty the table. */
void open_executions_close(struct open_executions *u, struct sandboxes *sandboxes);

#endif
