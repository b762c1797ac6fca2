/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.h - Standard input and output as a wire of the Model Context Protocol, by way of a daemon.
 *
 * A line is a message, and nothing else is ever written to standard output. Neither side waits for
 * the other: messages that the host does not read are kept, up to a bound, while its own lines are
 * still passed on.
 */
#ifndef CAISSON_REMOTE_RELAY_H
#define CAISSON_REMOTE_RELAY_H

struct api;
struct problem;
struct relay;

#define RELAY_PATH "/mcp/ws"
#define RELAY_LINE_MAX (16u << 20)

/* relay_open() - Connect. NULL with @p. @signals: a signalfd, borrowed; a signal ends the relay. */
struct relay *relay_open(const struct api *a, int signals, struct problem *p);
/*
 * relay_run() - Until the host has closed its end and all of its requests are answered.
 * Return: the exit code; or -1 with @p.
 */
int relay_run(struct relay *r, struct problem *p);
void relay_close(struct relay *r); /* NULL is fine */

#endif
