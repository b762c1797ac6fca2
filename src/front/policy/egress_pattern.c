/* SPDX-License-Identifier: Apache-2.0 */
/* egress_pattern.c - Whether a pattern of the policy has the names and ports of an entry. */
#include "front/policy/egress_pattern.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HTTP 80
#define HTTPS 443

bool egress_pattern_parse(const char *pattern, struct egress_pattern *ret)
{
	char text[4 * EGRESS_TEXT_MAX];
	size_t len = strlen(pattern);

	*ret = (struct egress_pattern){ 0 };
	if (len > 2 && strcmp(pattern + len - 2, ":*") == 0) {
		ret->any_port = true;
		len -= 2;
	}
	if (len >= sizeof(text))
		return false;
	memcpy(text, pattern, len);
	text[len] = '\0';
	if (text[0] == '*' && (len == 1 || text[1] == ':')) {
		/* Parsed with a name in the place of the '*', for the port. */
		ret->any_host = true;
		(void)snprintf(text, sizeof(text), "any.example%.*s", (int)(len - 1), pattern + 1);
	}
	if (ret->any_port && strchr(text, ':'))
		return false;
	/* Methods and paths are not compared here, so a pattern cannot have them. */
	return egress_entry_parse(text, strlen(text), &ret->entry, NULL) == 0 &&
	       !ret->entry.http.methods[0] && !ret->entry.http.path[0];
}

/* Whether "*.domain" has @name. */
static bool is_below(const char *name, const char *domain)
{
	size_t n = strlen(name), d = strlen(domain);

	return n > d && name[n - d - 1] == '.' && strcmp(name + n - d, domain) == 0;
}

static bool host_covers(const struct egress_pattern *p, const struct egress_entry *n)
{
	if (p->any_host)
		return true;
	if (!p->entry.wild)
		return !n->wild && strcmp(p->entry.host, n->host) == 0;
	return is_below(n->host, p->entry.host) || (n->wild && strcmp(p->entry.host, n->host) == 0);
}

static bool is_web(uint16_t port)
{
	return port == 0 || port == HTTP || port == HTTPS;
}

bool egress_pattern_covers(const struct egress_pattern *p, const struct egress_entry *n)
{
	bool port = p->any_port || p->entry.port == n->port ||
		    (p->entry.port == 0 && is_web(n->port));

	return port && host_covers(p, n);
}

bool egress_pattern_touches(const struct egress_pattern *p, const struct egress_entry *n)
{
	bool port = p->any_port || p->entry.port == 0 || p->entry.port == n->port ||
		    (n->port == 0 && is_web(p->entry.port));

	/* An entry that is wider than the pattern has all of its names. */
	return port && (host_covers(p, n) || (n->wild && is_below(p->entry.host, n->host)));
}
