/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_prompts.c - Prompts of the conformance suite. */
#include <string.h>

#include "front/mcp/call.h"
#include "front/mcp/fixture.h"
#include "front/mcp/mrtr.h"
#include "front/mcp/prompt.h"
#include "front/support/json_alloc.h"

/* @content: JSON values, ended by NULL; each becomes a message of the user. Stolen. */
static void answer(struct mcp_call *c, json_t *first, json_t *second)
{
	json_t *messages = json_array();
	struct mcp_answer a;

	(void)json_array_append_new(messages,
				    json_pack("{s:s,s:o}", "role", "user", "content", first));
	if (second)
		(void)json_array_append_new(messages, json_pack("{s:s,s:o}", "role", "user",
								"content", second));
	mcp_answer_begin(c, &a);
	json_member_value(&a.j, "messages", messages);
	json_decref(messages);
	mcp_answer_end(c, &a);
}

static json_t *text(const char *s)
{
	return json_pack("{s:s,s:s}", "type", "text", "text", s);
}

static void simple(struct mcp_call *c, const json_t *args)
{
	(void)args;
	answer(c, text("This is a simple prompt for testing."), NULL);
}

static void with_arguments(struct mcp_call *c, const json_t *args)
{
	json_t *said = json_sprintf("Prompt with arguments: arg1='%s', arg2='%s'",
				    json_string_value(json_object_get(args, "arg1")),
				    json_string_value(json_object_get(args, "arg2")));

	answer(c, json_pack("{s:s,s:o}", "type", "text", "text", said), NULL);
}

static void with_resource(struct mcp_call *c, const json_t *args)
{
	answer(c,
	       json_pack("{s:s,s:{s:O,s:s,s:s}}", "type", "resource", "resource", "uri",
			 json_object_get(args, "resourceUri"), "mimeType", "text/plain", "text",
			 "Embedded resource content for testing."),
	       text("Please process the embedded resource above."));
}

static void with_image(struct mcp_call *c, const json_t *args)
{
	(void)args;
	answer(c,
	       json_pack("{s:s,s:s,s:s}", "type", "image", "data", FIXTURE_PNG, "mimeType",
			 "image/png"),
	       text("Please analyze the image above."));
}

static void with_input(struct mcp_call *c, const json_t *args)
{
	const json_t *content = json_object_get(mcp_input(c, "user_context"), "content");
	const char *context = json_string_value(json_object_get(content, "context"));

	(void)args;
	if (context)
		answer(c, text(context), NULL);
	else
		mcp_inputs_ask(c,
			       json_pack("{s:o}", "user_context",
					 fixture_form("What context should the prompt use?",
						      "context", "string")),
			       NULL);
}

static const char *complete(const char *arg, const char *value, size_t i)
{
	static const char *const words[] = { "paris", "park", "party", "test", "testing" };

	(void)arg;
	for (size_t n = 0; n < sizeof(words) / sizeof(*words); n++)
		if (strncmp(words[n], value, strlen(value)) == 0 && i-- == 0)
			return words[n];
	return NULL;
}

const struct mcp_prompt mcp_prompts_fixture[] = {
	{ "test_simple_prompt", "Simple", "A prompt without arguments.", { { 0 } }, simple, NULL },
	{ "test_prompt_with_arguments",
	  "Arguments",
	  "A prompt with two arguments.",
	  { { "arg1", "First test argument" }, { "arg2", "Second test argument" } },
	  with_arguments,
	  complete },
	{ "test_prompt_with_embedded_resource",
	  "Resource",
	  "A prompt with a resource in it.",
	  { { "resourceUri", "Address of the resource" } },
	  with_resource,
	  NULL },
	{ "test_prompt_with_image", "Image", "A prompt with an image.", { { 0 } }, with_image, NULL },
	{ "test_input_required_result_prompt",
	  "Input",
	  "A prompt that asks back.",
	  { { 0 } },
	  with_input,
	  NULL },
	{ 0 },
};
