/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf.h - The front's line to caisson-shelf (wire/shelf.h): requests out, replies in when they come.
 *
 * One that is killed is replaced by its own parent: what was asked fails, and may be asked again; and the new one is
 * told what is known before anything else. One that ends for good can not be started again from inside the jail: from
 * then on no workspace can be used, and what is in them stays where it is.
 */
#ifndef CAISSON_FRONT_WORKSPACES_SHELF_H
#define CAISSON_FRONT_WORKSPACES_SHELF_H

#include <stdint.h>

#include "net/loop.h"
#include "wire/shelf.h"

struct err;
struct shelf_call;

struct shelf_call {
	uint64_t seq; /* 0: not under way */
	/* @fd: what came with it, or -1; what is kept is set to -1, the rest is closed. */
	void (*fn)(struct shelf_call *c, const struct shelf_reply *r, int *fd);
	void *arg;
	struct shelf_call *next;
};

struct shelf {
	struct watch watch;
	uint64_t seq;
	struct shelf_call *calls;
	/* Another is there: tell it what is known, by a SHELF_SWEEP of this life. 0 or -errno. */
	int (*again)(struct shelf *s, uint32_t life);
};

/* shelf_open() - Before the jail: make STATE/workspaces, start the program. 0 or -errno. */
int shelf_open(struct shelf *s, const char *state, struct err *e);
/* shelf_wait() - Before shelf_start(): ask, and wait for the answer. Its code, or -EPIPE. */
int shelf_wait(struct shelf *s, struct shelf_req *q, int fd, struct shelf_reply *ret);
/* shelf_start() - Listen to it. */
int shelf_start(struct shelf *s, struct loop *l, struct err *e);

/*
 * shelf_ask() - c->fn is called once, later; @c NULL: nobody waits. @fd: borrowed; or -1.
 * 0, or -errno when the shelf is gone or does not keep up.
 */
int shelf_ask(struct shelf *s, struct shelf_call *c, struct shelf_req *q, int fd);
/* shelf_tell() - The same, and nobody waits for the answer; it is waited for room in the line. 0 or -errno. */
int shelf_tell(struct shelf *s, struct shelf_req *q, int fd);
void shelf_forget(struct shelf *s, struct shelf_call *c); /* idempotent */

#endif
