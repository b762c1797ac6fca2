/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.h - The one road of an execution over HTTP: POST /execute, its WebSocket, and /v1.
 *
 * A client that waits for one answer and goes away cancels the execution, unless an Idempotency-Key
 * lets it ask again. A client that reads events and goes away does not: in a named sandbox the
 * execution goes on, and its events wait for the client's return. In a sandbox without a name
 * nobody can return, so the execution ends with its last reader.
 */
#ifndef CAISSON_FRONT_API_EXECUTE_H
#define CAISSON_FRONT_API_EXECUTE_H

#include <jansson.h>
#include <stdbool.h>

#include "front/http/stream_out.h"

struct execution;
struct http_exchange;
struct refusal;
struct sandbox;
struct sandboxes;
struct sink;

/*
 * ask_execution() - What @owner asks for. @body: checked against the fields of POST /execute. NULL
 * with @ret filled when it cannot be run.
 */
struct execution *ask_execution(struct sandboxes *sandboxes, const char *owner, const json_t *body,
				const struct sink *sink, void *user, struct refusal *ret);

/*
 * ask_format() - The form of the answer to @body, or to the Accept header. One answer takes an
 * Idempotency-Key; a stream takes none, because clients resume it and do not repeat it. False: @x
 * was answered, from the store or with an error.
 */
bool ask_format(struct http_exchange *x, const json_t *body, enum stream_format *ret);

/* ask_session() - The name in it, or NULL. */
const char *ask_session(const json_t *body);

/* execution_record_events() - Before @e is queued in @s: keep its events. False: no memory. */
bool execution_record_events(struct execution *e, struct sandbox *s);

#endif
