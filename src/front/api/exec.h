/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h - A command for which a client waits: one answer at the end, or events on the way.
 *
 * A client that goes away means the same as for an execution (execute.h). While nobody
 * reads the events of a command in a named sandbox, the command goes on until it has written 256
 * KiB, and then waits for a reader or for the end of its time.
 */
#ifndef CAISSON_FRONT_EXEC_H
#define CAISSON_FRONT_EXEC_H

#include <jansson.h>
#include <stdbool.h>

#include "front/http/stream_out.h"

struct http_exchange;
struct sandbox;

/*
 * exec_begin() - Run what @body (checked, of an exec or a shell request) says in @s and answer @x,
 * which is not the caller's any more.
 */
void exec_begin(struct http_exchange *x, struct sandbox *s, const json_t *body,
		enum stream_format format);

/* exec_interrupt() - Interrupt the command of this execution, and kill it after a grace. False: it
 * runs no more. */
bool exec_interrupt(const char *execution_id);

/* exec_attached() - Somebody reads the events of this execution again. */
void exec_attached(const char *execution_id);

#endif
