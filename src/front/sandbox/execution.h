/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution.h - One piece of code on its way through a kernel, and what became of it.
 *
 * Life: execution_new() -> queued in a sandbox -> running -> (interrupted -> killed) -> judged ->
 * done. The sandbox calls the functions in the middle; whoever asked hears of it through a sink,
 * whose done is called exactly once, unless it was cancelled before.
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
	/* The execution reports an event as it happens; NULL: the adapter shows none. */
	void (*event)(struct execution *x, const struct event *ev);
	/* The adapter can answer input(): an EVENT_INPUT_REQUEST, then execution_answer(). */
	bool can_answer;
	bool patient;      /* a person answers: until then the time of the execution stands still */
	bool errors_apart; /* an error is an event, and not written to stderr as well */
	bool (*congested)(struct execution *x); /* the reader is behind; then execution_resume() */
	/* A tool call waits for a person's approval; NULL: the adapter cannot ask one. */
	void (*approve)(struct execution *x, struct approval *a);
	/* It is over; with x->refusal.kind set it was not run. x is freed afterwards. May be NULL.
	 */
	void (*done)(struct execution *x);
};

enum execution_phase { X_QUEUED, X_RUNNING, X_INTERRUPTED, X_KILLED, X_JUDGING, X_DONE };

struct execution {
	struct sandboxes *sandboxes;
	struct sandbox *sandbox;
	struct execution *next; /* in the sandbox's queue */
	const struct sink *sink;
	void *user; /* the sink's */
	/* The object that the last event of its stream holds; NULL: execution_exec_json(). */
	void (*write_result)(const struct execution *x, struct json *j);
	const struct language *language;
	char *code;
	size_t code_len;
	char *stdin_text; /* answers to input(), line by line; NULL: none */
	size_t stdin_at;
	uint64_t timeout_ms;
	unsigned int count;       /* its number, for code that looks back at others; 0: none */
	struct record *record;    /* for those who ask later; NULL: nobody can */
	struct buf answer;        /* execution_answer_json(), once it was asked for */
	struct timer timer;       /* deadline, then grace */
	struct deferred deserted; /* its last reader went: execution_cancel() */
	uint64_t queued_ns, started_ns, ended_ns, grace_until_ns;
	uint64_t started_files_ms; /* the same moment by the clock of files (time_files_ms()) */
	struct rpc *rpcs;          /* what its code asks us for (code/rpc.h) */
	unsigned int n_rpcs, rpc_refused, tools_refused;
	unsigned int holds;            /* why its time stands still */
	uint64_t held_ns, stood_ns;    /* since when, and how long it stood before */
	struct spool own[2];           /* of the output, when it has no record */
	struct spool *streams[2];      /* by enum kernel_stream: own, or its record's */
	struct text_joiner joiners[2]; /* of the events of each enum kernel_stream */
	struct buf held; /* the beginning of a line, for an event, and for a millisecond */
	enum kernel_stream held_stream;
	struct timer hold;
	struct buf displays, result, error; /* JSON: array items, a bundle, an object */
	json_t *result_metadata;            /* of the bundle; NULL: none */
	size_t n_displays, displays_dropped;
	size_t late; /* bytes of events beyond what the listener kept up with, while it ends */
	const char *broke; /* the kernel broke the protocol: how */
	const char *state; /* kept, reset, discarded */
	struct outcome outcome;
	struct result verdict;
	struct refusal refusal;
	enum execution_phase phase;
	int interrupted; /* a signal that a client asked for */
	int exit_status; /* as from wait: real when kernel_ended, otherwise what the kernel says */
	uint32_t epoch;
	bool admitted; /* the policy was asked about it already */
	bool begun;    /* the ledger says so: it gets an end there too */
	bool has_stdin;
	bool asked;       /* an EVENT_INPUT_REQUEST waits for execution_answer() */
	int64_t question; /* its id */
	bool is_query;    /* code is a question of ours, as JSON: docs/protocol/kernel.md */
	bool look;        /* whoever asked wants to know whether files changed */
	bool files;       /* they may have */
	bool cancelled;   /* nobody wants the result any more */
	bool wall_hit;
	bool kernel_ended, cell_gone, reported_done, asked_again;
	char id[33];
};

struct execution *execution_new(struct sandboxes *sandboxes, const struct language *l,
				const char *code, size_t len, uint64_t timeout_ms,
				const struct sink *sink, void *user);
void execution_free(struct execution *x);

/*
 * execution_hold() - Its time stands still until execution_release(), but for no more than
 * EXECUTION_STAND_MAX_S in all. They nest.
 */
#define EXECUTION_STAND_MAX_S 300u
void execution_hold(struct execution *x);
void execution_release(struct execution *x);
/*
 * execution_patience_ms() - How long something that the code waits for may take: a little less than
 * what is left of its time, so that the code hears that it took too long, and not that it is
 * interrupted. At least 1.
 */
uint64_t execution_patience_ms(const struct execution *x);

/* execution_judge() - It is over, one way or another: ask for the numbers, then conclude. */
void execution_judge(struct execution *x);

#define EXECUTION_DISPLAYS_BYTES (32u << 20)

/* ---- between its files --------------------------------------------------------------------- */

/* execution_emit() - An event with @members, after the text that was written before it. @size:
 * about how much of a listener's memory it takes. */
void execution_emit(struct execution *x, enum event_kind kind, const json_t *members, size_t size);
/* execution_asks() - Code calls input(): the message of its kernel. */
void execution_asks(struct execution *x, struct kernel *s, const json_t *m);
/* execution_answer_input() - Answer input() with a value, an error, or the end of the file. */
void execution_answer_input(struct kernel *s, int64_t id, const char *value, size_t len,
			    const char *error, bool eof);
/* execution_conclude() - All numbers are here: judge, and report. */
void execution_conclude(struct execution *x);
/* execution_flush() - Give listeners the beginning of a character that never was finished. */
void execution_flush(struct execution *x);

/* For the sandbox. */
void execution_run(struct execution *x, struct kernel *s);
/* execution_message(), execution_output(), execution_drained() - Of a cell, for struct cell_ops:
 * they are the running execution's if its kernel sent them, or else a background task's. */
void execution_message(struct cell *r, struct kernel *kernel, const char *type, json_t *m);
void execution_output(struct cell *r, struct kernel *kernel, enum kernel_stream stream,
		      const char *data, size_t len);
void execution_drained(struct cell *r, struct kernel *kernel);
/* execution_stray() - A message of a background task, which must not wait for ever. */
void execution_stray(struct kernel *s, const char *type, json_t *m);
void execution_kernel_ended(struct execution *x, struct kernel *s, int status);
void execution_cell_gone(struct execution *x, const struct cell_usage *u);
void execution_usage(struct execution *x, const struct cell_usage *u);
void execution_disk(struct execution *x, const struct init_disk *d);
/* execution_no_language() - Refused: the image has no interpreter for it. */
void execution_no_language(struct execution *x, const struct image_use *g);
/* execution_refuse_as(), execution_refuse() - It will not run; done follows. */
void execution_refuse_as(struct execution *x, const struct refusal *why);
void execution_refuse(struct execution *x, enum refusal_kind kind, const char *code,
		      const char *hint, unsigned int retry_after_s, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

/*
 * For whoever asked. execution_interrupt(): one that waits is done at once (@x is gone then), one
 * that runs is told to end. Neither touches the others of its sandbox.
 */
void execution_interrupt(struct execution *x);
/* execution_cancel() - The client is gone: done is not called any more; the code is interrupted. */
void execution_cancel(struct execution *x);
void execution_answer(struct execution *x, int64_t id, const char *value, const char *error);
/*
 * execution_leave() - The adapter goes: it is called no more, nobody answers input(), and the
 * execution goes on for the readers of its record.
 */
void execution_leave(struct execution *x);
void execution_resume(struct execution *x); /* the listener is ready for more */

/* execution_json() - The result object of /execute. */
void execution_json(const struct execution *x, struct json *j);
/* execution_exec_json() - ExecResult, the one of /v1. */
void execution_exec_json(const struct execution *x, struct json *j);

/* ---- records (execution_json.c) ------------------------------------------------------------ */

/* execution_keep() - Before it is queued in @s: make a record of it there. False without memory. */
bool execution_keep(struct execution *x, struct sandbox *s);

/*
 * execution_answer_json() - Its result as its write_result has it, or the error when it was
 * refused. Made once. The err of the buffer says whether it could be written.
 */
const struct buf *execution_answer_json(struct execution *x);

/* execution_readers_behind() - For struct sink: the readers of its events are behind. */
bool execution_readers_behind(struct execution *x);

/* For execution.c: it is over. */
void execution_close_record(struct execution *x);

#endif
