/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_result.c - The verdict table: which facts win over which others, and the words for them.
 *
 * Each row of the table is one branch of result_judge(); the pairs after it fix the order in which
 * the branches are asked, because that order is the policy.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "cell/spec.h"
#include "client/result.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"

#define MIB (UINT64_C(1) << 20)
#define HIT(cause) (1u << (cause))

/* Wait statuses as the kernel encodes them. */
#define EXITED(code) ((code) << 8)
#define KILLED(signo) (signo)
#define DUMPED(signo) ((signo) | 0x80)

/* The limits of every case: each number once, so that none can be taken for another. */
static const struct cell_spec spec = {
	.limits = {
		.memory_bytes = 256 * MIB,
		.disk_bytes = 100 * MIB,
		.inodes = 5000,
		.pids = 64,
		.files = 1024,
		.cpu_time_ms = 5000,
		.cpu_milli = 1000,
	},
};

/* A run that went well; the cases change what they are about. */
static struct outcome calm(void)
{
	return (struct outcome){
		.started = true,
		.exited = true,
		.exit = {
			.status = EXITED(0),
			.disk.used = 7 * MIB,
			.disk.size = 100 * MIB,
			.disk.inodes_used = 30,
			.disk.inodes_size = 5000,
		},
		.usage = { .end = CELL_END_CLIENT, .cpu_ns = 1234000000, .memory_peak = 99 * MIB },
		.wall_ns = 2500000000,
		.stdout_bytes = 11,
		.stderr_bytes = 22,
		.wall_limit_ms = 10000,
		.output_limit = 2 * MIB,
	};
}

static void gone(struct outcome *o)
{
	o->exited = false;
	memset(&o->exit, 0, sizeof(o->exit));
}
static void oom(struct outcome *o)
{
	gone(o);
	o->usage.end = CELL_END_MEMORY;
}
static void oom_counted(struct outcome *o)
{
	gone(o);
	o->usage.end = CELL_END_INIT;
	o->usage.oom_kills = 1;
}
static void oom_files(struct outcome *o)
{
	oom(o);
	o->usage.memory_files = 200 * MIB;
}
static void oom_child_only(struct outcome *o)
{
	o->usage.oom_kills = 2;
}
static void cpu_time(struct outcome *o)
{
	gone(o);
	o->usage.end = CELL_END_CPU_TIME;
	o->usage.cpu_ns = 5004000000;
}
static void wall(struct outcome *o)
{
	gone(o);
	o->wall_hit = true;
	o->wall_ns = 10003000000;
}
static void wall_backstop(struct outcome *o)
{
	gone(o);
	o->usage.end = CELL_END_WALL;
	o->wall_ns = 10003000000;
}
static void output(struct outcome *o)
{
	gone(o);
	o->output_hit = true;
	o->stdout_bytes = 2 * MIB;
	o->stderr_bytes = 5;
}
static void interrupt(struct outcome *o)
{
	gone(o);
	o->interrupted = SIGINT;
}
static void hangup(struct outcome *o)
{
	gone(o);
	o->interrupted = SIGHUP;
}
static void pids(struct outcome *o)
{
	o->usage.pids_denied = 3;
}
static void disk(struct outcome *o)
{
	o->exit.disk.used = 100 * MIB;
}
static void inodes(struct outcome *o)
{
	o->exit.disk.inodes_used = 5000;
}

typedef void change(struct outcome *o);

struct verdict {
	change *with[4]; /* applied in order */
	int wait;        /* then: the exit status, as wait(2) has it */
	enum result_status status;
	enum result_cause cause;
	int exit_code, signo;
	uint64_t limit, peak;
	uint32_t hit;
	const char *hint; /* part of it; "" without a hint */
};

/* The expectation of a row, up to its limits: the numbers are those of the specification above. */
#define OK RESULT_OK, CAUSE_NONE, 0, 0, 0, 0
#define ERROR(code) RESULT_ERROR, CAUSE_NONE, code, 0, 0, 0
#define SIGNAL(signo) RESULT_SIGNAL, CAUSE_SIGNAL, 128 + (signo), signo, 0, 0
#define INTERRUPT(signo) RESULT_SIGNAL, CAUSE_INTERRUPT, 128 + (signo), signo, 0, 0
#define MEMORY RESULT_LIMIT, CAUSE_MEMORY, 137, 0, 256 * MIB, 99 * MIB
#define MEMORY_CHILD(code) RESULT_LIMIT, CAUSE_MEMORY, code, 0, 256 * MIB, 99 * MIB
#define CPU RESULT_LIMIT, CAUSE_CPU, 124, 0, 5000, 5004
#define WALL RESULT_TIMEOUT, CAUSE_WALL, 124, 0, 10000, 10003
#define OUTPUT RESULT_LIMIT, CAUSE_OUTPUT, 137, 0, 2 * MIB, 2 * MIB + 5
#define DISK(code, signo, used) RESULT_LIMIT, CAUSE_DISK, code, signo, 100 * MIB, used
#define INODES RESULT_LIMIT, CAUSE_INODES, 1, 0, 5000, 5000
#define PIDS(code, signo) RESULT_LIMIT, CAUSE_PIDS, code, signo, 64, 64
#define ALL (HIT(CAUSE_PIDS) | HIT(CAUSE_DISK) | HIT(CAUSE_INODES))

static const struct verdict verdicts[] = {
	/* by itself */
	{ { NULL }, 0, OK, 0, "" },
	{ { NULL }, EXITED(1), ERROR(1), 0, "" },
	{ { NULL }, EXITED(255), ERROR(255), 0, "" },
	{ { NULL }, DUMPED(SIGSEGV), SIGNAL(SIGSEGV), 0, "recursion" },
	{ { NULL }, KILLED(SIGABRT), SIGNAL(SIGABRT), 0, "aborted" },
	{ { NULL }, KILLED(SIGILL), SIGNAL(SIGILL), 0, "illegal instruction" },
	{ { NULL }, KILLED(SIGFPE), SIGNAL(SIGFPE), 0, "division by zero" },
	{ { NULL }, KILLED(SIGBUS), SIGNAL(SIGBUS), 0, "bus error" },
	{ { NULL }, KILLED(SIGKILL), SIGNAL(SIGKILL), 0, "another process" },
	{ { NULL }, KILLED(SIGUSR1), SIGNAL(SIGUSR1), 0, "by a signal" },
	{ { NULL }, KILLED(40), SIGNAL(40), 0, "by a signal" },

	/* ended as a whole */
	{ { oom },
	  0,
	  MEMORY,
	  HIT(CAUSE_MEMORY),
	  "out of memory: all of 256 MiB used; work on less" },
	{ { oom_counted }, 0, MEMORY, HIT(CAUSE_MEMORY), "raise --memory" },
	{ { oom_files }, 0, MEMORY, HIT(CAUSE_MEMORY), "200 MiB of it by files" },
	{ { oom_child_only }, KILLED(SIGKILL), MEMORY, HIT(CAUSE_MEMORY), "out of memory" },
	{ { cpu_time }, 0, CPU, HIT(CAUSE_CPU), "cpu time limit of 5 s used up" },
	{ { wall }, 0, WALL, HIT(CAUSE_WALL), "still running after 10 s" },
	{ { wall_backstop }, 0, WALL, HIT(CAUSE_WALL), "raise --timeout" },
	{ { output }, 0, OUTPUT, HIT(CAUSE_OUTPUT), "more than 2 MiB of output" },
	{ { interrupt }, 0, INTERRUPT(SIGINT), 0, "from outside" },
	{ { hangup }, 0, INTERRUPT(SIGHUP), 0, "from outside" },
	{ { gone },
	  0,
	  RESULT_FAILED,
	  CAUSE_INIT,
	  125,
	  0,
	  0,
	  0,
	  0,
	  "without a report of its pid "
	  "1" },

	/* a limit that a program ran into and failed of, with its own exit code */
	{ { disk }, EXITED(1), DISK(1, 0, 100 * MIB), HIT(CAUSE_DISK), "layer of 100 MiB is full" },
	{ { NULL }, KILLED(SIGXFSZ), DISK(153, SIGXFSZ, 7 * MIB), HIT(CAUSE_DISK), "raise --disk" },
	{ { disk }, KILLED(SIGBUS), DISK(135, SIGBUS, 100 * MIB), HIT(CAUSE_DISK), "raise --disk" },
	{ { inodes }, EXITED(1), INODES, HIT(CAUSE_INODES), "no room for more than 5000 files" },
	{ { oom_child_only }, EXITED(1), MEMORY_CHILD(1), HIT(CAUSE_MEMORY), "out of memory" },
	{ { pids }, EXITED(1), PIDS(1, 0), HIT(CAUSE_PIDS), "more than 64 processes" },
	{ { pids }, KILLED(SIGKILL), PIDS(137, SIGKILL), HIT(CAUSE_PIDS), "raise --pids" },

	/* touched without harm: listed, but the cause of nothing */
	{ { disk }, 0, OK, HIT(CAUSE_DISK), "" },
	{ { inodes }, 0, OK, HIT(CAUSE_INODES), "" },
	{ { pids }, 0, OK, HIT(CAUSE_PIDS), "" },
	{ { pids, disk, inodes }, 0, OK, ALL, "" },
	{ { oom_child_only }, 0, OK, HIT(CAUSE_MEMORY), "" },

	/* precedence: memory, cpu time, wall, output, interrupt, then the program itself */
	{ { cpu_time, wall, oom }, 0, MEMORY, HIT(CAUSE_MEMORY), "" },
	/* It was ended at the deadline, not by the kill of one of its children. */
	{ { oom_counted, wall }, 0, WALL, HIT(CAUSE_MEMORY) | HIT(CAUSE_WALL), "" },
	{ { wall, output, cpu_time }, 0, CPU, HIT(CAUSE_CPU), "" },
	{ { output, interrupt, wall }, 0, WALL, HIT(CAUSE_WALL), "" },
	{ { interrupt, output }, 0, OUTPUT, HIT(CAUSE_OUTPUT), "" },
	{ { pids, disk, inodes }, EXITED(1), DISK(1, 0, 100 * MIB), ALL, "" },
	{ { pids, inodes }, EXITED(1), INODES, HIT(CAUSE_PIDS) | HIT(CAUSE_INODES), "" },
	/* An echo of the kill in the exit status changes nothing. */
	{ { wall, pids }, 0, WALL, HIT(CAUSE_WALL) | HIT(CAUSE_PIDS), "" },
};

/* The outcome of a row: a calm run, changed. */
static struct outcome outcome_of(const struct verdict *v)
{
	struct outcome o = calm();

	for (size_t k = 0; k < ARRAY_SIZE(v->with) && v->with[k]; k++)
		v->with[k](&o);
	o.exit.status = v->wait;
	return o;
}

TEST(verdicts)
{
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		const struct verdict *v = &verdicts[i];
		struct outcome o = outcome_of(v);
		struct result r;

		memset(&r, 0xa5, sizeof(r));
		result_judge(&o, &spec, &r);
		print_message("row %zu: %s %s\n", i, result_status_name(r.status),
			      result_cause_name(r.cause));
		assert_int_equal(r.status, v->status);
		assert_int_equal(r.cause, v->cause);
		assert_int_equal(r.exit_code, v->exit_code);
		assert_int_equal(r.signo, v->signo);
		assert_int_equal(r.limit, v->limit);
		assert_int_equal(r.peak, v->peak);
		assert_int_equal(r.limits_hit, v->hit);
		assert_non_null(strstr(r.hint, v->hint));
		/* A hint exactly where there is a cause, on one line, not cut off. */
		assert_int_equal(r.hint[0] != '\0', r.cause != CAUSE_NONE);
		assert_true(strlen(r.hint) < sizeof(r.hint) - 1);
		assert_null(strchr(r.hint, '\n'));
	}
}

/* A client of the daemon has no options: no hint may name one, and all are whole. */
TEST(hints_of_the_api)
{
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		const struct verdict *v = &verdicts[i];
		struct outcome o = outcome_of(v);
		struct result r;

		o.api = true;
		result_judge(&o, &spec, &r);
		assert_null(strstr(r.hint, "--"));
		assert_null(strstr(r.hint, "(null)"));
		assert_true(strlen(r.hint) < sizeof(r.hint) - 1);
		if (r.cause == CAUSE_MEMORY)
			assert_non_null(strstr(r.hint, "memory_mib"));
		if (r.cause == CAUSE_WALL)
			assert_non_null(strstr(r.hint, "longer timeout"));
	}
}

/* When is a layer full? At the last per cent, and never when its size is not known. */
TEST(nearly_full)
{
	struct result r;
	struct outcome o = calm();

	for (uint64_t used = 0; used <= 1000; used++) {
		o.exit.disk.size = o.exit.disk.inodes_size = 1000;
		o.exit.disk.used = o.exit.disk.inodes_used = used;
		result_judge(&o, &spec, &r);
		assert_int_equal(r.limits_hit,
				 used >= 990 ? HIT(CAUSE_DISK) | HIT(CAUSE_INODES) : 0);
	}
	o.exit.disk.size = o.exit.disk.inodes_size = 0;
	result_judge(&o, &spec, &r);
	assert_int_equal(r.limits_hit, 0);
	/* Numbers that never came are not looked at. */
	o = calm();
	disk(&o);
	o.exited = false;
	result_judge(&o, &spec, &r);
	assert_int_equal(r.limits_hit, 0);
}

/* The layer is smaller than was asked for, because memory bounds it: more disk would not help. */
TEST(disk_bound_by_memory)
{
	struct cell_spec large = spec;
	struct result r;
	struct outcome o = calm();

	large.limits.disk_bytes = 1024 * MIB;
	o.exit.status = EXITED(1);
	o.exit.disk.size = o.exit.disk.used = 224 * MIB; /* of 256 */
	result_judge(&o, &large, &r);
	assert_int_equal(r.cause, CAUSE_DISK);
	assert_int_equal(r.limit, 224 * MIB);
	assert_non_null(strstr(r.hint, "raise --memory"));
	o.exit.disk.size = o.exit.disk.used = 64 * MIB; /* a workspace, with a quota of its own */
	result_judge(&o, &large, &r);
	assert_null(strstr(r.hint, "--memory"));
}

/* The part of files is named from a quarter of the limit on. */
TEST(memory_of_files)
{
	struct result r;
	struct outcome o = calm();

	oom(&o);
	o.usage.memory_files = 64 * MIB;
	result_judge(&o, &spec, &r);
	assert_null(strstr(r.hint, "files"));
	o.usage.memory_files = 64 * MIB + 1;
	result_judge(&o, &spec, &r);
	assert_non_null(strstr(r.hint, "files"));
}

TEST(names)
{
	for (int s = RESULT_OK; s <= RESULT_FAILED; s++)
		assert_true(result_status_name((enum result_status)s)[0]);
	for (int c = CAUSE_NONE; c < CAUSE_MAX_; c++)
		assert_true(result_cause_name((enum result_cause)c)[0]);
	assert_string_equal(result_status_name(RESULT_TIMEOUT), "timeout");
	assert_string_equal(result_cause_name(CAUSE_INODES), "inodes");
}

static const char *to_json(struct buf *b, const struct outcome *o)
{
	struct result r;
	struct json j;

	result_judge(o, &spec, &r);
	buf_clear(b);
	json_init(&j, b);
	json_object_begin(&j);
	result_json(&j, &r, o);
	json_object_end(&j);
	assert_int_equal(json_finish(&j), 0);
	return buf_str(b);
}

TEST(json)
{
	_buf_ struct buf b = BUF_INIT(4096);
	struct outcome o = calm();

	o.usage.pids_peak = 3;
	o.usage.throttled_ns = 17;
	assert_string_equal(
		to_json(&b, &o),
		"{\"status\":\"ok\",\"exit_code\":0,\"signal\":null,\"cause\":null,"
		"\"limits_hit\":[],"
		"\"usage\":{\"wall_ns\":2500000000,\"cpu_ns\":1234000000,\"memory_peak\":103809024,"
		"\"pids_peak\":3,\"disk_used\":7340032,\"stdout_bytes\":11,\"stderr_bytes\":22,"
		"\"throttled_ns\":17}}");

	pids(&o);
	inodes(&o);
	o.exit.status = EXITED(1);
	const char *text = to_json(&b, &o);

	assert_non_null(strstr(text,
			       "{\"status\":\"limit\",\"exit_code\":1,\"signal\":null,"
			       "\"cause\":{\"kind\":\"inodes\",\"limit\":5000,\"peak\":5000,"
			       "\"hint\":\"the writable layer has no room for more than 5000"));
	assert_non_null(strstr(text, "\"limits_hit\":[\"pids\",\"inodes\"]"));

	o = calm();
	o.exit.status = DUMPED(SIGSEGV);
	text = to_json(&b, &o);
	assert_non_null(
		strstr(text, "\"status\":\"signal\",\"exit_code\":139,\"signal\":\"SEGV\""));
	/* No numbers where a cause has none. */
	assert_non_null(strstr(text, "\"cause\":{\"kind\":\"signal\",\"hint\":"));

	o = calm();
	o.exit.status = KILLED(40);
	assert_non_null(strstr(to_json(&b, &o), "\"signal\":\"RT\""));
}
