/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden_link.h - The front's socket to its warden: sends requests, and handles replies when they
 * arrive.
 *
 * Each request is a struct of the caller with a function for the reply. A caller that goes away
 * before the reply calls warden_link_forget(): then the link cleans up the reply (it closes
 * descriptors, and destroys a cell that was made).
 */
#ifndef CAISSON_FRONT_WARDEN_LINK_H
#define CAISSON_FRONT_WARDEN_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "front/support/service_link.h"
#include "wire/warden.h"

struct err;
struct warden_call;

/*
 * @fds: descriptors that came with the reply; the function sets those that it keeps to -1, and the
 * rest is closed.
 */
typedef void (*warden_link_fn)(struct warden_call *c, const struct warden_reply *r, int *fds,
			       size_t n_fds);

struct warden_call {
	struct service_call call;
	warden_link_fn fn;
	void *arg;
};

struct warden_link {
	struct service_link link;
	/* The warden is gone: no cell can be made any more, and all cells are dead. */
	void (*on_gone)(struct warden_link *l);
	void *arg;
};

/*
 * warden_link_init() - @fd: the warden's socket, which the link owns from now on. @life: the number
 * of this front on the socket, from 1. Replies to requests of another front have other numbers, and
 * are cleaned up.
 */
int warden_link_init(struct warden_link *l, struct loop *loop, int fd, uint32_t life,
		     struct err *e);
void warden_link_free(struct warden_link *l);

/*
 * warden_link_ask() - Send a request; c->fn is called once, later. @c: NULL if the caller does not
 * need the reply. @fds: borrowed until this returns. Fails only without memory or without a warden.
 */
int warden_link_ask(struct warden_link *l, struct warden_call *c, struct warden_req *q,
		    const int *fds, size_t n_fds, struct err *e);

/* warden_link_ask_cell() - A request that has only a cell (and a zygote) in it. */
int warden_link_ask_cell(struct warden_link *l, struct warden_call *c, enum warden_op op,
			 uint32_t cell, uint32_t zygote, struct err *e);

/* warden_link_drop_cell() - Destroy a cell, without waiting for the answer. */
void warden_link_drop_cell(struct warden_link *l, uint32_t cell);

/*
 * warden_link_forget() - c->fn is not called any more, and the reply is cleaned up when it arrives.
 * Does nothing if no request is under way.
 */
void warden_link_forget(struct warden_link *l, struct warden_call *c);

#endif
