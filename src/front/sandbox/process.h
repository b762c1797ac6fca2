/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - Processes: commands in the background, which clients start, look up, attach to,
 * signal and remove.
 *
 * A sandbox has a table of them. A process stays in it for five minutes after its end, with its
 * output; at most 64 run at once, and 256 are remembered: beyond that the one that ended first is
 * forgotten. Its output is kept in spools: the beginning of each stream, which may be all of it.
 */
#ifndef CAISSON_FRONT_PROCESS_H
#define CAISSON_FRONT_PROCESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/output/spool.h"
#include "front/sandbox/command.h"
#include "net/loop.h"

struct json;
struct process;
struct processes;
struct sandbox;

#define PROCESSES_ALIVE 64u
#define PROCESSES_MAX 256u
#define PROCESS_ID_MAX 33

/*
 * Receives the events of a process. The struct belongs to the listener, which leaves before it is
 * freed.
 */
struct process_listener {
	/* Each function may be NULL, and may make the listener leave. */
	/* The process runs, or could not be started: see l->process->command. */
	void (*started)(struct process_listener *l);
	void (*output)(struct process_listener *l, enum command_stream stream, const char *data,
		       size_t len);
	void (*input_ready)(struct process_listener *l); /* all of its input was read */
	void (*exited)(struct process_listener *l);
	/* The process is forgotten: the listener has left. */
	void (*forgotten)(struct process_listener *l);
	/* Whether the listener can take no more for now. */
	bool (*congested)(struct process_listener *l);
	void *arg;
	struct process *process; /* NULL: has left, or never listened */
	struct process_listener *next;
};

struct process {
	struct process *next;
	struct processes *owner;
	char id[PROCESS_ID_MAX];
	struct command command;
	json_t *cmd, *args, *cwd; /* as in the request; args may be NULL */
	bool started, exited;
	struct spool spool[COMMAND_STREAMS];
	uint64_t started_ms, ended_ms; /* since 1970 */
	struct process_listener *listeners;
	struct timer forget;
};

/*
 * process_new() - Start the process that @body (checked) describes. @l listens to it from the
 * beginning: its started is called, perhaps at once. -1 with @ret: the start was not tried.
 */
int process_new(struct sandbox *s, const json_t *body, struct process_listener *l,
		struct refusal *ret);
/* process_find() - The process with this id, if it was started; NULL: unknown. */
struct process *process_find(struct sandbox *s, const char *id);
/* process_remove() - Kill and forget it. */
void process_remove(struct process *p);

void process_listen(struct process *p, struct process_listener *l);
void process_unlisten(struct process_listener *l); /* idempotent */
/* process_resume() - A listener is no longer congested. */
void process_resume(struct process *p);

/*
 * process_members() - Write its id, state, result, times and numbers of bytes, which every wire
 * shows, into an object that is open.
 */
void process_members(const struct process *p, struct json *j);
/* process_json() - Write it as an object, for HTTP. */
void process_json(const struct process *p, struct json *j);
/* processes_json() - Write `processes`, an array, the oldest first, into an object that is open. */
void processes_json(const struct sandbox *s, struct json *j);
/*
 * processes_next() - The process that was started after @p; NULL after the last. @p NULL: the
 * oldest.
 */
const struct process *processes_next(const struct sandbox *s, const struct process *p);
/* processes_alive() - How many processes run in a sandbox. */
size_t processes_alive(const struct sandbox *s);
/* processes_free() - Kill and forget all processes, at the end of their sandbox. */
void processes_free(struct sandbox *s);

/* process_signal_number() - The number of "TERM", "SIGTERM" or "15"; 0: invalid. Pure. */
int process_signal_number(const char *name);

#endif
