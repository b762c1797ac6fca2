/* SPDX-License-Identifier: Apache-2.0 */
/* http_rule.c - Rules matched against hosts, methods and paths. See http_rule.h. */
#include "gate/http_rule.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "gate/http_path.h"

static bool ends(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

bool http_rule_good(const struct gate_rule *r)
{
	return ends(r->host, sizeof(r->host)) && ends(r->methods, sizeof(r->methods)) &&
	       ends(r->path, sizeof(r->path)) && (!r->path[0] || r->path[0] == '/');
}

bool rule_covers(const struct gate_rule *h, const char *host, uint16_t port)
{
	size_t len = strlen(host), want = strlen(h->host);

	if (port != 0 && h->port != port)
		return false;
	if (!(h->flags & GATE_WILD))
		return strcmp(h->host, host) == 0;
	return len > want + 1 && host[len - want - 1] == '.' &&
	       strcmp(host + len - want, h->host) == 0;
}

static bool is_open(const struct gate_rule *h)
{
	return !h->methods[0] && !h->path[0];
}

bool http_ruled(const struct gate_rule *rules, size_t n, const char *host, uint16_t port)
{
	bool ruled = false;

	for (size_t i = 0; i < n; i++) {
		if (!rule_covers(&rules[i], host, port))
			continue;
		if (is_open(&rules[i]))
			return false;
		ruled = true;
	}
	return ruled;
}

/* On a mismatch only the last star takes more: longer matches of earlier ones would not help. */
bool http_path_matches(const char *pattern, const char *path)
{
	const char *star = NULL, *taken = NULL;

	while (*path) {
		if (*pattern == '*') {
			if (!pattern[1])
				return true;
			star = pattern++;
			taken = path;
		} else if (*pattern == *path) {
			pattern++;
			path++;
		} else if (star && *taken != '/') {
			path = ++taken;
			pattern = star + 1;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}

static bool has_method(const char *list, const char *method)
{
	size_t want = strlen(method);

	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ",");

		if (len == want && strncmp(at, method, len) == 0)
			return true;
		at += len + (at[len] == ',');
	}
	return !*list;
}

static void write_rules(const struct gate_rule *rules, size_t n, const char *host, uint16_t port,
			struct buf *out)
{
	const char *between = "";

	for (size_t i = 0; i < n; i++) {
		const struct gate_rule *h = &rules[i];

		if (!rule_covers(h, host, port))
			continue;
		(void)buf_printf(out, "%s%s%s%s%s%s", between, h->methods, h->methods[0] ? " " : "",
				 h->flags & GATE_WILD ? "*." : "", h->host, h->path);
		between = ", ";
	}
}

static bool allows(const struct gate_rule *rules, size_t n, const char *host, uint16_t port,
		   const char *method, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (rule_covers(&rules[i], host, port) && has_method(rules[i].methods, method) &&
		    (!rules[i].path[0] || http_path_matches(rules[i].path, path)))
			return true;
	return false;
}

int http_judge(const struct gate_rule *rules, size_t n, const char *host, uint16_t port,
	       const char *method, const char *raw_path, struct buf *why)
{
	struct http_readings readings;
	const char *problem = NULL, *bad = NULL;

	buf_clear(why);
	/* The answer would contain the values that the gate put in. */
	if (strcmp(method, "TRACE") == 0 || strcmp(method, "CONNECT") == 0) {
		(void)buf_printf(why, "%s is never allowed to a host whose requests are read",
				 method);
		return 403;
	}
	if (!http_ruled(rules, n, host, port))
		return 0;
	int r = http_path_read(raw_path, &readings, &problem);

	if (r == -ENOMEM)
		return 503;
	if (r < 0) {
		(void)buf_printf(why, "the path can be read in two ways (%s)", problem);
		return 403;
	}
	for (size_t i = 0; i < readings.n && !bad; i++)
		if (!allows(rules, n, host, port, method, readings.paths[i]))
			bad = readings.paths[i];
	if (bad) {
		(void)buf_printf(why, "%s %.200s is not allowed; allowed: ", method, bad);
		write_rules(rules, n, host, port, why);
	}
	http_readings_free(&readings);
	return bad ? 403 : 0;
}
