/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.h - Programs in a sandbox that write to our stdout and stderr, byte for byte: executions
 * that are followed, and processes that are attached to our stdin too.
 */
#ifndef CAISSON_REMOTE_FOLLOW_H
#define CAISSON_REMOTE_FOLLOW_H

#include <jansson.h>
#include <stdbool.h>

struct session;

/*
 * follow_run() - POST @body to @route ("/exec", "/execute") of the sandbox @name, and pass on the
 * output while the execution runs. Ctrl-C interrupts it and goes on reading, a second one leaves.
 * After a broken connection the stream goes on from the last event.
 * Return: the exit code: the program's, or 125 after a problem that was printed.
 */
int follow_run(struct session *s, const char *name, const char *route, json_t *body);

/* follow_exit_code() - Of a result object. Prints its hint if a limit ended the program. */
int follow_exit_code(const json_t *result);

/* follow_write_failed() - The exit code when our output could not be written; prints why. */
int follow_write_failed(struct session *s, int number);

/*
 * interactive_run() - Start a process and stay attached until its end (interactive.c).
 * @body: cmd, args and other members for POST .../processes
 * @terminal: the process runs on a terminal of its own, and ours is in raw mode meanwhile
 * Return: as follow_run(); 126 or 127 when the program could not be started.
 */
int interactive_run(struct session *s, const char *name, json_t *body, bool terminal);

#endif
