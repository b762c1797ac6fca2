/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_executions.h - Executions that began, says the ledger, and of which it knows no end: a front
 * died in between.
 *
 * Filled while the ledger is opened, from the file that is written; told when the front begins.
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

/* open_executions_line() - A line that was found whole. Without memory it is as if it were not
 * there. @arg: struct open_executions. */
void open_executions_line(const char *line, size_t len, void *arg);

/* open_executions_close() - Write their ends, and be empty. */
void open_executions_close(struct open_executions *u, struct sandboxes *sandboxes);

#endif
