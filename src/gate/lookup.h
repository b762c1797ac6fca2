/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.h - Look up the addresses of a name at the operator's resolver, without blocking (c-ares).
 *
 * The gate looks up only names that a rule allows, and only when a cell connects to one. Answers
 * are kept for their TTL, at most LOOKUP_KEEP_S, so that ten connections of a client cause one
 * query.
 */
#ifndef CAISSON_GATE_LOOKUP_H
#define CAISSON_GATE_LOOKUP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "wire/gate.h"

struct lookups;
struct lookup_call;

#define LOOKUP_ADDRESSES 8u
#define LOOKUP_KEEP_S 30u

/* One lookup. The struct is the caller's, and zero except for done and arg. */
struct lookup {
	/* Called once; perhaps before lookup_begin() returns. @code: 0, -ENOENT (no such name, or
	 * no address), or another -errno when the lookup failed. */
	void (*done)(struct lookup *l, int code);
	void *arg;
	struct in6_addr addresses[LOOKUP_ADDRESSES]; /* IPv4 as mapped; in order */
	size_t n;
	struct lookup_call *call; /* NULL: not under way */
};

/*
 * lookups_open() - Before the jail: reads resolv.conf and the hosts file.
 * @servers: "ADDRESS[:PORT],..." in place of resolv.conf and the hosts file; NULL: these two
 * @local: for names of the operator, as programs of this machine find them: with the hosts file in
 * every case, and with the search domains of resolv.conf
 */
int lookups_open(struct loop *l, const char *servers, bool local, struct lookups **ret,
		 struct err *e);
void lookups_close(struct lookups *l);

void lookup_begin(struct lookups *all, struct lookup *l, const char *host);
void lookup_cancel(struct lookup *l); /* idempotent; done is not called then */

/* The machine's hosts file, read once; its entries come before DNS. */
struct host_row {
	char *host;
	struct in6_addr address; /* IPv4 as mapped */
};

struct hosts_file {
	struct host_row *rows;
	size_t n, cap;
};

void hosts_file_parse(struct hosts_file *h, char *text); /* changes @text */
size_t hosts_file_find(const struct hosts_file *h, const char *host, struct in6_addr *ret,
		       size_t max);
void hosts_file_free(struct hosts_file *h);

#endif
