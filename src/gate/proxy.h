/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy.h - The host's proxy for outgoing connections (HTTPS_PROXY, NO_PROXY), used with CONNECT.
 *
 * The proxy resolves the names of such connections, so the gate cannot judge their addresses. The
 * gate looks up the name of the proxy for each connection (lookup.h): a proxy that is absent now,
 * or moves, makes these connections fail, and not the daemon's start.
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
	bool is_address; /* host is the text of this address: */
	struct in6_addr address;
	uint16_t port;
	char authorization[512]; /* "Basic ..."; empty: none */
	char no[PROXY_NO_MAX];   /* the text of NO_PROXY */
};

/* proxy_parse() - "http://[user:password@]host:port". Pure. */
int proxy_parse(const char *url, const char *no, struct proxy *ret, struct err *e);

/* proxy_wanted() - Whether @host goes through it. */
bool proxy_wanted(const struct proxy *p, const char *host);

/* proxy_request() - Write the request. Return: its length, 0 when it does not fit. */
size_t proxy_request(const struct proxy *p, const char *host, uint16_t port, char *out,
		     size_t size);

/*
 * proxy_answer() - Read its answer. Return: the length of the head of a 2xx, 0 when the head is
 * incomplete, -ECONNREFUSED for another status, -EPROTO.
 */
int proxy_answer(const char *p, size_t len);

#endif
