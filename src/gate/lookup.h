/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.h - What a name's addresses are, asked of the operator's resolver without waiting
 * (c-ares).
 *
 * Only names that a rule allows are ever asked about, and only when somebody connects to one.
 * Answers are kept for as long as they say, at most LOOKUP_KEEP_S, so that a client that opens ten
 * connections asks once.
 */
#ifndef CAISSON_GATE_LOOKUP_H
#define CAISSON_GATE_LOOKUP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "wire/gate.h"

struct err;
struct lookups;
struct lookup_call;

#define LOOKUP_ADDRESSES 8u
#define LOOKUP_KEEP_S 30u

/* Somebody who asks. The struct is his and zero but for done and arg. */
struct lookup {
	/* Once; perhaps before lookup_begin() returns. @code: 0, -ENOENT (no such name, or no
	 * address), or another -errno when nobody could tell. */
	void (*done)(struct lookup *l, int code);
	void *arg;
	struct in6_addr addresses[LOOKUP_ADDRESSES]; /* IPv4 as mapped, in the order of the answer
						      */
	size_t n;
	struct lookup_call *call; /* NULL: not under way */
};

/*
 * lookups_open() - Before the jail: reads resolv.conf and hosts.
 * @servers: "ADDRESS[:PORT],..." instead of those of resolv.conf, and of hosts; NULL: those
 * @local: for names of the operator's own, as programs of this machine find them: hosts in every
 * case, and the search domains of resolv.conf
 */
int lookups_open(struct loop *l, const char *servers, bool local, struct lookups **ret,
		 struct err *e);
void lookups_close(struct lookups *l);

void lookup_begin(struct lookups *all, struct lookup *l, const char *host);
void lookup_cancel(struct lookup *l); /* idempotent; done is not called any more */

#endif
