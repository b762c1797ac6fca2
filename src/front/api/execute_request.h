/* SPDX-License-Identifier: Apache-2.0 */
/* execute_request.h - From a checked JSON request to an execution. For POST /execute and for the
 * WebSocket. */
#ifndef CAISSON_FRONT_ASK_H
#define CAISSON_FRONT_ASK_H

#include <jansson.h>
#include <stdint.h>

struct buf;
struct execution;
struct refusal;
struct sandboxes;
struct sink;

/*
 * ask_execution() - What @owner asks for. @body: checked against the fields of POST /execute. NULL
 * with @ret filled when it can not be run.
 */
struct execution *ask_execution(struct sandboxes *sandboxes, const char *owner, const json_t *body,
				const struct sink *sink, void *user, struct refusal *ret);

/* ask_session() - The name in it, or NULL. */
const char *ask_session(const json_t *body);

#endif
