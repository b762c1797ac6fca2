/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello.h - What the first bytes of a connection say about whom they are for: TLS and HTTP. Pure.
 *
 * The bytes are only looked at; whatever they are they go on as they came, or not at all. Once it
 * is decided what they are, no further bytes change that.
 */
#ifndef CAISSON_GATE_HELLO_H
#define CAISSON_GATE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gate.h"

#define HELLO_PEEK_MAX 16384u /* a head or a ClientHello that is larger is refused */

enum hello_kind {
	HELLO_MORE,  /* can not be told yet */
	HELLO_OTHER, /* neither: any other protocol */
	HELLO_TLS,
	HELLO_HTTP,
	HELLO_BAD, /* one of the two, in a form that could be read in two ways; why says how */
};

struct hello {
	enum hello_kind kind;
	/* HELLO_MORE, HELLO_BAD: which of the two it looks like; HELLO_OTHER: it can be any
	 * protocol yet */
	enum hello_kind like;
	bool odd;                 /* neither TLS, nor is its first word a method */
	char host[GATE_HOST_MAX]; /* lower case; empty: none is named */
	uint16_t port;            /* HTTP: named with the host; 0: not */
	const char *why;          /* HELLO_BAD */
};

void hello_look(const uint8_t *p, size_t len, struct hello *ret);

/* The two halves of it. */
void hello_tls(const uint8_t *p, size_t len, struct hello *ret);
void hello_http(const uint8_t *p, size_t len, struct hello *ret);

#endif
