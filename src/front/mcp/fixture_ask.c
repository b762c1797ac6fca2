/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_ask.c - Tools of the conformance suite that send a legacy client a request of their own. */
#include <stdlib.h>
#include <string.h>

#include "front/mcp/fixture.h"
#include "front/mcp/session.h"
#include "front/mcp/tool.h"
#include "front/support/front.h"
#include "front/support/json_alloc.h"

struct asking {
	struct mcp_question question;
	struct mcp_call *call;
	void (*done)(struct mcp_call *c, const json_t *result);
};

static void on_cancel(struct mcp_call *c)
{
	struct asking *a = c->work;

	mcp_unask(&a->question);
	free(a);
}

static void on_answer(struct mcp_question *q, const json_t *result, const json_t *error)
{
	struct asking *a = q->arg;
	struct mcp_call *c = a->call;
	void (*done)(struct mcp_call * c, const json_t *result) = a->done;
	const char *why = json_string_value(json_object_get(error, "message"));

	free(a);
	c->work = NULL;
	c->cancel = NULL;
	if (result)
		done(c, result);
	else
		mcp_output_fail(c, "client_error", NULL, "the client refused: %s",
				why ? why : "no reason given");
}

static void ask(struct mcp_call *c, const char *capability, const char *method, json_t *params,
		void (*done)(struct mcp_call *c, const json_t *result))
{
	_buf_ struct buf b = BUF_INIT(1u << 20);
	char *text = json_dumps(params, JSON_COMPACT);
	struct asking *a = calloc(1, sizeof(*a));

	json_decref(params);
	if (text)
		(void)buf_puts(&b, text);
	json_alloc_free(text);
	if (!a || !c->session || !mcp_capable(c, capability, NULL)) {
		free(a);
		mcp_output_fail(c, "no_capability", NULL, "the client has not declared %s",
				capability);
		return;
	}
	a->call = c;
	a->done = done;
	a->question.answered = on_answer;
	a->question.arg = a;
	c->work = a;
	c->cancel = on_cancel;
	mcp_ask(c, &a->question, method, &b);
}

/* ---- sampling ----------------------------------------------------------------------------------------- */

static void sampled(struct mcp_call *c, const json_t *result)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(result, "content"), "text"));

	fixture_text(c, "LLM response: %s", text ? text : "");
}

static void sampling(struct mcp_call *c, json_t *args)
{
	ask(c, "sampling", "sampling/createMessage",
	    json_pack("{s:[{s:s,s:{s:s,s:O}}],s:i}", "messages", "role", "user", "content", "type",
		      "text", "text", json_object_get(args, "prompt"), "maxTokens", 100),
	    sampled);
}

/* ---- elicitation -------------------------------------------------------------------------------------- */

static void told(struct mcp_call *c, const char *what, const json_t *result)
{
	const char *action = json_string_value(json_object_get(result, "action"));
	char *content = json_dumps(json_object_get(result, "content"), JSON_COMPACT);

	fixture_text(c, "%s: action=%s, content=%s", what, action ? action : "",
		     content ? content : "{}");
	json_alloc_free(content);
}

static void responded(struct mcp_call *c, const json_t *result)
{
	told(c, "User response", result);
}

static void completed(struct mcp_call *c, const json_t *result)
{
	told(c, "Elicitation completed", result);
}

static void elicit(struct mcp_call *c, const json_t *message, const char *schema,
		   void (*done)(struct mcp_call *c, const json_t *result))
{
	ask(c, "elicitation", "elicitation/create",
	    json_pack("{s:O,s:o}", "message", message, "requestedSchema",
		      json_loads(schema, 0, NULL)),
	    done);
}

static void elicitation(struct mcp_call *c, json_t *args)
{
	elicit(c, json_object_get(args, "message"),
	       "{\"type\":\"object\",\"properties\":{"
	       "\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
	       "\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}},"
	       "\"required\":[\"username\",\"email\"]}",
	       responded);
}

static void elicit_fixed(struct mcp_call *c, const char *message, const char *schema)
{
	json_t *text = json_string(message);

	elicit(c, text, schema, completed);
	json_decref(text);
}

static void defaults(struct mcp_call *c, json_t *args)
{
	(void)args;
	elicit_fixed(
		c, "Please review the defaults.",
		"{\"type\":\"object\",\"properties\":{"
		"\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
		"\"age\":{\"type\":\"integer\",\"default\":30},"
		"\"score\":{\"type\":\"number\",\"default\":95.5},"
		"\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
		"\"default\":\"active\"},"
		"\"verified\":{\"type\":\"boolean\",\"default\":true}},\"required\":[]}");
}

#define TITLED(a, b, c)                                                                            \
	"[{\"const\":\"value1\",\"title\":\"" a "\"},{\"const\":\"value2\",\"title\":\"" b         \
	"\"},{\"const\":\"value3\",\"title\":\"" c "\"}]"

static void enums(struct mcp_call *c, json_t *args)
{
	(void)args;
	elicit_fixed(
		c, "Please choose.",
		"{\"type\":\"object\",\"properties\":{"
		"\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
		"\"titledSingle\":{\"type\":\"string\",\"oneOf\":" TITLED(
			"First Option", "Second Option",
			"Third Option") "},"
					"\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
					"\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
					"\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
					"\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
					"\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":" TITLED(
						"First Choice", "Second Choice",
						"Third Choice") "}}},\"required\":[]}");
}

/* ---- a connection that ends before its answer ------------------------------------------------------------- */

static void resumed(struct mcp_call *c, unsigned int step)
{
	(void)step;
	fixture_text(c, "Reconnection test completed successfully");
}

static void reconnection(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (c->line->hang_up)
		c->line->hang_up(c);
	fixture_pause(c, 100, 0, resumed);
}

/* ---- the table ---------------------------------------------------------------------------------------- */

#define ONE_STRING(name_)                                                                          \
	{                                                                                          \
		{ .name = (name_), .kind = FIELD_STRING, .required = true, .max = 10000 },         \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

static const struct field none[] = { { 0 } };
static const struct field prompt_field[] = ONE_STRING("prompt");
static const struct field message_field[] = ONE_STRING("message");

const struct mcp_tool mcp_tools_fixture_ask[] = {
	FIXTURE("test_sampling", "Asks the client's model.", prompt_field, sampling),
	FIXTURE("test_elicitation", "Asks the user.", message_field, elicitation),
	FIXTURE("test_elicitation_sep1034_defaults", "Asks with defaults.", none, defaults),
	FIXTURE("test_elicitation_sep1330_enums", "Asks with choices.", none, enums),
	FIXTURE("test_reconnection", "Hangs up before it answers.", none, reconnection),
	{ 0 },
};
