/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_input.c - Tools of the conformance suite that ask a modern client before they answer. */
#include <string.h>

#include "front/mcp/fixture.h"
#include "front/mcp/mrtr.h"
#include "front/mcp/tool.h"

static json_t *sampling(const char *text, int tokens)
{
	return json_pack("{s:s,s:{s:[{s:s,s:{s:s,s:s}}],s:i}}", "method", "sampling/createMessage",
			 "params", "messages", "role", "user", "content", "type", "text", "text",
			 text, "maxTokens", tokens);
}

static json_t *roots(void)
{
	return json_pack("{s:s,s:{}}", "method", "roots/list", "params");
}

/* The member of a form that was accepted, or NULL. */
static const json_t *entered(const struct mcp_call *c, const char *key, const char *member)
{
	return json_object_get(json_object_get(mcp_input(c, key), "content"), member);
}

static void elicitation(struct mcp_call *c, json_t *args)
{
	const char *name = json_string_value(entered(c, "user_name", "name"));

	(void)args;
	if (name)
		fixture_text(c, "Hello, %s!", name);
	else
		mcp_inputs_ask(c,
			       json_pack("{s:o}", "user_name",
					 fixture_form("What is your name?", "name", "string")),
			       NULL);
}

static void sample(struct mcp_call *c, json_t *args)
{
	const json_t *content = json_object_get(mcp_input(c, "capital_question"), "content");
	const char *text = json_string_value(json_object_get(content, "text"));

	(void)args;
	if (text)
		fixture_text(c, "%s", text);
	else
		mcp_inputs_ask(c,
			       json_pack("{s:o}", "capital_question",
					 sampling("What is the capital of France?", 100)),
			       NULL);
}

static void list_roots(struct mcp_call *c, json_t *args)
{
	const json_t *list = json_object_get(mcp_input(c, "client_roots"), "roots");

	(void)args;
	if (list)
		fixture_text(c, "The client has %zu roots.", json_array_size(list));
	else
		mcp_inputs_ask(c, json_pack("{s:o}", "client_roots", roots()), NULL);
}

static void request_state(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (c->state && mcp_input(c, "confirm"))
		fixture_text(c, "state-ok");
	else
		mcp_inputs_ask(c,
			       json_pack("{s:o}", "confirm",
					 fixture_form("Please confirm", "ok", "boolean")),
			       json_pack("{s:i}", "round", 1));
}

static void multiple(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (c->state && mcp_input(c, "user_name") && mcp_input(c, "greeting") &&
	    mcp_input(c, "client_roots"))
		fixture_text(c, "Everything has been answered.");
	else
		mcp_inputs_ask(c,
			       json_pack("{s:o,s:o,s:o}", "user_name",
					 fixture_form("What is your name?", "name", "string"),
					 "greeting", sampling("Generate a greeting", 50),
					 "client_roots", roots()),
			       json_pack("{s:i}", "round", 1));
}

static void multi_round(struct mcp_call *c, json_t *args)
{
	const json_t *round = json_object_get(c->state, "round");
	const json_t *name = entered(c, "step1", "name");

	(void)args;
	if (json_integer_value(round) == 2 && entered(c, "step2", "color"))
		fixture_text(c, "%s likes %s.",
			     json_string_value(json_object_get(c->state, "name")),
			     json_string_value(entered(c, "step2", "color")));
	else if (json_integer_value(round) == 1 && json_is_string(name))
		mcp_inputs_ask(c,
			       json_pack("{s:o}", "step2",
					 fixture_form("Step 2: What is your favorite color?",
						      "color", "string")),
			       json_pack("{s:i,s:O}", "round", 2, "name", name));
	else
		mcp_inputs_ask(
			c,
			json_pack("{s:o}", "step1",
				  fixture_form("Step 1: What is your name?", "name", "string")),
			json_pack("{s:i}", "round", 1));
}

static void capabilities(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (mcp_input(c, "user_name") || mcp_input(c, "greeting"))
		fixture_text(c, "What could be answered has been.");
	else
		mcp_inputs_ask(c,
			       json_pack("{s:o,s:o}", "user_name",
					 fixture_form("What is your name?", "name", "string"),
					 "greeting", sampling("Generate a greeting", 50)),
			       NULL);
}

/* ---- the table ---------------------------------------------------------------------------------------- */

static const struct field none[] = { { 0 } };

#define PREFIX "test_input_required_result_"

const struct mcp_tool mcp_tools_fixture_input[] = {
	FIXTURE(PREFIX "elicitation", "Asks the user.", none, elicitation),
	FIXTURE(PREFIX "sampling", "Asks the client's model.", none, sample),
	FIXTURE(PREFIX "list_roots", "Asks for roots.", none, list_roots),
	FIXTURE(PREFIX "request_state", "Asks, and remembers.", none, request_state),
	FIXTURE(PREFIX "multiple_inputs", "Asks three things at once.", none, multiple),
	FIXTURE(PREFIX "multi_round", "Asks twice.", none, multi_round),
	FIXTURE(PREFIX "tampered_state", "Asks, and minds what comes back.", none, request_state),
	FIXTURE(PREFIX "capabilities", "Asks what the client can answer.", none, capabilities),
	{ 0 },
};
