/* SPDX-License-Identifier: Apache-2.0 */
/* prompts.c - prompts/list and prompts/get; completion/complete, for arguments of prompts and
 * variables of resource templates. */
#include <string.h>

#include "front/mcp/call.h"
#include "front/mcp/input_request.h"
#include "front/mcp/mcp.h"
#include "front/mcp/prompts.h"
#include "front/mcp/resources.h"

#define LIST_TTL_MS (300u * 1000u)
#define VALUES_MAX 100u /* of a completion: the protocol's */

bool mcp_prompts_any(void)
{
	return mcp_additions.prompts;
}

static const struct mcp_prompt *find(const char *name)
{
	for (const struct mcp_prompt *p = mcp_additions.prompts; p && p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

static void write_prompt(struct json *j, const struct mcp_prompt *p)
{
	json_object_begin(j);
	json_member_str(j, "name", p->name);
	json_member_str(j, "title", p->title);
	json_member_str(j, "description", p->description);
	json_member_array(j, "arguments");
	for (size_t i = 0; i < MCP_PROMPT_ARGS_MAX && p->args[i].name; i++) {
		json_object_begin(j);
		json_member_str(j, "name", p->args[i].name);
		json_member_str(j, "description", p->args[i].description);
		json_member_bool(j, "required", true);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

void mcp_method_prompts_list(struct mcp_call *c)
{
	struct mcp_answer a;
	struct mcp_page page;

	if (!mcp_prompts_any()) {
		mcp_no_method(c);
		return;
	}
	if (!mcp_page_begin(c, &page))
		return;
	mcp_answer_begin(c, &a);
	json_member_array(&a.j, "prompts");
	for (const struct mcp_prompt *p = mcp_additions.prompts; p->name; p++)
		if (mcp_page_takes(&page))
			write_prompt(&a.j, p);
	json_array_end(&a.j);
	mcp_page_end(&page, &a.j);
	mcp_answer_cache(c, &a, LIST_TTL_MS, true);
	mcp_answer_end(c, &a);
}

void mcp_method_prompts_get(struct mcp_call *c)
{
	const char *name = json_string_value(json_object_get(c->m.params, "name"));
	const json_t *args = json_object_get(c->m.params, "arguments");
	const struct mcp_prompt *p = name ? find(name) : NULL;

	if (!mcp_prompts_any()) {
		mcp_no_method(c);
		return;
	}
	if (!p) {
		mcp_fail(c, MCP_INVALID_PARAMS,
			 name ? "there is no prompt %.100s; see prompts/list" :
				"params.name is missing",
			 name);
		return;
	}
	for (size_t i = 0; i < MCP_PROMPT_ARGS_MAX && p->args[i].name; i++)
		if (!json_is_string(json_object_get(args, p->args[i].name))) {
			mcp_fail(c, MCP_INVALID_PARAMS, "params.arguments.%s must be a string",
				 p->args[i].name);
			return;
		}
	if (mcp_inputs_check(c))
		p->get(c, args);
}

/* ---- completion ---------------------------------------------------------------------------- */

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
	json_member_object(&a.j, "completion");
	json_member_array(&a.j, "values");
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
		p = find(name);
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
