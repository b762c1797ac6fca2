/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pantry.h - The front's line to caisson-pantry (wire/pantry.h): requests out, replies in when they come.
 *
 * A pantry that ends can not be started again from inside the jail: from then on nothing can be installed,
 * and what is installed stays where it is.
 */
#ifndef CAISSON_FRONT_PACKAGES_PANTRY_H
#define CAISSON_FRONT_PACKAGES_PANTRY_H

#include <stdint.h>

#include "net/loop.h"
#include "wire/pantry.h"

struct err;
struct pantry_call;

struct pantry_call {
	uint64_t seq; /* 0: not under way */
	void (*fn)(struct pantry_call *c, const struct pantry_reply *r);
	void *arg;
	struct pantry_call *next;
};

struct pantry {
	struct watch watch;
	uint64_t seq;
	struct pantry_call *calls;
};

/*
 * pantry_open() - Before the jail: make STATE/packages, start the program.
 * Return: the directory's descriptor, to be mounted in cells; or -errno.
 */
int pantry_open(struct pantry *p, const char *state, struct err *e);
/* pantry_wait() - Before pantry_start(): ask, and wait for the answer. Its code, or -EPIPE. */
int pantry_wait(struct pantry *p, struct pantry_req *q, struct pantry_reply *ret);
/* pantry_start() - Listen to it. */
int pantry_start(struct pantry *p, struct loop *l, struct err *e);

/*
 * pantry_ask() - c->fn is called once, later; @c NULL: nobody waits. @fd: for PANTRY_STORE, borrowed; or -1.
 * 0, or -errno when the pantry is gone or does not keep up.
 */
int pantry_ask(struct pantry *p, struct pantry_call *c, struct pantry_req *q, int fd);
void pantry_forget(struct pantry *p, struct pantry_call *c); /* idempotent */

#endif
