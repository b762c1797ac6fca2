/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_store.h - The front's line to caisson-workspace-store (wire/workspace_store.h):
 * requests out, replies in when they come.
 *
 * One that is killed is replaced by its own parent: what was asked fails, and may be asked again;
 * and the new one is told what is known before anything else. One that ends for good can not be
 * started again from inside the jail: from then on no workspace can be used, and what is in them
 * stays where it is.
 */
#ifndef CAISSON_FRONT_WORKSPACES_WORKSPACE_STORE_H
#define CAISSON_FRONT_WORKSPACES_WORKSPACE_STORE_H

#include <stdint.h>

#include "front/support/service_link.h"
#include "wire/workspace_store.h"

struct err;
struct workspace_store_call;

struct workspace_store_call {
	struct service_call call;
	/* @fd: what came with it, or -1; what is kept is set to -1, the rest is closed. */
	void (*fn)(struct workspace_store_call *c, const struct workspace_store_reply *r, int *fd);
	void *arg;
};

struct workspace_store {
	struct service_link link;
	/* Another is there: tell it what is known, by a WORKSPACE_STORE_SWEEP of this life. 0 or
	 * -errno. */
	int (*again)(struct workspace_store *s, uint32_t life);
};

/* workspace_store_open() - Before the jail: make STATE/workspaces, start the program. 0 or -errno.
 */
int workspace_store_open(struct workspace_store *s, const char *state, struct err *e);
/* workspace_store_wait() - Before workspace_store_start(): ask, and wait for the answer. Its code,
 * or -EPIPE. */
int workspace_store_wait(struct workspace_store *s, struct workspace_store_req *q, int fd,
			 struct workspace_store_reply *ret);
/* workspace_store_start() - Listen to it. */
int workspace_store_start(struct workspace_store *s, struct loop *l, struct err *e);

/*
 * workspace_store_ask() - c->fn is called once, later; @c NULL: nobody waits. @fd: borrowed; or -1.
 * 0, or -errno when the workspace store is gone or does not keep up.
 */
int workspace_store_ask(struct workspace_store *s, struct workspace_store_call *c,
			struct workspace_store_req *q, int fd);
/* workspace_store_tell() - The same, and nobody waits for the answer; it is waited for room in the
 * line. 0 or -errno. */
int workspace_store_tell(struct workspace_store *s, struct workspace_store_req *q, int fd);
void workspace_store_forget(struct workspace_store *s,
			    struct workspace_store_call *c); /* idempotent
							      */

#endif
