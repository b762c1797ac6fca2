/* SPDX-License-Identifier: Apache-2.0 */
/* find_sandbox.h - From a request to the sandbox that it names, and to a cell for that. */
#ifndef CAISSON_FRONT_OWN_H
#define CAISSON_FRONT_OWN_H

#include <jansson.h>
#include <stdbool.h>

struct http_exchange;
struct process;
struct sandbox;
struct services;

/* own_sandbox() - For serve_hooks: the caller's sandbox of the first path parameter; NULL: answered
 * with 404. */
struct sandbox *own_sandbox(struct services *services, struct http_exchange *x);

/* reply_no_sandbox() - 404: the caller has no sandbox of this name. */
void reply_no_sandbox(struct http_exchange *x, const char *name);

/* own_process() - Its process of the second path parameter; NULL: answered with 404. */
struct process *own_process(struct sandbox *s, struct http_exchange *x);

/*
 * reply_missing() - 404: there is no such thing in @s. One that was taken over from a front that
 * died has lost what that one had in memory, and then the hint says so too.
 */
void reply_missing(struct http_exchange *x, const struct sandbox *s, const char *code,
		   const char *field, const char *hint, const char *message);

/*
 * wait_for_cell() - Answer the request when @s has a cell, or with the refusal of one.
 * @fresh: this request has made @s, which is ended if it gets no cell
 * @entered: called with the cell there, also if the client is gone; or NULL
 * @made: answers
 * @arg: for @made; a reference is kept
 */
void wait_for_cell(struct http_exchange *x, struct sandbox *s, bool fresh,
		   void (*entered)(struct sandbox *s),
		   void (*made)(struct http_exchange *x, struct sandbox *s, bool fresh,
				json_t *arg),
		   json_t *arg);

#endif
