/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_result.h - ExecResult, the answer for code and commands that ran in a named sandbox.
 */
#ifndef CAISSON_FRONT_EXEC_RESULT_H
#define CAISSON_FRONT_EXEC_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/result.h"

struct json;
struct sandbox;
struct spool;

struct exec_result {
	const char *execution_id;
	const struct result *verdict;
	const struct outcome *outcome;
	const struct spool *out, *err;
	bool dropped;   /* something other than output was left out */
	uint64_t chars; /* the most characters that are returned of each stream */
};

/* exec_result_members() - Write all members into an object that is open. */
void exec_result_members(const struct exec_result *r, struct json *j);

/*
 * exec_cause_members() - Write `status`, and those of `cause`, `limit`, `peak`, `hint` and `signal`
 * that the result has.
 */
void exec_cause_members(const struct result *r, struct json *j);

/*
 * exec_left_members() - Write `state`, `files` and `epoch`: what the sandbox has kept.
 * @reset: an interpreter ended, or the cell did; @lost: the cell did, with its files
 */
void exec_left_members(struct json *j, const struct sandbox *s, bool reset, bool lost,
		       uint32_t epoch);

#endif
