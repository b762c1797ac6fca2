/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - The tables of routes as one, and the search in it. */
#include "front/http/route.h"

#include <string.h>

#include "base/buf.h"
#include "base/fd.h"

const struct route *route_at(size_t i)
{
	for (size_t t = 0; route_tables[t]; t++)
		for (const struct route *r = route_tables[t]; r->method; r++)
			if (i-- == 0)
				return r;
	return NULL;
}

bool route_takes_json(const struct route *r)
{
	return r->method[0] == 'P' && !r->content && !r->raw && !r->below;
}

/* ---- search -------------------------------------------------------------------------------- */

/* Whether @path has the form of @r; @p gets the values of its parameters. */
static bool match(const struct route *r, const char *path, struct route_params *p)
{
	const char *pattern = r->path;
	size_t used = 0;

	p->n = 0;
	while (*pattern && *path) {
		if (*pattern != '{') {
			if (*pattern++ != *path++)
				return false;
			if (r->below && *pattern == '{' && !strchr(pattern, '/'))
				return true;
			continue;
		}
		size_t len = strcspn(path, "/");

		if (len == 0 || p->n == ROUTE_PARAMS_MAX || len >= sizeof(p->text) - used)
			return false;
		memcpy(p->text + used, path, len);
		p->text[used + len] = '\0';
		p->value[p->n++] = p->text + used;
		used += len + 1;
		path += len;
		pattern += strcspn(pattern, "}") + 1;
	}
	return !*pattern && !*path;
}

static void allow_method(struct buf *allow, unsigned int *seen, const char *method)
{
	static const char *const methods[] = { "GET",   "HEAD",   "POST",   "PUT",
					       "PATCH", "DELETE", "OPTIONS" };

	for (unsigned int i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(method, methods[i]) == 0 && !(*seen & 1u << i)) {
			(void)buf_printf(allow, "%s%s", *seen ? ", " : "", method);
			*seen |= 1u << i;
		}
}

const struct route *route_find(const char *method, const char *path, struct route_params *params,
			       int *status, struct buf *allow)
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
	bool any = strcmp(path, "*") == 0;
	const struct route *r;
	unsigned int seen = 0;

	*status = 404;
	for (size_t i = 0; (r = route_at(i)); i++)
		if ((strcmp(r->method, wanted) == 0 || r->method[0] == '*') &&
		    match(r, path, params))
			return r;
	for (size_t i = 0; (r = route_at(i)); i++) {
		if (!any && !match(r, path, params))
			continue;
		allow_method(allow, &seen, r->method);
		if (strcmp(r->method, "GET") == 0)
			allow_method(allow, &seen, "HEAD");
	}
	params->n = 0;
	if (!seen)
		return NULL;
	allow_method(allow, &seen, "OPTIONS");
	*status = 405;
	return NULL;
}
