/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_store.h - The front's link to caisson-workspace-store (wire/workspace_store.h).
 *
 * Its own parent replaces a worker that is killed: requests under way fail and may be sent again,
 * and the front first sends the new worker the list of known workspaces. Inside its jail the front
 * cannot start a workspace store that has ended for good: from then on no workspace can be used,
 * and their content stays.
 */
#ifndef CAISSON_FRONT_WORKSPACES_WORKSPACE_STORE_H
#define CAISSON_FRONT_WORKSPACES_WORKSPACE_STORE_H

#include <stdint.h>

#include "front/spec/workspace_use.h" /* struct workspace_store_call */
#include "front/support/service_link.h"
#include "wire/workspace_store.h"

struct err;

extern const struct service workspace_store_service;

struct workspace_store {
	struct service_link link;
	/* Another worker is there: send it what is known, by a WORKSPACE_STORE_SWEEP of this
	 * life. 0 or -errno. */
	int (*again)(struct workspace_store *s, uint32_t life);
};

/* workspace_store_open() - Before the jail: make STATE/workspaces, start the program. 0 or -errno.
 */
int workspace_store_open(struct workspace_store *s, const char *state, struct err *e);
/* workspace_store_wait() - Before service_link_start(): send a request and wait for its reply.
 * The code of the reply, or -EPIPE. */
int workspace_store_wait(struct workspace_store *s, struct workspace_store_req *q, int fd,
			 struct workspace_store_reply *ret);

/*
 * workspace_store_ask() - c->fn is called once, later; @c NULL: nobody waits. @fd: borrowed; or -1.
 * 0, or -errno when the workspace store is gone or does not keep up.
 */
int workspace_store_ask(struct workspace_store *s, struct workspace_store_call *c,
			struct workspace_store_req *q, int fd);
/* workspace_store_tell() - Send a request whose reply nobody needs; waits for room in the socket.
 * 0 or -errno. */
int workspace_store_tell(struct workspace_store *s, struct workspace_store_req *q, int fd);

#endif
