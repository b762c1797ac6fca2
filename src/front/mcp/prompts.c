/* SPDX-License-Identifier: Apache-2.0 */
/* prompts.c - prompts/list and prompts/get. */
#include <string.h>

#include "front/mcp/call.h"
#include "front/mcp/extra.h"
#include "front/mcp/methods.h"
#include "front/mcp/mrtr.h"
#include "front/mcp/page.h"
#include "front/mcp/prompt.h"
#include "front/support/front.h"

#define LIST_TTL_MS (300u * 1000u)

bool mcp_prompts_any(void)
{
	return mcp_extra.prompts;
}

const struct mcp_prompt *mcp_prompt_find(const char *name)
{
	for (const struct mcp_prompt *p = mcp_extra.prompts; p && p->name; p++)
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
	json_key(j, "arguments");
	json_array_begin(j);
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
	json_key(&a.j, "prompts");
	json_array_begin(&a.j);
	for (const struct mcp_prompt *p = mcp_extra.prompts; p->name; p++)
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
	const struct mcp_prompt *p = name ? mcp_prompt_find(name) : NULL;

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
