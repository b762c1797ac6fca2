/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h - A command for which a client waits: one answer at the end, or events on the way.
 *
 * A client that goes away cancels its command, unless it said that it may ask again
 * (Idempotency-Key). One that reads events has a minute to come back for the rest; meanwhile the
 * command goes on until it has said more than is kept for it, and then waits.
 */
#ifndef CAISSON_FRONT_EXEC_H
#define CAISSON_FRONT_EXEC_H

#include <jansson.h>
#include <stdbool.h>

struct http_exchange;
struct sandbox;

/*
 * exec_begin() - Run what @body (checked, of an exec or a shell request) says in @s and answer @x,
 * which is not the caller's any more.
 */
void exec_begin(struct http_exchange *x, struct sandbox *s, const json_t *body);

/* exec_interrupt() - Interrupt the command of this execution, and kill it after a grace. False: it
 * runs no more. */
bool exec_interrupt(const char *execution_id);

/* exec_attached() - Somebody reads the events of this execution again. */
void exec_attached(const char *execution_id);

#endif
