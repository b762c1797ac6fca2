/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.h - Executions of /v1: kept on record, answered at their end or as a stream that can be
 * resumed.
 */
#ifndef CAISSON_FRONT_RECORDED_H
#define CAISSON_FRONT_RECORDED_H

#include "front/http/stream_out.h"

struct execution;
struct http_exchange;
struct sandbox;

/*
 * recorded_execute() - Queue @e in @s, and answer @x: without a format when it is over, with its
 * ExecResult; else with its events on the way (started, stdout, stderr, display, result, error,
 * done or refused).
 *
 * A client that goes away before its answer interrupts the code. With a format, in a sandbox that
 * has a name, it does not: the events are kept, and it may come back for them.
 *
 * @e: just made; its sink and user are replaced. It is the sandbox's afterwards.
 */
void recorded_execute(struct http_exchange *x, struct sandbox *s, struct execution *e,
		      enum stream_format format);

#endif
