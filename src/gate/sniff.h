/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.h - The protocol of a connection and the host that it names, from its first bytes: TLS and
 * HTTP. Pure.
 *
 * Once there is a verdict, no further bytes change it.
 */
#ifndef CAISSON_GATE_SNIFF_H
#define CAISSON_GATE_SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gate.h"

#define SNIFF_MAX 16384u /* a head or a ClientHello that is larger is refused */

enum sniff_kind {
	SNIFF_MORE,  /* not known yet */
	SNIFF_OTHER, /* another protocol */
	SNIFF_TLS,
	SNIFF_HTTP,
	SNIFF_BAD, /* TLS or HTTP in a form that can be read in two ways: why */
};

struct sniff {
	enum sniff_kind kind;
	/* With SNIFF_MORE and SNIFF_BAD, the most likely one: SNIFF_TLS, SNIFF_HTTP, or
	 * SNIFF_OTHER (any protocol) */
	enum sniff_kind like;
	bool odd;                 /* not TLS, and its first word is no method */
	char host[GATE_HOST_MAX]; /* lower case; empty: the bytes name none */
	uint16_t port;            /* HTTP: of the host; 0: none */
	const char *why;          /* SNIFF_BAD */
};

/* sniff_bytes() - All bytes so far. */
void sniff_bytes(const uint8_t *p, size_t len, struct sniff *ret);
/* sniff_like() - SNIFF_TLS, SNIFF_HTTP, or SNIFF_OTHER. */
enum sniff_kind sniff_like(const struct sniff *h);

#endif
