/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.h - Standard input and output as a wire of the Model Context Protocol, by way of a daemon.
 *
 * A line is a message, and nothing else is ever written to standard output. Neither side is made to
 * wait for the other: what a host does not read is kept, up to a bound, while its own lines still
 * go through.
 */
#ifndef CAISSON_REMOTE_RELAY_H
#define CAISSON_REMOTE_RELAY_H

struct problem;
struct relay;
struct websocket;

#define RELAY_PATH "/mcp/ws"
#define RELAY_LINE_MAX (16u << 20)

struct api;

/* relay_open() - Connect. NULL with @p. @signals: a signalfd, borrowed: one that comes ends it. */
struct relay *relay_open(const struct api *a, int signals, struct problem *p);
/*
 * relay_run() - Until the host says no more and all of its requests are answered.
 * Return: what to exit with; or -1 with @p.
 */
int relay_run(struct relay *r, struct problem *p);
void relay_close(struct relay *r); /* NULL is fine */

#endif
