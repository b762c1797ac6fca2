/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - Commands that nobody waits for: started, asked about, attached to, signalled,
 * forgotten.
 *
 * A sandbox has a table of them. One stays in it for five minutes after it ended, with its output;
 * at most 64 run at once, and 256 are remembered: beyond that the one that ended first is
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

/* Somebody who hears of a process. The struct is the listener's; it leaves before it is freed. */
struct process_listener {
	/* Each may be NULL. Any of them may leave. */
	void (*started)(struct process_listener *l); /* or not: l->process->refusal */
	void (*output)(struct process_listener *l, enum command_stream stream, const char *data,
		       size_t len);
	void (*input_ready)(struct process_listener *l); /* all of its input was read */
	void (*exited)(struct process_listener *l);
	/* The process is forgotten: the listener has left. */
	void (*forgotten)(struct process_listener *l);
	/* Whether it can take no more for now. */
	bool (*congested)(struct process_listener *l);
	void *arg;
	struct process *process; /* NULL: listens to none */
	struct process_listener *next;
};

struct process {
	struct process *next;
	struct processes *owner;
	char id[PROCESS_ID_MAX];
	struct command command;
	json_t *cmd, *args, *cwd; /* as they were asked for; args may be NULL */
	bool started, exited;
	struct spool spool[COMMAND_STREAMS];
	uint64_t started_ms, ended_ms; /* since 1970 */
	struct process_listener *listeners;
	struct timer forget;
};

/*
 * process_new() - Start what @body (checked) says; @l hears whether it did, perhaps at once. -1
 * with @ret: it cannot be tried.
 */
int process_new(struct sandbox *s, const json_t *body, struct process_listener *l,
		struct refusal *ret);
struct process *process_find(struct sandbox *s, const char *id);
/* process_remove() - Kill and forget it. */
void process_remove(struct process *p);

void process_listen(struct process *p, struct process_listener *l);
void process_unlisten(struct process_listener *l); /* idempotent */
/* process_resume() - A listener that was congested is not any more. */
void process_resume(struct process *p);

/* process_members() - Its id, state, result, times and numbers of bytes, which every wire shows,
 * into an object that is open. */
void process_members(const struct process *p, struct json *j);
/* process_json() - The object, over HTTP. */
void process_json(const struct process *p, struct json *j);
/* processes_json() - `processes`, an array, the oldest first, into an object that is open. */
void processes_json(const struct sandbox *s, struct json *j);
/* processes_next() - The one that was started after @p, NULL after the last; @p NULL: the oldest.
 */
const struct process *processes_next(const struct sandbox *s, const struct process *p);
/* processes_alive() - How many run in a sandbox. */
size_t processes_alive(const struct sandbox *s);
/* processes_free() - With its sandbox. */
void processes_free(struct sandbox *s);

/* process_signal_number() - "TERM", "SIGTERM" or "15"; 0: none of these. Pure. */
int process_signal_number(const char *name);

#endif
