/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - One program in a sandbox's cell, from its words to the verdict over it.
 *
 * Life: command_run() -> waiting for a cell -> starting -> running -> (interrupted -> killed) ->
 * judged -> done. done is called exactly once, last, and perhaps from inside command_run(): with
 * refusal.kind set it was not run. The struct is the asker's, who lets go of everything with
 * command_release(), in done or later.
 *
 * Output is handed up as it comes, stdout and stderr apart, or together from a terminal. When the
 * program has ended, what is in its pipes by then is all that counts: processes that it left behind
 * and that hold them keep nobody waiting.
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

#define COMMAND_INPUT_MAX (1u << 20) /* bytes that wait for a program that does not read */

enum command_stream { COMMAND_STDOUT, COMMAND_STDERR, COMMAND_STREAMS };

struct command_ops {
	void (*started)(struct command *c); /* may be NULL; c->pid is known */
	void (*output)(struct command *c, enum command_stream stream, const char *data, size_t len);
	/* Whether to stop reading until command_resume(); may be NULL. */
	bool (*congested)(struct command *c);
	/* All that waited was read by it; may be NULL. */
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
	/* The asker's, before command_run(); the rest is zero. */
	const struct command_ops *ops;
	void *owner;
	struct command_line line; /* ours from then on */
	bool pty;
	uint16_t rows, cols;
	bool alone;          /* goes on without its process group: what it left behind may live */
	uint64_t timeout_ms; /* 0: none */

	struct sandboxes *sandboxes;
	enum command_phase phase;
	struct entry entry;
	const struct sandbox *sandbox; /* where; gone after done */
	struct cell *cell;             /* NULL: not inside */
	struct cell_command job;
	struct cell_limits limits;
	int pid;                               /* in the cell; 0: not started */
	struct watch in, out[COMMAND_STREAMS]; /* of a terminal only out[0], for both ways */
	struct buf input;                      /* not yet written */
	bool input_end, paused;
	bool deserted;     /* nobody has its terminal open */
	struct timer rest; /* its terminal is left alone until then */
	uint64_t bytes[COMMAND_STREAMS];
	struct timer timer;
	struct warden_call usage_call;
	uint64_t asked_ns, started_ns, ended_ns;
	uint64_t denied; /* forks refused in the cell before it began */
	bool wall_hit, gone, asked_again, expired;
	int stopped; /* a signal that made us end it */
	struct outcome outcome;
	struct result verdict;
	struct refusal refusal;
	bool not_started; /* there is no such program, or the like: outcome says how */
};

/* command_run() - In @s, when it has a cell. */
void command_run(struct command *c, struct sandbox *s);

/* command_input() - -EAGAIN when too much waits already, -EPIPE when it does not read any more. */
int command_input(struct command *c, const void *data, size_t len);
/* command_input_end() - Nothing follows: end of file when it is all read. On a terminal: Ctrl-D. */
void command_input_end(struct command *c);
bool command_input_open(const struct command *c);
/* command_preset() - Before command_run(): all of its input, of any length. False without memory.
 */
bool command_preset(struct command *c, const void *data, size_t len);

void command_resize(struct command *c, uint16_t rows, uint16_t cols);
/* commands_in() - How many run in @s or wait for its cell. */
size_t commands_in(const struct sandbox *s);
/* command_signal() - To the program, or to its whole group. False: it does not run. */
bool command_signal(struct command *c, int signo, bool group);
/* command_stop() - Interrupt it, and kill it after a grace; then done. Before it runs: done at
 * once. */
void command_stop(struct command *c);
void command_resume(struct command *c); /* the listener is ready for more */

/* command_release() - Nothing is called any more. What runs is killed. Idempotent. */
void command_release(struct command *c);

/* For command.c (command_io.c): the descriptors. */
int command_io_begin(struct command *c, int *fds, size_t n_fds);
void command_io_drain(struct command *c); /* hand up what is there, and close */
void command_io_close(struct command *c);

#endif
