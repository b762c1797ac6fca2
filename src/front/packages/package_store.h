/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_store.h - The front's line to caisson-package-store (wire/package_store.h): requests out,
 * replies in when they come.
 *
 * A package store that ends can not be started again from inside the jail: from then on nothing can
 * be installed, and what is installed stays where it is.
 */
#ifndef CAISSON_FRONT_PACKAGES_PACKAGE_STORE_H
#define CAISSON_FRONT_PACKAGES_PACKAGE_STORE_H

#include "front/support/service_link.h"
#include "wire/package_store.h"

struct err;
struct package_store_call;

struct package_store_call {
	struct service_call call;
	void (*fn)(struct package_store_call *c, const struct package_store_reply *r);
	void *arg;
};

struct package_store {
	struct service_link link;
};

/*
 * package_store_open() - Before the jail: make STATE/packages, start the program.
 * Return: the directory's descriptor, to be mounted in cells; or -errno.
 */
int package_store_open(struct package_store *p, const char *state, struct err *e);
/* package_store_wait() - Before package_store_start(): ask, and wait for the answer. Its code, or
 * -EPIPE. */
int package_store_wait(struct package_store *p, struct package_store_req *q,
		       struct package_store_reply *ret);
/* package_store_start() - Listen to it. */
int package_store_start(struct package_store *p, struct loop *l, struct err *e);

/*
 * package_store_ask() - c->fn is called once, later; @c NULL: nobody waits. @fd: for
 * PACKAGE_STORE_STORE, borrowed; or -1. 0, or -errno when the package store is gone or does not
 * keep up.
 */
int package_store_ask(struct package_store *p, struct package_store_call *c,
		      struct package_store_req *q, int fd);
void package_store_forget(struct package_store *p, struct package_store_call *c); /* idempotent */

#endif
