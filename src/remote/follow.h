/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.h - `caisson run --name` and `exec --name`: start an execution and pass on its output
 * while it runs.
 *
 * Output is written to our stdout and stderr as it comes, byte for byte. Ctrl-C interrupts the
 * execution and goes on reading, a second one leaves. After a broken connection the stream goes on
 * from the last event.
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

/* follow_exit_code() - Of a result object. Prints its hint if a limit ended the program. */
int follow_exit_code(const json_t *result);

/* follow_write_failed() - The exit code when our output could not be written; prints why. */
int follow_write_failed(struct session *s, int number);

#endif
