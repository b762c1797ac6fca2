/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_link.h - The front's end of the channel to caisson-gate (wire/gate.h).
 *
 * Nothing here blocks once the loop runs. The supervisor (gate/supervisor.c) replaces a gate that
 * dies, and on_again() is called: rules and sockets have to be sent to the new one; connections
 * through the old one are cut. If the supervisor is gone too the front ends, because none can be
 * started from inside the jail: the keeper starts the next front, and that one starts both.
 */
#ifndef CAISSON_FRONT_EGRESS_GATE_H
#define CAISSON_FRONT_EGRESS_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "front/support/service_link.h"
#include "wire/gate.h"

struct config;
struct egresses;
struct err;
struct secrets;

/* A request under way. The struct is the asker's. */
struct gate_call {
	struct service_call call;
	/* @fd: borrowed, or -1 */
	void (*fn)(struct gate_call *c, const struct gate_msg *reply, int fd);
	void *arg;
};

struct gate_link {
	struct service_link link;
	struct watch supervisor;
	uint32_t life; /* of the present gate */
	uint32_t ids;  /* given to sandboxes so far */
	void (*on_event)(struct gate_link *l, uint32_t id, const struct gate_event *ev);
	void (*on_again)(struct gate_link *l); /* it is a new one, without rules */
	/* The operator's secrets were read again. @e: NULL, or why the old ones stay. @fd: as of
	 * gate_secrets(), borrowed. */
	void (*on_secrets)(struct gate_link *l, int fd, const struct err *e);
	void (*on_gone)(struct gate_link *l);
	void *arg; /* for on_gone */
	/* Of the parts above: for on_event and on_again, and for on_secrets. */
	struct egresses *egresses;
	struct secrets *secrets;
};

/* gate_start() - Before the jail. gate_open(), later: wait until the gate is in its own jail, and
 * watch its socket. */
int gate_start(struct gate_link *l, const struct config *c, struct err *e);
/*
 * gate_secrets() - Between the two: wait for the operator's secrets, as far as a front may know
 * them.
 * @ret: a sealed vault (vault/vault.h), the caller's; -1: no secrets. Return: 0, or the error
 * of reading them.
 */
int gate_secrets(struct gate_link *l, int *ret, struct err *e);
/* gate_reload() - Read them again; on_secrets() follows. */
void gate_reload(struct gate_link *l);
int gate_open(struct gate_link *l, struct loop *loop, struct err *e);
void gate_free(struct gate_link *l);

/* gate_ask() - @c NULL: there is no answer. @fds are borrowed. 0 or -errno. */
int gate_ask(struct gate_link *l, struct gate_call *c, struct gate_msg *m, const int *fds,
	     size_t n_fds, struct err *e);
void gate_forget(struct gate_link *l, struct gate_call *c); /* idempotent */

#endif
