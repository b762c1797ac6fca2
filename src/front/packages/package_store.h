/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_store.h - The front's link to caisson-package-store (wire/package_store.h).
 *
 * Inside its jail the front cannot start a package store that has ended: from then on nothing can
 * be installed, and installed packages stay usable.
 */
#ifndef CAISSON_FRONT_PACKAGES_PACKAGE_STORE_H
#define CAISSON_FRONT_PACKAGES_PACKAGE_STORE_H

#include "front/support/service_link.h"
#include "wire/package_store.h"

struct err;

struct package_store_call {
	struct service_call call;
	void (*fn)(struct package_store_call *c, const struct package_store_reply *r);
	void *arg;
};

/*
 * package_store_open() - Before the jail: make STATE/packages, start the program.
 * Return: the directory's descriptor, to be mounted in cells; or -errno.
 */
int package_store_open(struct service_link *l, const char *state, struct err *e);
/* package_store_wait() - Before service_link_start(): send a request and wait for its reply. The
 * code of the reply, or -EPIPE. */
int package_store_wait(struct service_link *l, struct package_store_req *q,
		       struct package_store_reply *ret);

/*
 * package_store_ask() - c->fn is called once, later; @c NULL: nobody waits. @fd: for
 * PACKAGE_STORE_STORE, borrowed; or -1. 0, or -errno when the package store is gone or does not
 * keep up.
 */
int package_store_ask(struct service_link *l, struct package_store_call *c,
		      struct package_store_req *q, int fd);

#endif
