/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_rule.h - Hosts of which only some requests are allowed: rules with methods or a path. Pure.
 *
 * A rule with neither lets everything through, whatever the others of that host and port say.
 */
#ifndef CAISSON_GATE_HTTP_RULE_H
#define CAISSON_GATE_HTTP_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gate.h"

struct buf;

/* http_rule_good() - Whether the texts of a rule have an end and a form. */
bool http_rule_good(const struct gate_rule *r);

/* http_ruled() - Whether requests to this host have to be judged one by one. */
bool http_ruled(const struct gate_rule *rules, size_t n, const char *host, uint16_t port);

/*
 * http_judge() - 0 when a request may go on; otherwise a status, and @why is replaced by what
 * forbids it. Every reading of the path (http_path.h) has to be allowed.
 */
int http_judge(const struct gate_rule *rules, size_t n, const char *host, uint16_t port,
	       const char *method, const char *raw_path, struct buf *why);

/* http_path_matches() - A pattern: '*' at its end is anything, elsewhere one segment or a part of
 * one. */
bool http_path_matches(const char *pattern, const char *path);

#endif
