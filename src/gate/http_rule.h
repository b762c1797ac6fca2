/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_rule.h - Rules with methods or a path, which allow only some requests to a host. Pure.
 *
 * A rule with neither allows all requests, whatever other rules there are for that host and port.
 */
#ifndef CAISSON_GATE_HTTP_RULE_H
#define CAISSON_GATE_HTTP_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gate.h"

struct buf;

/* http_rule_good() - Whether the texts of a rule end and are well-formed. */
bool http_rule_good(const struct gate_rule *r);

/* rule_covers() - Whether a rule is about this host; @port 0: on any port. */
bool rule_covers(const struct gate_rule *h, const char *host, uint16_t port);

/* http_ruled() - Whether requests to this host have to be judged one by one: some rule is about it,
 * and none of these allows everything. */
bool http_ruled(const struct gate_rule *rules, size_t n, const char *host, uint16_t port);

/*
 * http_judge() - 0 when a request is allowed; otherwise a status, and @why is replaced by the
 * reason. Every reading of the path (http_rule.c) has to be allowed.
 */
int http_judge(const struct gate_rule *rules, size_t n, const char *host, uint16_t port,
	       const char *method, const char *raw_path, struct buf *why);

/* http_path_matches() - In a pattern, '*' at its end is any text, elsewhere one segment or a part
 * of one. */
bool http_path_matches(const char *pattern, const char *path);

#endif
