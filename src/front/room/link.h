/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - The front's line to its warden: requests out, replies in when they come, nobody waits.
 *
 * Each request is a struct of the asker's with a function for the answer. An asker that goes away
 * first calls link_forget(): the answer is then tidied up here (descriptors closed, a cell that was made for nobody destroyed).
 */
#ifndef CAISSON_FRONT_LINK_H
#define CAISSON_FRONT_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "wire/warden.h"

struct err;
struct link_call;

/* @fds: descriptors that came with it; what the function keeps it sets to -1, the rest is closed. */
typedef void (*link_fn)(struct link_call *c, const struct warden_reply *r, int *fds, size_t n_fds);

struct link_call {
	uint64_t seq; /* 0: not under way */
	link_fn fn;
	void *arg;
	struct link_call *next;
};

struct link {
	struct loop *loop;
	struct watch watch;
	uint64_t seq;
	struct link_call *calls;          /* under way */
	struct link_out *out, **out_tail; /* not yet sent: the socket was full */
	size_t n_out;
	/* The warden is gone: nothing can be made any more, and everything that was made is dead. */
	void (*on_gone)(struct link *l);
	void *arg;
};

/*
 * link_init() - @fd: the warden's socket, ours from now on. @life: which front on this socket we are, from
 * 1: answers to what another one asked have other numbers, and are tidied away.
 */
int link_init(struct link *l, struct loop *loop, int fd, uint32_t life, struct err *e);
void link_free(struct link *l);

/*
 * link_ask() - Send a request; c->fn is called once, later. @c: NULL when nobody waits for the answer.
 * @fds: borrowed until this returns. Fails only without memory or without a warden.
 */
int link_ask(struct link *l, struct link_call *c, struct warden_req *q, const int *fds,
	     size_t n_fds, struct err *e);

/* link_ask_cell() - A request that has only a cell (and a zygote) in it. */
int link_ask_cell(struct link *l, struct link_call *c, enum warden_op op, uint32_t cell,
		  uint32_t zygote, struct err *e);

/* link_drop_cell() - Destroy a cell, and do not care for the answer. */
void link_drop_cell(struct link *l, uint32_t cell);

void link_forget(struct link *l, struct link_call *c);

#endif
