/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h - What is written down of sandboxes and of what runs in them, before it happens.
 *
 * Two places: the ledger, for whoever asks later who ran what, and the store, so that a name
 * outlives the daemon. What can not be written down does not happen: the functions that return an
 * int are called before, and on failure the caller refuses with @ret. The others follow what has
 * happened, and can only log.
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

/* audit_open() - Before the first request: note the start, and take over the records of former
 * sandboxes. */
int audit_open(struct sandboxes *sandboxes, struct err *e);
void audit_close(struct sandboxes *sandboxes);

/* audit_created() - A sandbox with a name is about to be. 0, or -1 with @ret. */
int audit_created(struct sandbox *s, struct refusal *ret);
/* audit_adopted() - It was taken over from a front that was killed. */
void audit_adopted(struct sandbox *s);
/* audit_changed() - Its state is another one, or its end. */
void audit_changed(struct sandbox *s);
void audit_removed(struct sandbox *s, const char *why);

/* audit_egress() - Its rules are about to be others. @list: canonical; NULL: none. 0, or -1 with
 * @ret. */
int audit_egress(struct sandbox *s, const json_t *list, struct refusal *ret);
/* Whose line it is, also when the sandbox is over. */
struct audit_whose {
	const char *owner, *sandbox, *id;
};

/* audit_egress_event() - What the gate told. audit_spec(): its record has another spec. */
void audit_egress_event(struct ledger *ledger, const struct audit_whose *w,
			const struct gate_event *ev);
void audit_spec(struct sandbox *s);

/* audit_port_open() - A port is about to be reachable from outside. 0, or -1 with @ret. */
int audit_port_open(struct sandbox *s, unsigned int port, struct refusal *ret);
void audit_port_closed(struct sandbox *s, unsigned int port, uint64_t requests, const char *why);

/* audit_begin() - @what: a language, "exec", "shell". @text: code or command; only its hash is
 * kept. */
int audit_begin(struct sandbox *s, const char *id, const char *what, const char *text, size_t len,
		uint64_t timeout_ms, struct refusal *ret);
/* audit_command() - audit_begin() for a program: all of its words, each with its NUL, stand for it.
 */
int audit_command(struct sandbox *s, const char *id, const char *what,
		  const struct command_line *line, uint64_t timeout_ms, struct refusal *ret);
/* audit_end(), audit_refused(), audit_dropped() - The same id is over: with a result, with none
 * because its sandbox was, or killed and forgotten by its owner. One of them follows each
 * audit_begin(). */
void audit_end(struct sandbox *s, const char *id, const char *what, const struct result *r,
	       const struct outcome *o);
void audit_refused(struct sandbox *s, const char *id, const char *what, const struct refusal *why);
void audit_dropped(struct sandbox *s, const char *id, const char *what);

/* What the ledger says of a file call. Outlives the sandbox. */
struct audit_file {
	struct ledger *ledger;
	const char *owner, *sandbox, *id, *op;
};
/* audit_file_begin() - @to: NULL when there is none. */
int audit_file_begin(const struct audit_file *a, const char *path, const char *to,
		     struct refusal *ret);
/* audit_file_end() - @outcome: done, abandoned or the code of an error. @sha256: of what came in,
 * or NULL. */
void audit_file_end(const struct audit_file *a, const char *outcome, uint64_t bytes,
		    const char *sha256);

#endif
