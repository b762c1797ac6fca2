/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h - How a run ended: one verdict, from reports of the Linux kernel and never of the guest.
 */
#ifndef CAISSON_CLIENT_RESULT_H
#define CAISSON_CLIENT_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/init.h"
#include "wire/warden.h"

struct json;

/* The facts, collected while it ran. */
struct outcome {
	bool started;
	bool exited;             /* exit is filled */
	struct init_exited exit; /* from wait4 in the cell */
	struct cell_usage usage; /* from the cell's cgroup */
	bool wall_hit;           /* we ended it at the deadline */
	bool output_hit;         /* we ended it for its output */
	bool api;                /* the hint is for a client of the daemon's API, not for options */
	int interrupted;         /* signal that made us end it, 0 none */
	uint64_t wall_ns;
	uint64_t stdout_bytes, stderr_bytes;
	uint64_t wall_limit_ms, output_limit;
};

enum result_status {
	RESULT_OK,
	RESULT_ERROR,
	RESULT_SIGNAL,
	RESULT_TIMEOUT,
	RESULT_LIMIT,
	RESULT_FAILED
};

enum result_cause {
	CAUSE_NONE,
	CAUSE_MEMORY,
	CAUSE_PIDS,
	CAUSE_DISK,
	CAUSE_INODES,
	CAUSE_CPU,
	CAUSE_WALL,
	CAUSE_OUTPUT,
	CAUSE_SIGNAL,
	CAUSE_INTERRUPT,
	CAUSE_INIT,
	CAUSE_PROTOCOL, /* a kernel that broke off, or spoke nonsense on its channel */
	CAUSE_MAX_,
};

struct result {
	enum result_status status;
	enum result_cause cause;
	int exit_code;        /* as a shell would give it */
	int signo;            /* that ended the program, 0 none */
	uint64_t limit, peak; /* of the cause, in its unit; 0 without one */
	uint32_t limits_hit; /* 1u << enum result_cause: limits that were touched, also by an ok run
			      */
	char hint[256];      /* one line that a person or a model can act on; or empty */
};

/* result_judge() - Pure. @spec: the limits that were set. */
void result_judge(const struct outcome *o, const struct cell_spec *spec, struct result *ret);

const char *result_status_name(enum result_status s);
const char *result_cause_name(enum result_cause c);
/* result_end_name() - The cause of the end of a cell; @end: enum cell_end. */
const char *result_end_name(uint32_t end);

/* result_json() - The members of the result object that come from the verdict and the usage. */
void result_json(struct json *j, const struct result *r, const struct outcome *o);
/* result_usage_json() - Its member `usage` alone. */
void result_usage_json(struct json *j, const struct outcome *o);

#endif
