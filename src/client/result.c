/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.c - The verdict over a run, and its hint.
 *
 * The order of the checks is the policy. The causes that end a cell or its main program come first
 * (memory, cpu time, wall, output), because the main program's own status is then only an echo of
 * the kill. Only for a program that ended by itself, and badly, a limit that it hit is the cause: a
 * limit that was touched without harm is listed, and is not the cause of anything. So a child that
 * ended for memory is the cause of a failure of its parent, and only listed if the parent succeeds.
 */
#include "client/result.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"

#define EXIT_TIME 124
#define EXIT_KILLED 137
#define EXIT_OURS 125
#define PAGE_MAX 65536u /* the size of a tmpfs is in pages */

static const char *const status_names[] = {
	[RESULT_OK] = "ok",           [RESULT_ERROR] = "error", [RESULT_SIGNAL] = "signal",
	[RESULT_TIMEOUT] = "timeout", [RESULT_LIMIT] = "limit", [RESULT_FAILED] = "failed",
};
static const char *const cause_names[] = {
	[CAUSE_NONE] = "none",           [CAUSE_MEMORY] = "memory", [CAUSE_PIDS] = "pids",
	[CAUSE_DISK] = "disk",           [CAUSE_INODES] = "inodes", [CAUSE_CPU] = "cpu",
	[CAUSE_WALL] = "wall",           [CAUSE_OUTPUT] = "output", [CAUSE_SIGNAL] = "signal",
	[CAUSE_INTERRUPT] = "interrupt", [CAUSE_INIT] = "init",     [CAUSE_PROTOCOL] = "protocol",
};
_Static_assert(ARRAY_SIZE(cause_names) == CAUSE_MAX_, "cause_names[] vs enum result_cause");

const char *result_status_name(enum result_status s)
{
	return status_names[s];
}

const char *result_cause_name(enum result_cause c)
{
	return cause_names[c];
}

const char *result_end_name(uint32_t end)
{
	switch (end) {
	case CELL_END_MEMORY:
		return cause_names[CAUSE_MEMORY];
	case CELL_END_CPU_TIME:
		return cause_names[CAUSE_CPU];
	case CELL_END_WALL:
		return cause_names[CAUSE_WALL];
	case CELL_END_CLIENT:
		return cause_names[CAUSE_INTERRUPT];
	default:
		return cause_names[CAUSE_INIT];
	}
}

__attribute__((format(printf, 2, 3))) static void hint(struct result *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(r->hint, sizeof(r->hint), fmt, ap);
	va_end(ap);
}

/* How to raise a limit: by an option of the command, or by the daemon's API. */
static const char *more_of(const struct outcome *o, enum result_cause c)
{
#define OF_SANDBOX(field)                                                                          \
	"make a sandbox with more " field                                                          \
	" (POST /v1/sandboxes, or create_sandbox if it is offered)"
	static const char *const options[CAUSE_MAX_] = {
		[CAUSE_MEMORY] = "raise --memory",     [CAUSE_CPU] = "raise --cpu-time",
		[CAUSE_WALL] = "raise --timeout",      [CAUSE_DISK] = "raise --disk",
		[CAUSE_OUTPUT] = "raise --max-output", [CAUSE_INODES] = "raise --inodes",
		[CAUSE_PIDS] = "raise --pids",
	};
	static const char *const members[CAUSE_MAX_] = {
		[CAUSE_MEMORY] = OF_SANDBOX("memory_mib"),
		[CAUSE_CPU] = "ask the operator for more",
		[CAUSE_WALL] = "ask for a longer timeout",
		[CAUSE_DISK] = OF_SANDBOX("disk_mib"),
		[CAUSE_OUTPUT] = "ask the operator for more",
		[CAUSE_INODES] = "ask the operator for more",
		[CAUSE_PIDS] = OF_SANDBOX("pids"),
	};
#undef OF_SANDBOX

	return o->api ? members[c] : options[c];
}

static void set(struct result *r, enum result_status s, enum result_cause c, int exit_code,
		uint64_t limit, uint64_t peak)
{
	r->status = s;
	r->cause = c;
	r->exit_code = exit_code;
	r->limit = limit;
	r->peak = peak;
	if (c != CAUSE_NONE && c != CAUSE_SIGNAL && c != CAUSE_INTERRUPT && c != CAUSE_INIT)
		r->limits_hit |= 1u << c;
}

/* Full within one page or one per cent: a writer of larger blocks stops before the last byte. */
static bool nearly_full(uint64_t used, uint64_t size)
{
	return size > 0 && used + size / 100 >= size;
}

static void touched(const struct outcome *o, struct result *r)
{
	if (o->usage.oom_kills > 0)
		r->limits_hit |= 1u << CAUSE_MEMORY;
	if (o->usage.pids_denied > 0)
		r->limits_hit |= 1u << CAUSE_PIDS;
	if (o->exited && nearly_full(o->exit.disk.used, o->exit.disk.size))
		r->limits_hit |= 1u << CAUSE_DISK;
	if (o->exited && nearly_full(o->exit.disk.inodes_used, o->exit.disk.inodes_size))
		r->limits_hit |= 1u << CAUSE_INODES;
}

/* Whether the numbers of the disk are those of the writable layer, and not of a workspace. */
static bool is_layer(const struct outcome *o, const struct cell_limits *l)
{
	uint64_t layer = cell_layer_bytes(l), size = o->exit.disk.size;

	return o->exited && size >= layer && size - layer < PAGE_MAX;
}

static void set_memory(const struct outcome *o, const struct cell_limits *l, int code,
		       struct result *r)
{
	char limit[NUM_FORMAT_MAX], part[NUM_FORMAT_MAX];
	uint64_t files = o->usage.memory_files;

	if (is_layer(o, l) && o->exit.disk.used > files) /* the cell may be gone since */
		files = o->exit.disk.used;
	set(r, RESULT_LIMIT, CAUSE_MEMORY, code, l->memory_bytes, o->usage.memory_peak);
	(void)num_format_size(l->memory_bytes, limit, sizeof(limit));
	if (files > l->memory_bytes / 4)
		hint(r,
		     "out of memory: all of %s used, %s of it by files in the cell (they live in "
		     "memory); remove files, or %s",
		     limit, num_format_size(files, part, sizeof(part)), more_of(o, CAUSE_MEMORY));
	else
		hint(r, "out of memory: all of %s used; work on less data at a time, or %s", limit,
		     more_of(o, CAUSE_MEMORY));
}

/* The cell was out of memory and ended as one; or the main program was killed, not by us, while
 * the Linux kernel killed for memory. */
static bool out_of_memory(const struct outcome *o)
{
	bool ours = o->wall_hit || o->output_hit || o->interrupted ||
		    o->usage.end == CELL_END_CPU_TIME || o->usage.end == CELL_END_WALL;
	bool killed = !o->exited ||
		      (WIFSIGNALED(o->exit.status) && WTERMSIG(o->exit.status) == SIGKILL);

	return o->usage.end == CELL_END_MEMORY || (o->usage.oom_kills > 0 && killed && !ours);
}

/* The causes that end the cell or its main program. True when there is one. */
static bool judge_cell(const struct outcome *o, const struct cell_limits *l, struct result *r)
{
	char limit[NUM_FORMAT_MAX];

	if (out_of_memory(o)) {
		set_memory(o, l, EXIT_KILLED, r);
	} else if (o->usage.end == CELL_END_CPU_TIME) {
		set(r, RESULT_LIMIT, CAUSE_CPU, EXIT_TIME, l->cpu_time_ms,
		    o->usage.cpu_ns / 1000000);
		hint(r, "cpu time limit of %s used up; do less work, or %s",
		     num_format_ms(l->cpu_time_ms, limit, sizeof(limit)), more_of(o, CAUSE_CPU));
	} else if (o->wall_hit || o->usage.end == CELL_END_WALL) {
		set(r, RESULT_TIMEOUT, CAUSE_WALL, EXIT_TIME, o->wall_limit_ms,
		    o->wall_ns / 1000000);
		hint(r, "still running after %s; do less per run, or %s",
		     num_format_ms(o->wall_limit_ms, limit, sizeof(limit)), more_of(o, CAUSE_WALL));
	} else if (o->output_hit) {
		set(r, RESULT_LIMIT, CAUSE_OUTPUT, EXIT_KILLED, o->output_limit,
		    o->stdout_bytes + o->stderr_bytes);
		hint(r, "more than %s of output; print less, write to a file, or %s",
		     num_format_size(o->output_limit, limit, sizeof(limit)),
		     more_of(o, CAUSE_OUTPUT));
	} else if (o->interrupted) {
		set(r, RESULT_SIGNAL, CAUSE_INTERRUPT, 128 + o->interrupted, 0, 0);
		r->signo = o->interrupted;
		hint(r, "interrupted from outside");
	} else if (!o->exited) {
		set(r, RESULT_FAILED, CAUSE_INIT, EXIT_OURS, 0, 0);
		hint(r, "the cell ended without a report of its pid 1: it was killed from outside");
	} else {
		return false;
	}
	return true;
}

/* A program that ended badly by itself: did it hit a wall of ours? */
static bool judge_limits(const struct outcome *o, const struct cell_limits *l, struct result *r)
{
	char limit[NUM_FORMAT_MAX];
	int code = r->exit_code;

	if (r->limits_hit & 1u << CAUSE_MEMORY) {
		set_memory(o, l, code, r);
	} else if (r->limits_hit & 1u << CAUSE_DISK && is_layer(o, l) &&
		   o->exit.disk.size < l->disk_bytes) {
		set(r, RESULT_LIMIT, CAUSE_DISK, code, o->exit.disk.size, o->exit.disk.used);
		hint(r,
		     "the %s for files are full (files live in memory, and a part of it is kept "
		     "free); remove files, or %s",
		     num_format_size(r->limit, limit, sizeof(limit)), more_of(o, CAUSE_MEMORY));
	} else if (r->limits_hit & 1u << CAUSE_DISK || r->signo == SIGXFSZ) {
		set(r, RESULT_LIMIT, CAUSE_DISK, code, l->disk_bytes, o->exit.disk.used);
		hint(r, "the writable layer of %s is full; remove files, or %s",
		     num_format_size(l->disk_bytes, limit, sizeof(limit)), more_of(o, CAUSE_DISK));
	} else if (r->limits_hit & 1u << CAUSE_INODES) {
		set(r, RESULT_LIMIT, CAUSE_INODES, code, l->inodes, o->exit.disk.inodes_used);
		hint(r,
		     "the writable layer has no room for more than %" PRIu64
		     " files; remove some, or %s",
		     l->inodes, more_of(o, CAUSE_INODES));
	} else if (r->limits_hit & 1u << CAUSE_PIDS) {
		set(r, RESULT_LIMIT, CAUSE_PIDS, code, l->pids, l->pids);
		hint(r,
		     "more than %" PRIu64
		     " processes and threads wanted; start fewer at once, or %s",
		     l->pids, more_of(o, CAUSE_PIDS));
	} else {
		return false;
	}
	return true;
}

static const char *signal_hint(int signo)
{
	switch (signo) {
	case SIGSEGV:
		return "segmentation fault: a crash in native code, or recursion without end";
	case SIGABRT:
		return "aborted: the program ended itself after an internal error";
	case SIGILL:
		return "illegal instruction: built for another processor, or a deliberate trap";
	case SIGFPE:
		return "arithmetic error in native code, such as an integer division by zero";
	case SIGBUS:
		return "bus error: memory-mapped file cut short, or the writable layer is full";
	case SIGKILL:
		return "killed by another process of the cell";
	default:
		return "ended by a signal";
	}
}

void result_judge(const struct outcome *o, const struct cell_spec *spec, struct result *ret)
{
	struct result *r = ret;
	int status = o->exit.status;

	memset(r, 0, sizeof(*r));
	touched(o, r);
	if (judge_cell(o, &spec->limits, r))
		return;
	if (WIFSIGNALED(status)) {
		r->signo = WTERMSIG(status);
		r->exit_code = 128 + r->signo;
	} else {
		r->exit_code = WEXITSTATUS(status);
	}
	if (r->exit_code == 0 || judge_limits(o, &spec->limits, r))
		return;
	if (r->signo) {
		set(r, RESULT_SIGNAL, CAUSE_SIGNAL, r->exit_code, 0, 0);
		hint(r, "%s", signal_hint(r->signo));
	} else {
		r->status = RESULT_ERROR;
	}
}

static void json_cause(struct json *j, const struct result *r)
{
	if (r->cause == CAUSE_NONE) {
		json_member_null(j, "cause");
		return;
	}
	json_member_object(j, "cause");
	json_member_str(j, "kind", cause_names[r->cause]);
	if (r->limit) {
		json_member_uint(j, "limit", r->limit);
		json_member_uint(j, "peak", r->peak);
	}
	json_member_str(j, "hint", r->hint);
	json_object_end(j);
}

void result_json(struct json *j, const struct result *r, const struct outcome *o)
{
	json_member_str(j, "status", status_names[r->status]);
	json_member_int(j, "exit_code", r->exit_code);
	const char *name = r->signo ? sigabbrev_np(r->signo) : NULL;

	json_member_str(j, "signal", r->signo && !name ? "RT" : name);
	json_cause(j, r);
	if (r->cause == CAUSE_NONE && r->hint[0])
		json_member_str(j, "hint", r->hint);
	json_member_array(j, "limits_hit");
	for (unsigned int c = 1; c < CAUSE_MAX_; c++)
		if (r->limits_hit & 1u << c)
			json_str(j, cause_names[c]);
	json_array_end(j);
	result_usage_json(j, o);
}

void result_usage_json(struct json *j, const struct outcome *o)
{
	json_member_object(j, "usage");
	json_member_uint(j, "wall_ns", o->wall_ns);
	json_member_uint(j, "cpu_ns", o->usage.cpu_ns);
	json_member_uint(j, "memory_peak", o->usage.memory_peak);
	json_member_uint(j, "pids_peak", o->usage.pids_peak);
	json_member_uint(j, "disk_used", o->exit.disk.used);
	json_member_uint(j, "stdout_bytes", o->stdout_bytes);
	json_member_uint(j, "stderr_bytes", o->stderr_bytes);
	json_member_uint(j, "throttled_ns", o->usage.throttled_ns);
	json_object_end(j);
}
