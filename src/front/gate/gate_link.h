/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_link.h - The front's end of the channel to caisson-gate (wire/gate.h).
 *
 * Nothing here waits once the loop runs. A gate that dies is replaced by its supervisor
 * (gate/supervisor.c), and on_again() is called: whatever was handed to the old one has to be
 * handed to the new one; connections through it are cut. A supervisor that is gone too takes the
 * front with it, because from inside the jail none can be started: the keeper starts the next
 * front, and that one starts them.
 */
#ifndef CAISSON_FRONT_EGRESS_GATE_H
#define CAISSON_FRONT_EGRESS_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "front/support/service_link.h"
#include "wire/gate.h"

struct config;
struct err;
struct gate_link;

/* A request under way. The struct is the asker's. */
struct gate_call {
	struct service_call call;
	void (*fn)(struct gate_call *c, const struct gate_msg *reply, int fd); /* @fd: borrowed, or
										  -1 */
	void *arg;
};

struct gate_link {
	struct service_link link;
	struct watch supervisor;
	uint32_t life; /* of the gate that listens */
	uint32_t ids;  /* given to sandboxes so far */
	void (*on_event)(struct gate_link *l, uint32_t id, const struct gate_event *ev);
	void (*on_again)(struct gate_link *l); /* it is another one, and knows nothing */
	/* The operator's secrets, read again. @e: NULL, or why they are what they were. @fd: as of
	 * gate_secrets(), borrowed. */
	void (*on_secrets)(struct gate_link *l, int fd, const struct err *e);
	void (*on_gone)(struct gate_link *l);
	void *arg;
};

/* gate_start() - Before the jail; gate_open(), later: wait until it is in its own, and listen to
 * it. */
int gate_start(struct gate_link *l, const struct config *c, struct err *e);
/*
 * gate_secrets() - Between the two: wait for the operator's secrets, as far as a front may know
 * them.
 * @ret: a sealed vault (vault/vault.h), the caller's; -1: there are none. Return: 0, or why they
 * could not be read.
 */
int gate_secrets(struct gate_link *l, int *ret, struct err *e);
/* gate_reload() - Have them read again; on_secrets() follows. */
void gate_reload(struct gate_link *l);
int gate_open(struct gate_link *l, struct loop *loop, struct err *e);
void gate_free(struct gate_link *l);

/* gate_ask() - @c NULL: there is no answer. @fds are borrowed. 0 or -errno. */
int gate_ask(struct gate_link *l, struct gate_call *c, struct gate_msg *m, const int *fds,
	     size_t n_fds, struct err *e);
void gate_forget(struct gate_link *l, struct gate_call *c); /* idempotent */

#endif
