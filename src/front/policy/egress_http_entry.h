/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_http_entry.h - The part of an entry of `egress` that is about requests over HTTP. Pure.
 *
 *   GET api.example.com/v1*            this method, and paths that begin with /v1
 *   GET,POST api.example.com           these methods
 *   api.example.com/v1/models          this path
 *
 * A pattern is compared with the decoded path, without its query. '*' at its end is anything,
 * elsewhere a segment or a part of one.
 */
#ifndef CAISSON_FRONT_EGRESS_HTTP_ENTRY_H
#define CAISSON_FRONT_EGRESS_HTTP_ENTRY_H

#include <stddef.h>

#include "wire/gate.h"

struct err;

struct http_entry {
	char methods[GATE_METHODS_MAX]; /* in upper case; empty: any */
	char path[GATE_PATH_MAX];       /* empty: any */
};

/*
 * http_entry_split() - Take it off. @text, @len: become what is left, the host and its port.
 * Return: 0, or -EINVAL with what is wrong and how to mend it.
 */
int http_entry_split(const char **text, size_t *len, struct http_entry *ret, struct err *e);

#endif
