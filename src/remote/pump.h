/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.h - `caisson exec --name -i`: a process of the sandbox, in front of which we stand while it
 * runs.
 *
 * Bytes go both ways as they are. Signals that we get go to the process: Ctrl-C as SIGINT, then
 * SIGKILL.
 */
#ifndef CAISSON_REMOTE_PUMP_H
#define CAISSON_REMOTE_PUMP_H

#include <jansson.h>

struct session;

/* pump_run() - @body: cmd, args and what else POST .../processes takes. Return: as follow_run(). */
int pump_run(struct session *s, const char *name, json_t *body);

/* pump_forget() - Nothing of the process at @path stays with the daemon; what runs is killed. */
void pump_forget(struct session *s, const char *path);

/* pump_not_started() - Print s->problem. 126 or 127 when the program could not be started, else
 * 125. */
int pump_not_started(struct session *s);

#endif
