/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - completion/complete: how a value that somebody types could go on. */
#include <string.h>

#include "front/mcp/call.h"
#include "front/mcp/methods.h"
#include "front/mcp/prompt.h"
#include "front/mcp/resource.h"

#define VALUES_MAX 100u /* the protocol's */

static size_t of_prompt(const struct mcp_prompt *p, const char *arg, const char *value,
			struct json *j)
{
	const char *one;
	size_t n = 0;

	for (; p->complete && (one = p->complete(arg, value, n)); n++)
		if (n < VALUES_MAX)
			(void)json_str(j, one);
	return n;
}

static void answer(struct mcp_call *c, const struct mcp_prompt *p, const struct mcp_resource *r,
		   const char *arg, const char *value)
{
	struct mcp_answer a;
	size_t n = 0;

	mcp_answer_begin(c, &a);
	json_key(&a.j, "completion");
	json_object_begin(&a.j);
	json_key(&a.j, "values");
	json_array_begin(&a.j);
	if (p)
		n = of_prompt(p, arg, value, &a.j);
	else if (r && r->complete)
		n = r->complete(c, arg, value, &a.j, VALUES_MAX);
	json_array_end(&a.j);
	json_member_uint(&a.j, "total", n);
	json_member_bool(&a.j, "hasMore", n > VALUES_MAX);
	json_object_end(&a.j);
	mcp_answer_end(c, &a);
}

void mcp_method_complete(struct mcp_call *c)
{
	const json_t *ref = json_object_get(c->m.params, "ref");
	const json_t *argument = json_object_get(c->m.params, "argument");
	const char *type = json_string_value(json_object_get(ref, "type"));
	const char *name = json_string_value(json_object_get(ref, "name"));
	const char *uri = json_string_value(json_object_get(ref, "uri"));
	const char *arg = json_string_value(json_object_get(argument, "name"));
	const char *value = json_string_value(json_object_get(argument, "value"));
	const struct mcp_prompt *p = NULL;
	const struct mcp_resource *r = NULL;

	if (!arg || !value) {
		mcp_fail(c, MCP_INVALID_PARAMS,
			 "params.argument must have the strings name and value");
		return;
	}
	if (type && strcmp(type, "ref/prompt") == 0 && name)
		p = mcp_prompt_find(name);
	else if (type && strcmp(type, "ref/resource") == 0 && uri)
		r = mcp_template_find(uri);
	else {
		mcp_fail(
			c, MCP_INVALID_PARAMS,
			"params.ref must be {type: ref/prompt, name} or {type: ref/resource, uri}");
		return;
	}
	if (!p && !r)
		mcp_fail(c, MCP_INVALID_PARAMS, "params.ref: there is no %s %.100s",
			 name ? "prompt" : "resource template", name ? name : uri);
	else
		answer(c, p, r, arg, value);
}
