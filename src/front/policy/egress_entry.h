/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_entry.h - An entry of `egress` as people write it, and its canonical form. Pure.
 *
 *   api.example.com       that name, ports 80 and 443
 *   *.example.org         every name below it, at any depth, not itself
 *   git.example.net:22    that port alone
 *   GET api.example.com/v1*        only this method, and paths that begin with /v1
 *   GET,POST api.example.com       only these methods
 *   api.example.com/v1/models      only this path
 *
 * Case, a trailing dot and non-ASCII names (IDNA 2008) are brought to one form. Ambiguous texts are
 * refused: addresses, URLs, control bytes, spaces, a wildcard anywhere but in front of at least two
 * labels. So are localhost and the names below it, which never lead out of a sandbox. The pattern
 * of a path is compared with the decoded path without its query; '*' at its end is anything,
 * elsewhere a segment or a part of one.
 */
#ifndef CAISSON_FRONT_EGRESS_ENTRY_H
#define CAISSON_FRONT_EGRESS_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/gate.h"

struct err;

#define EGRESS_NAME_MAX (GATE_HOST_MAX + 8u) /* "*." and ":65535" */
#define EGRESS_TEXT_MAX (EGRESS_NAME_MAX + GATE_METHODS_MAX + GATE_PATH_MAX)

/* The requests over HTTP that an entry allows. */
struct http_entry {
	char methods[GATE_METHODS_MAX]; /* in upper case; empty: any */
	char path[GATE_PATH_MAX];       /* empty: any */
};

struct egress_entry {
	char text[EGRESS_TEXT_MAX]; /* canonical */
	char host[GATE_HOST_MAX];
	bool wild;
	uint16_t port; /* 0: 80 and 443 */
	struct http_entry http;
};

/* egress_entry_parse() - 0, or -EINVAL with the error and the remedy. */
int egress_entry_parse(const char *text, size_t len, struct egress_entry *ret, struct err *e);

/* egress_entry_rules() - One or two. */
size_t egress_entry_rules(const struct egress_entry *n, struct gate_rule ret[2]);

#endif
