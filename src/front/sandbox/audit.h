/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h - Records sandboxes, and everything that runs in them, before it happens.
 *
 * There are two places: the ledger, which answers later who ran what, and the store, with which a
 * name outlives the daemon. An action that cannot be recorded does not happen: the functions that
 * return an int are called before it, and on failure the caller refuses it with @ret. The other
 * functions are called after the action, and can only log a failure.
 */
#ifndef CAISSON_FRONT_AUDIT_H
#define CAISSON_FRONT_AUDIT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct command_line;
struct err;
struct gate_event;
struct ledger;
struct outcome;
struct refusal;
struct result;
struct sandbox;
struct sandboxes;

/* audit_ledger() - The ledger of the daemon that @s belongs to. */
struct ledger *audit_ledger(const struct sandbox *s);

/*
 * audit_open() - Before the first request: record the start, and take over the records of former
 * sandboxes.
 */
int audit_open(struct sandboxes *sandboxes, struct err *e);
void audit_close(struct sandboxes *sandboxes);

/* audit_created() - A named sandbox is about to be made. 0, or -1 with @ret. */
int audit_created(struct sandbox *s, struct refusal *ret);
/* audit_adopted() - The sandbox was taken over from a front that was killed. */
void audit_adopted(struct sandbox *s);
/* audit_changed() - Its state or its deadline has changed. */
void audit_changed(struct sandbox *s);
void audit_removed(struct sandbox *s, const char *why);

/*
 * audit_egress() - Its egress rules are about to change. @list: canonical; NULL: no rules. 0, or -1
 * with @ret.
 */
int audit_egress(struct sandbox *s, const json_t *list, struct refusal *ret);
/* The owner, sandbox and id of a line, also after the sandbox is over. */
struct audit_whose {
	const char *owner, *sandbox, *id;
};

/*
 * audit_egress_event() - Record an event that the gate reported. audit_spec() - Store the spec of
 * the sandbox, after a change.
 */
void audit_egress_event(struct ledger *ledger, const struct audit_whose *w,
			const struct gate_event *ev);
void audit_spec(struct sandbox *s);

/* audit_port_open() - A port is about to be reachable from outside. 0, or -1 with @ret. */
int audit_port_open(struct sandbox *s, unsigned int port, struct refusal *ret);
void audit_port_closed(struct sandbox *s, unsigned int port, uint64_t requests, const char *why);

/*
 * audit_begin() - Something is about to run. @what: a language, "exec", "shell". @text: code or
 * command, of which only the hash is recorded. 0, or -1 with @ret.
 */
int audit_begin(struct sandbox *s, const char *id, const char *what, const char *text, size_t len,
		uint64_t timeout_ms, struct refusal *ret);
/*
 * audit_command() - audit_begin() for a program: its text is all of its arguments, each with its
 * NUL.
 */
int audit_command(struct sandbox *s, const char *id, const char *what,
		  const struct command_line *line, uint64_t timeout_ms, struct refusal *ret);
/*
 * audit_end(), audit_refused(), audit_dropped() - The execution with the same id is over: with a
 * result; without one, because its sandbox refused or ended it; or because its owner had it killed
 * and forgotten. One of them follows each audit_begin().
 */
void audit_end(struct sandbox *s, const char *id, const char *what, const struct result *r,
	       const struct outcome *o);
void audit_refused(struct sandbox *s, const char *id, const char *what, const struct refusal *why);
void audit_dropped(struct sandbox *s, const char *id, const char *what);

/* The fields of a file call in the ledger. Outlives the sandbox. */
struct audit_file {
	struct ledger *ledger;
	const char *owner, *sandbox, *id, *op;
};
/*
 * audit_file_begin() - A file call is about to begin. @to: NULL if it has no second path. 0, or -1
 * with @ret.
 */
int audit_file_begin(const struct audit_file *a, const char *path, const char *to,
		     struct refusal *ret);
/*
 * audit_file_end() - @outcome: done, abandoned or the code of an error. @sha256: of the content
 * that came in, or NULL.
 */
void audit_file_end(const struct audit_file *a, const char *outcome, uint64_t bytes,
		    const char *sha256);

#endif
