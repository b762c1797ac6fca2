/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_result.h - ExecResult, the answer to whatever was run in a named sandbox.
 */
#ifndef CAISSON_FRONT_EXEC_RESULT_H
#define CAISSON_FRONT_EXEC_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/result.h"

struct json;
struct spool;

struct exec_result {
	const char *execution_id;
	const struct result *verdict;
	const struct outcome *outcome;
	const struct spool *out, *err;
	bool dropped;   /* something else than output was left out */
	uint64_t chars; /* most that is returned of each stream */
};

/* exec_result_members() - All of it, into an object that is open. */
void exec_result_members(const struct exec_result *r, struct json *j);

/* exec_cause_members() - `status`, and `cause`, `limit`, `peak`, `hint`, `signal` where there are
 * any. */
void exec_cause_members(const struct result *r, struct json *j);

#endif
