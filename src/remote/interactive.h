/* SPDX-License-Identifier: Apache-2.0 */
/* interactive.h - A process of a sandbox that is attached to our stdin, stdout and stderr. */
#ifndef CAISSON_REMOTE_INTERACTIVE_H
#define CAISSON_REMOTE_INTERACTIVE_H

#include <jansson.h>
#include <stdbool.h>

struct session;

/*
 * interactive_run() - Start a process and stay attached until its end.
 * @body: cmd, args and other members for POST .../processes
 * @terminal: the process runs on a terminal of its own, and ours is in raw mode meanwhile
 * Return: as follow_run(); 126 or 127 when the program could not be started.
 */
int interactive_run(struct session *s, const char *name, json_t *body, bool terminal);

#endif
