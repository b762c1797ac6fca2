/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.h - `caisson run --name` and `exec --name`: start an execution and pass on what it writes,
 * while it runs.
 *
 * Output is written to our stdout and stderr as it comes, byte for byte. Ctrl-C interrupts the
 * execution and goes on listening, a second one leaves. A connection that breaks is taken up again
 * where it was.
 */
#ifndef CAISSON_REMOTE_FOLLOW_H
#define CAISSON_REMOTE_FOLLOW_H

#include <jansson.h>

struct session;

/*
 * follow_run() - POST @body to @route ("/exec", "/execute") of the sandbox @name.
 * Return: the exit code: the program's, or 125 after a problem that was printed.
 */
int follow_run(struct session *s, const char *name, const char *route, json_t *body);

/* follow_exit_code() - Of a result object, said once if it needs a word. */
int follow_exit_code(const json_t *result);

#endif
