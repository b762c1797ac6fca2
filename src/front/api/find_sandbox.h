/* SPDX-License-Identifier: Apache-2.0 */
/* find_sandbox.h - From a request to the sandbox that it names, and the answer when it can not be
 * had. */
#ifndef CAISSON_FRONT_OWN_H
#define CAISSON_FRONT_OWN_H

struct front;
struct http_exchange;
struct process;
struct refusal;
struct route_params;
struct sandbox;

/* own_sandbox() - The caller's sandbox of the first path parameter; NULL: answered with 404. */
struct sandbox *own_sandbox(struct front *f, struct http_exchange *x, const struct route_params *p);

/* own_process() - Its process of the second path parameter; NULL: answered with 404. */
struct process *own_process(struct front *f, struct http_exchange *x, const struct route_params *p);

/* reply_refusal() - A refusal as an answer. */
void reply_refusal(struct http_exchange *x, const struct refusal *r);

/*
 * reply_missing() - 404: there is no such thing in @s. One that was taken over from a front that
 * died has lost what that one had in memory, and then the hint says so too.
 */
void reply_missing(struct http_exchange *x, const struct sandbox *s, const char *code,
		   const char *field, const char *hint, const char *message);

#endif
