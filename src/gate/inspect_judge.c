/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_judge.c - Judge a request by the rules of its host, in each way in which a server may
 * read it.
 *
 * Some servers take the method or the path of a request from other headers than its first line. So
 * a host with rules gets no header that names a path, and every method that a header names is
 * judged as the request's own method is. The judged parts of a request are kept, because rules may
 * change while it is under way.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gate/flow.h"
#include "gate/gate_sandbox.h"
#include "gate/http_rule.h"
#include "gate/inspect.h"

void inspect_forget_judged(struct inspect *i)
{
	free(i->judged.method);
	free(i->judged.path);
	buf_free(&i->judged.overrides);
	buf_free(&i->judged.secrets);
	i->judged.method = i->judged.path = NULL;
}

/* By the present rules: 0, or a status and why. */
static int judge(const struct inspect *i, const char *method, struct buf *why)
{
	const struct flow *f = i->flow;
	const struct host_map *n = &f->sandbox->hosts;

	return http_judge(n->rules, n->n_rules, f->host, f->port, method, i->judged.path, why);
}

/* Servers that pass headers on as variables (CGI) read '_' and other signs in a name as '-'. */
static bool is_header(const char *name, const char *dashed)
{
	for (; *name && *dashed; name++, dashed++)
		if ((isalnum((unsigned char)*name) ? *name : '-') != *dashed)
			return false;
	return *name == *dashed;
}

/* The first header from @k on that has one of these names; q->n_headers: none. */
static size_t next_header(const struct http_request *q, size_t k, const char *const *names)
{
	for (; k < q->n_headers; k++)
		for (const char *const *n = names; *n; n++)
			if (is_header(q->headers[k].name, *n))
				return k;
	return k;
}

/* Every method that a header names: a server may use any of them. */
static int judge_overrides(const struct inspect *i, struct buf *why)
{
	const char *at = buf_str(&i->judged.overrides), *end = at + i->judged.overrides.len;
	int r = 0;

	if (i->judged.overrides.err) {
		(void)buf_puts(why, "the headers name too many methods");
		return 403;
	}
	for (; r == 0 && at < end; at += strlen(at) + 1)
		r = judge(i, at, why);
	return r;
}

/* Of a host with rules: refuse forms that a server could read as another request than the one that
 * was judged. 0, or a status. */
static int judge_form(const struct inspect *i, const struct http_request *q, struct buf *why)
{
	static const char *const names[] = { "x-original-url",     "x-original-uri",
					     "x-original-method",  "x-rewrite-url",
					     "x-forwarded-uri",    "x-forwarded-path",
					     "x-forwarded-method", NULL };
	size_t k = next_header(q, 0, names);

	if (!gate_sandbox_has_rules(i->flow->sandbox, i->flow->host, i->flow->port))
		return 0;
	if (k < q->n_headers) {
		(void)buf_printf(why,
				 "the header %s could name another path or method to the server",
				 q->headers[k].name);
		return 403;
	}
	if (i->last && (strcmp(q->method, "GET") == 0 || strcmp(q->method, "HEAD") == 0)) {
		(void)buf_printf(why,
				 "a %s request with a body could be read as two requests by a host "
				 "with rules; send it without a body",
				 q->method);
		return 403;
	}
	return 0;
}

/* The methods in the value of a header; a repeated header has several. */
static void keep_overrides(struct inspect *i, const char *value)
{
	struct buf *b = &i->judged.overrides;

	for (const char *at = value + strspn(value, ", \t"); *at; at += strspn(at, ", \t")) {
		size_t len = strcspn(at, ", \t");

		for (size_t k = 0; k < len; k++)
			(void)buf_append(b, &(char){ (char)toupper((unsigned char)at[k]) }, 1);
		(void)buf_append(b, "", 1);
		at += len;
	}
}

/* Keep the parts of the request that rules are about. False: no memory. */
static bool keep(struct inspect *i, const struct http_request *q)
{
	static const char *const names[] = { "x-http-method-override", "x-http-method",
					     "x-method-override", NULL };

	inspect_forget_judged(i);
	i->judged.method = strdup(q->method);
	i->judged.path = strndup(q->target, strcspn(q->target, "?"));
	for (size_t k = next_header(q, 0, names); k < q->n_headers;
	     k = next_header(q, k + 1, names))
		keep_overrides(i, q->headers[k].value);
	return i->judged.method && i->judged.path && i->judged.overrides.err != -ENOMEM;
}

int inspect_judge_again(const struct inspect *i, struct buf *why)
{
	int r = judge(i, i->judged.method, why);

	return r ? r : judge_overrides(i, why);
}

/* The name that a request is for must be the one that the connection is for; a request that names
 * none gets it (inspect_head()). */
static bool is_own_host(const struct flow *f, const char *host)
{
	size_t n = strcspn(host, ":");
	const char *colon = host + n;
	char port[8];

	if (!*host)
		return true;
	if (n > 1 && host[n - 1] == '.')
		n--;
	(void)snprintf(port, sizeof(port), "%u", f->port);
	return strlen(f->host) == n && strncasecmp(f->host, host, n) == 0 &&
	       (!*colon || strcmp(colon + 1, port) == 0);
}

int inspect_judge(struct inspect *i, const struct http_request *q, struct buf *why)
{
	if (!is_own_host(i->flow, q->host)) {
		(void)buf_puts(why, "the HTTP host is not the one that was connected to");
		return 421;
	}
	i->last = inspect_has_body(q);
	int r = keep(i, q) ? inspect_judge_again(i, why) : 503;

	if (r == 0)
		r = judge_form(i, q, why);
	if (r == 0 && inspect_misplaced(i, q, why))
		r = 403;
	return r;
}
