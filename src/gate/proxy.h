/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy.h - The host's own proxy for the way out (HTTPS_PROXY, NO_PROXY), asked with CONNECT.
 *
 * A name that goes through it is resolved by the proxy: what it leads to can not be judged here.
 * The proxy's own name is looked up for each connection, as other names are (lookup.h): a proxy
 * that is not there now, or moves, is the matter of those connections, and not of the daemon's
 * start.
 */
#ifndef CAISSON_GATE_PROXY_H
#define CAISSON_GATE_PROXY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gate.h"

struct err;

#define PROXY_NO_MAX 1024u

struct proxy {
	bool on;
	char host[GATE_HOST_MAX];
	bool is_address; /* host is one, and this: */
	struct in6_addr address;
	uint16_t port;
	char authorization[512]; /* "Basic ..."; empty: none */
	char no[PROXY_NO_MAX];   /* NO_PROXY as it is */
};

/* proxy_parse() - "http://[user:password@]host:port". Pure. */
int proxy_parse(const char *url, const char *no, struct proxy *ret, struct err *e);

/* proxy_wanted() - Whether @host goes through it. */
bool proxy_wanted(const struct proxy *p, const char *host);

/* proxy_request() - What to send; its length, 0 when it does not fit. */
size_t proxy_request(const struct proxy *p, const char *host, uint16_t port, char *out,
		     size_t size);

/*
 * proxy_answer() - What came back. Bytes of its head when it says yes, 0 when it is not whole,
 * -ECONNREFUSED when it says no, -EPROTO.
 */
int proxy_answer(const char *p, size_t len);

#endif
