/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h - What is written down of sandboxes and of what runs in them, before it happens.
 *
 * Two places: the ledger, for whoever asks later who ran what, and the store, so that a name outlives the
 * daemon. What can not be written down does not happen: the functions that return an int are called before,
 * and on failure the caller refuses with @ret. The others follow what has happened, and can only log.
 */
#ifndef CAISSON_FRONT_AUDIT_H
#define CAISSON_FRONT_AUDIT_H

#include <stddef.h>
#include <stdint.h>

struct cell_limits;
struct err;
struct execution;
struct front;
struct refusal;
struct result;
struct outcome;
struct sandbox;

/* audit_open() - Before the first request: note the start, and take over the records of former sandboxes. */
int audit_open(struct front *f, struct err *e);
void audit_close(struct front *f);

/* audit_created() - A sandbox with a name is about to be. 0, or -1 with @ret. */
int audit_created(struct sandbox *s, struct refusal *ret);
/* audit_changed() - Its state is another one, or its end. */
void audit_changed(struct sandbox *s);
void audit_removed(struct sandbox *s, const char *why);

/* audit_begin() - @what: a language, "exec", "shell". @text: code or command; only its hash is kept. */
int audit_begin(struct sandbox *s, const char *id, const char *what, const char *text, size_t len,
		uint64_t timeout_ms, struct refusal *ret);
/* audit_end() - The same id is over. */
void audit_end(struct sandbox *s, const char *id, const char *what, const struct result *r,
	       const struct outcome *o);

#endif
