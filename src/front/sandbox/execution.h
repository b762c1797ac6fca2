/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution.h - One execution: code that a kernel runs, from the request to its result.
 *
 * Life: execution_new() -> queued in a sandbox -> running -> (interrupted -> killed) -> judged ->
 * done. The sandbox calls the functions in the middle. The adapter that began the execution
 * receives its events and its end through a sink, whose done is called exactly once, unless the
 * execution was cancelled before. execution.c has its making and its end, execution_run.c its run,
 * execution_events.c its events, execution_json.c its result as JSON.
 */
#ifndef CAISSON_FRONT_EXECUTION_H
#define CAISSON_FRONT_EXECUTION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "client/result.h"
#include "front/cell/kernel_pipes.h"
#include "front/cell/language.h"
#include "front/output/output_text.h"
#include "front/output/spool.h"
#include "front/sandbox/displays.h"
#include "front/sandbox/event.h"
#include "front/support/refusal.h"
#include "net/loop.h"

struct approval;
struct cell;
struct execution;
struct image_use;
struct json;
struct kernel;
struct record;
struct rpc;
struct sandbox;
struct sandboxes;

/* The adapter that began an execution, as the execution sees it. */
struct sink {
	/* The execution reports an event as it happens; NULL: the adapter shows no events. */
	void (*event)(struct execution *x, const struct event *ev);
	/* The adapter can answer input(): an EVENT_INPUT_REQUEST, then execution_answer(). */
	bool can_answer;
	bool patient;      /* a person answers: until then the time of the execution stands still */
	bool errors_apart; /* an error is an event alone, and is not written to stderr as well */
	/* Whether the reader is behind; if so, execution_resume() follows. */
	bool (*congested)(struct execution *x);
	/* A tool call waits for a person's approval; NULL: the adapter cannot ask one. */
	void (*approve)(struct execution *x, struct approval *a);
	/* The execution is over; if x->refusal.kind is set, it did not run. x is freed afterwards.
	 * May be NULL. */
	void (*done)(struct execution *x);
};

enum execution_phase { X_QUEUED, X_RUNNING, X_INTERRUPTED, X_KILLED, X_JUDGING, X_DONE };

struct execution {
	struct sandboxes *sandboxes;
	struct sandbox *sandbox;
	struct execution *next; /* in the sandbox's queue */
	const struct sink *sink;
	void *user; /* for the sink */
	/* Writes the object of the last event of its stream; NULL: execution_exec_json(). */
	void (*write_result)(const struct execution *x, struct json *j);
	const struct language *language;
	char *code;
	size_t code_len;
	char *stdin_text; /* answers to input(), line by line; NULL: none */
	size_t stdin_at;
	uint64_t timeout_ms;
	/* The number under which later code finds it (In, Out); 0: no number. */
	unsigned int count;
	struct record *record;    /* keeps it for later requests; NULL: it is not kept */
	struct buf answer;        /* of execution_answer_json(), after the first call */
	struct timer timer;       /* deadline, then grace */
	struct deferred deserted; /* its last reader left: execution_cancel() follows */
	uint64_t queued_ns, started_ns, ended_ns, grace_until_ns;
	uint64_t started_files_ms; /* the same moment by the clock of files (time_files_ms()) */
	struct rpc *rpcs;          /* requests of its code to the front (tool_calls/rpc.h) */
	unsigned int n_rpcs, rpc_refused, tools_refused;
	unsigned int holds;            /* number of reasons why its time stands still */
	uint64_t held_ns, stood_ns;    /* since when it stands still, and how long it did before */
	uint64_t held_cpu_ns;          /* of the cell, at held_ns */
	struct spool own[2];           /* its output, if it has no record */
	struct spool *streams[2];      /* by enum kernel_stream: own, or its record's */
	struct text_joiner joiners[2]; /* for the events of each enum kernel_stream */
	/* The beginning of a line, which waits a millisecond for its end, to be one event. */
	struct buf held;
	enum kernel_stream held_stream;
	struct timer hold;
	struct displays displays;
	struct buf result, error; /* JSON: a bundle, an object */
	json_t *result_metadata;  /* of the bundle; NULL: none */
	bool result_cut;          /* a part of the bundle is left out */
	/* Bytes of events for a listener that does not keep up, while the execution ends. */
	size_t late;
	const char *broke; /* how the kernel broke the protocol; or NULL */
	const char *state; /* kept, reset, discarded */
	struct outcome outcome;
	struct result verdict;
	struct refusal refusal;
	enum execution_phase phase;
	int interrupted; /* the signal, if a client interrupted it; otherwise 0 */
	int exit_status; /* as from wait(2): real if kernel_ended, otherwise the kernel's report */
	uint32_t epoch;
	uint64_t oom_kills; /* in its cell, before it ran */
	bool admitted;      /* the policy was applied to it already */
	bool begun;         /* the ledger has its begin, and gets its end */
	bool has_stdin;
	bool asked;       /* an EVENT_INPUT_REQUEST waits for execution_answer() */
	int64_t question; /* the id of that request */
	bool is_query;    /* code is a query of the front, as JSON: docs/protocol/kernel.md */
	bool look;        /* the client wants to know whether files changed */
	bool files;       /* files may have changed */
	bool cancelled;   /* the client is gone, and needs no result */
	bool wall_hit;
	bool woken; /* at its deadline, because its cell rested */
	bool kernel_ended, cell_gone, reported_done, asked_again;
	char id[33];
};

/*
 * execution_new() - Make an execution; copies @code. @sink and @user are borrowed. NULL: no memory.
 * After sandbox_queue() it frees itself when it is done; before, the caller frees it.
 */
struct execution *execution_new(struct sandboxes *sandboxes, const struct language *l,
				const char *code, size_t len, uint64_t timeout_ms,
				const struct sink *sink, void *user);
void execution_free(struct execution *x);

/*
 * execution_hold() - Stop its time until execution_release(), but for no more than
 * EXECUTION_STAND_MAX_S in all. Processor time that the cell uses meanwhile counts. Calls nest.
 */
#define EXECUTION_STAND_MAX_S 300u
void execution_hold(struct execution *x);
void execution_release(struct execution *x);
/*
 * execution_patience_ms() - How long an operation may take that the code waits for: a little less
 * than the time that the execution has left, so that the code gets the error of a slow operation,
 * and not an interrupt. At least 1.
 */
uint64_t execution_patience_ms(const struct execution *x);

/* execution_judge() - The code has ended, in whatever way: ask for the numbers, then conclude. */
void execution_judge(struct execution *x);

/* execution_cut() - Whether a part of the result or of the displays is left out. */
bool execution_cut(const struct execution *x);

/* ---- for the files of this directory ------------------------------------------------------- */

/*
 * execution_emit() - Report an event with @members, after the text that was written before it.
 * @size: about how much of a listener's memory it takes.
 */
void execution_emit(struct execution *x, enum event_kind kind, const json_t *members, size_t size);
/* execution_asks() - Handle the message of a kernel whose code calls input(). */
void execution_asks(struct execution *x, struct kernel *s, const json_t *m);
/* execution_answer_input() - Answer input() with a value, an error, or the end of the file. */
void execution_answer_input(struct kernel *s, int64_t id, const char *value, size_t len,
			    const char *error, bool eof);
/* execution_conclude() - All numbers are known: judge, and report. Frees @x. */
void execution_conclude(struct execution *x);
/*
 * execution_flush() - Send listeners the text that waits, also the beginning of a character that
 * was never finished.
 */
void execution_flush(struct execution *x);

/* For the sandbox. execution_run() - Send the code to @s, and watch the time. */
void execution_run(struct execution *x, struct kernel *s);
/*
 * execution_message(), execution_output(), execution_drained() - Events of a cell, for struct
 * cell_ops. A message is for the running execution if its kernel sent it, and otherwise of a
 * background task; output of all kernels goes to the running execution.
 */
void execution_message(struct cell *r, struct kernel *kernel, const char *type, json_t *m);
void execution_output(struct cell *r, struct kernel *kernel, enum kernel_stream stream,
		      const char *data, size_t len);
void execution_drained(struct cell *r, struct kernel *kernel);
/* execution_stray() - Answer a message of a background task, which must not wait for ever. */
void execution_stray(struct kernel *s, const char *type, json_t *m);
/*
 * execution_kernel_ended(), execution_cell_gone() - The kernel or the cell of a running execution
 * has ended. execution_usage(), execution_disk() - The answers to cell_usage() and cell_disk().
 */
void execution_kernel_ended(struct execution *x, struct kernel *s, int status);
void execution_cell_gone(struct execution *x, const struct cell_usage *u);
void execution_usage(struct execution *x, const struct cell_usage *u);
void execution_disk(struct execution *x, const struct init_disk *d);
/* execution_no_language() - Refuse it: the image has no interpreter for it. */
void execution_no_language(struct execution *x, const struct image_use *g);
/* execution_refuse_as(), execution_refuse() - Refuse to run it; done is called, and @x is freed. */
void execution_refuse_as(struct execution *x, const struct refusal *why);
void execution_refuse(struct execution *x, enum refusal_kind kind, const char *code,
		      const char *hint, unsigned int retry_after_s, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

/*
 * For the adapter. execution_interrupt() - An execution that waits is done at once (@x is freed),
 * and one that runs is interrupted. The other executions of its sandbox are not affected.
 */
void execution_interrupt(struct execution *x);
/*
 * execution_cancel() - The client is gone: done is not called any more, and the code is
 * interrupted. A sandbox without a name ends.
 */
void execution_cancel(struct execution *x);
/* execution_answer() - Answer the EVENT_INPUT_REQUEST @id with a value or an error. */
void execution_answer(struct execution *x, int64_t id, const char *value, const char *error);
/*
 * execution_leave() - The adapter leaves: its functions are not called any more, input() gets an
 * error, and the execution goes on for the readers of its record.
 */
void execution_leave(struct execution *x);
void execution_resume(struct execution *x); /* the listener is ready for more */

/* execution_json() - Write the result object of /execute. */
void execution_json(const struct execution *x, struct json *j);
/* execution_exec_json() - Write ExecResult, the result object of /v1. */
void execution_exec_json(const struct execution *x, struct json *j);

/* ---- records (execution_json.c) ------------------------------------------------------------ */

/* execution_keep() - Make a record of it in @s, before it is queued there. False: no memory. */
bool execution_keep(struct execution *x, struct sandbox *s);

/*
 * execution_answer_json() - Its result as write_result writes it, or the error if it was refused.
 * Made once; @x owns it. The err of the buffer is set if it could not be written.
 */
const struct buf *execution_answer_json(struct execution *x);

/* execution_readers_behind() - Whether the readers of its events are behind. For struct sink. */
bool execution_readers_behind(struct execution *x);

/* execution_close_record() - For execution.c: finish the record of an execution that is over. */
void execution_close_record(struct execution *x);

#endif
