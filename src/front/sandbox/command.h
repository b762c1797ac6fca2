/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - One command: a program that runs in a sandbox's cell, from its arguments to its
 * result.
 *
 * Life: command_run() -> waiting for a cell -> starting -> running -> (interrupted -> killed) ->
 * judged -> done. done is called exactly once, last, and perhaps from inside command_run(); if
 * refusal.kind is set, the program did not run. The struct belongs to the caller, which frees
 * everything in it with command_release(), in done or later.
 *
 * Output is passed on as it arrives, stdout and stderr separately, or together from a terminal.
 * When the program has ended, only the bytes that are in its pipes at that moment count: processes
 * that it left behind and that hold the pipes delay nothing.
 */
#ifndef CAISSON_FRONT_COMMAND_H
#define CAISSON_FRONT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "client/result.h"
#include "front/cell/cell.h"
#include "front/cell/command_line.h"
#include "front/cell/warden_link.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "net/loop.h"

struct command;
struct json;

#define COMMAND_INPUT_MAX (1u << 20) /* bytes that wait for a program that does not read */

enum command_stream { COMMAND_STDOUT, COMMAND_STDERR, COMMAND_STREAMS };

struct command_ops {
	void (*started)(struct command *c); /* may be NULL; c->pid is known */
	void (*output)(struct command *c, enum command_stream stream, const char *data, size_t len);
	/* Whether to stop reading until command_resume(); may be NULL. */
	bool (*congested)(struct command *c);
	/* The program has read all input that waited; may be NULL. */
	void (*input_ready)(struct command *c);
	void (*done)(struct command *c);
};

enum command_phase {
	COMMAND_WAITING,
	COMMAND_STARTING,
	COMMAND_RUNNING,
	COMMAND_INTERRUPTED,
	COMMAND_KILLED,
	COMMAND_JUDGING,
	COMMAND_DONE,
};

struct command {
	/* Set by the caller before command_run(); the rest is zero. */
	const struct command_ops *ops;
	void *owner;
	struct command_line line; /* the command's from then on */
	bool pty;
	uint16_t rows, cols;
	/* Its process group is not killed at its end: processes that it left behind may live. */
	bool alone;
	uint64_t timeout_ms; /* 0: no deadline */

	struct sandboxes *sandboxes;
	enum command_phase phase;
	struct entry entry;
	const struct sandbox *sandbox; /* where it runs; invalid after done */
	struct cell *cell;             /* NULL: it has not entered, or the cell is over */
	struct cell_command job;
	struct cell_limits limits;
	int pid;                               /* in the cell; 0: not started */
	struct watch in, out[COMMAND_STREAMS]; /* a terminal has only out[0], for both ways */
	struct buf input;                      /* not yet written */
	bool input_end, paused;
	bool deserted;     /* no process has its terminal open */
	struct timer rest; /* until then its terminal is neither read nor written */
	uint64_t bytes[COMMAND_STREAMS];
	struct timer timer;
	struct warden_call usage_call;
	uint64_t asked_ns, started_ns, ended_ns;
	uint64_t denied;    /* forks refused in the cell before it began */
	uint64_t oom_kills; /* processes that ended for memory in the cell before it began */
	uint32_t epoch;     /* of the sandbox, when it began */
	bool wall_hit, gone, asked_again, expired;
	int stopped; /* the signal with which the front ended it; otherwise 0 */
	struct outcome outcome;
	struct result verdict;
	struct refusal refusal;
	/* The program could not be started, for example because it does not exist: see verdict. */
	bool not_started;
};

/* command_left_members() - Write what its sandbox has kept: exec_left_members(). In done. */
void command_left_members(const struct command *c, struct json *j);

/* command_run() - Run it in @s, as soon as that has a cell. */
void command_run(struct command *c, struct sandbox *s);

/*
 * command_input() - Queue input. -EAGAIN if too much waits already, -EPIPE if the program does not
 * read any more, -ENOMEM.
 */
int command_input(struct command *c, const void *data, size_t len);
/*
 * command_input_end() - No input follows: the program gets end of file after it has read all. On a
 * terminal: Ctrl-D.
 */
void command_input_end(struct command *c);
bool command_input_open(const struct command *c);
/*
 * command_preset() - Set all of its input, of any length, before command_run(). False: no memory.
 */
bool command_preset(struct command *c, const void *data, size_t len);

void command_resize(struct command *c, uint16_t rows, uint16_t cols);
/* commands_in() - How many commands run in @s or wait for its cell. */
size_t commands_in(const struct sandbox *s);
/*
 * command_signal() - Send a signal to the program, or to its whole process group. False: it does
 * not run.
 */
bool command_signal(struct command *c, int signo, bool group);
/*
 * command_stop() - Interrupt it, and kill it after a grace; then done. A command that waits for a
 * cell is done at once.
 */
void command_stop(struct command *c);
void command_resume(struct command *c); /* the listener is ready for more */

/*
 * command_release() - No function is called any more, and a running program is killed. Idempotent.
 */
void command_release(struct command *c);

/*
 * For command.c, in command_io.c. command_io_begin() - Watch the descriptors of the streams; those
 * that it takes become -1 in @fds. 0, or -errno.
 */
int command_io_begin(struct command *c, int *fds, size_t n_fds);
void command_io_drain(struct command *c); /* pass on the output that is there, and close */
void command_io_close(struct command *c);

#endif
