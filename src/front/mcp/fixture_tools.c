/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_tools.c - Tools of the conformance suite that answer by themselves. */
#include <string.h>

#include "front/mcp/fixture.h"
#include "front/mcp/subscribe.h"
#include "front/mcp/tool.h"
#include "front/support/front.h"

#define STEP_MS 50
#define LOGGER "conformance"

/* ---- kinds of content --------------------------------------------------------------------------------- */

static void simple_text(struct mcp_call *c, json_t *args)
{
	(void)args;
	fixture_text(c, "This is a simple text response for testing.");
}

static void image(struct mcp_call *c, json_t *args)
{
	(void)args;
	fixture_result(c,
		       "[{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"" FIXTURE_PNG
		       "\"}]",
		       false);
}

static void audio(struct mcp_call *c, json_t *args)
{
	(void)args;
	fixture_result(c,
		       "[{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"" FIXTURE_WAV
		       "\"}]",
		       false);
}

static void embedded(struct mcp_call *c, json_t *args)
{
	(void)args;
	fixture_result(
		c,
		"[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
		"\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}]",
		false);
}

static void mixed(struct mcp_call *c, json_t *args)
{
	(void)args;
	fixture_result(
		c,
		"[{\"type\":\"text\",\"text\":\"Multiple content types test:\"},"
		"{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"" FIXTURE_PNG "\"},"
		"{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\","
		"\"mimeType\":\"application/json\","
		"\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}]",
		false);
}

static void failure(struct mcp_call *c, json_t *args)
{
	(void)args;
	fixture_result(
		c,
		"[{\"type\":\"text\",\"text\":\"This tool intentionally returns an error for testing\"}]",
		true);
}

static void greet(struct mcp_call *c, json_t *args)
{
	fixture_text(c, "Hello, %s!", json_string_value(json_object_get(args, "name")));
}

/* ---- on the way --------------------------------------------------------------------------------------- */

static void next_progress(struct mcp_call *c, unsigned int step)
{
	mcp_progress(c, step * 50u, 100, NULL, 0);
	if (step < 2)
		fixture_pause(c, STEP_MS, step + 1, next_progress);
	else
		fixture_text(c, "Progress has been told.");
}

static void progress(struct mcp_call *c, json_t *args)
{
	(void)args;
	next_progress(c, 0);
}

static void next_log(struct mcp_call *c, unsigned int step)
{
	static const char *const texts[] = { "Tool execution started", "Tool processing data",
					     "Tool execution completed" };

	mcp_log(c, 1, LOGGER, texts[step]);
	if (step < 2)
		fixture_pause(c, STEP_MS, step + 1, next_log);
	else
		fixture_text(c, "Messages have been logged.");
}

static void logging(struct mcp_call *c, json_t *args)
{
	(void)args;
	next_log(c, 0);
}

/* ---- what only the modern wire has ---------------------------------------------------------------------- */

static void missing_capability(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (mcp_capable(c, "sampling", NULL))
		fixture_text(c, "The client can sample.");
	else
		mcp_fail_capability(c, "sampling", NULL);
}

static void streaming(struct mcp_call *c, json_t *args)
{
	if (mcp_capable(c, "elicitation", NULL))
		progress(c, args);
	else
		mcp_fail_capability(c, "elicitation", NULL);
}

static void change_tools(struct mcp_call *c, json_t *args)
{
	(void)args;
	mcp_list_changed(c->f, MCP_LIST_TOOLS);
	fixture_text(c, "The list of tools counts as changed.");
}

static void change_prompts(struct mcp_call *c, json_t *args)
{
	(void)args;
	mcp_list_changed(c->f, MCP_LIST_PROMPTS);
	fixture_text(c, "The list of prompts counts as changed.");
}

static void change_resource(struct mcp_call *c, json_t *args)
{
	const char *uri = json_string_value(json_object_get(args, "uri"));

	mcp_resource_updated(c->f, c->owner, uri);
	fixture_text(c, "The resource counts as changed.");
}

static void mirrors(struct mcp_call *c, json_t *args)
{
	const char *region = json_string_value(json_object_get(args, "region"));

	fixture_text(c, "region %s", region ? region : "(none)");
}

static void schema(struct mcp_call *c, json_t *args)
{
	(void)args;
	fixture_text(c, "The schema is what this tool is about.");
}

/* ---- the table ---------------------------------------------------------------------------------------- */

static const struct field none[] = { { 0 } };
static const struct field name_field[] = {
	{ .name = "name",
	  .kind = FIELD_STRING,
	  .required = true,
	  .max = 1000,
	  .description = "Whom to greet." },
	{ 0 },
};
static const struct field uri_field[] = {
	{ .name = "uri",
	  .kind = FIELD_STRING,
	  .required = true,
	  .max = 1000,
	  .description = "Of the resource." },
	{ 0 },
};

static const char wide_schema[] =
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
	"\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"
	"\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
	"\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
	"\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
	"\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
	"\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
	"\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"required\":[\"contactMethod\"]},"
	"\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
	"\"additionalProperties\":false}";

static const char mirror_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
	"\"priority\":{\"type\":\"integer\",\"x-mcp-header\":\"Priority\"},"
	"\"dry\":{\"type\":\"boolean\",\"x-mcp-header\":\"Dry\"}},\"additionalProperties\":false}";
static const struct mcp_mirror mirror_rows[] = {
	{ "region", "mcp-param-region" },
	{ "priority", "mcp-param-priority" },
	{ "dry", "mcp-param-dry" },
	{ 0 },
};

#define FIXTURE_WITH(name_, text, schema_, mirrors_, fn)                                           \
	{                                                                                          \
		.name = (name_), .title = (name_), .description = (text),                          \
		.input_schema = (schema_), .mirrors = (mirrors_), .hints = TOOL_READ_ONLY,         \
		.sets = TOOL_SET_CONFORMANCE, .run = (fn)                                          \
	}

const struct mcp_tool mcp_tools_fixture[] = {
	FIXTURE("test_simple_text", "A text.", none, simple_text),
	FIXTURE("test_image_content", "An image.", none, image),
	FIXTURE("test_audio_content", "A sound.", none, audio),
	FIXTURE("test_embedded_resource", "An embedded resource.", none, embedded),
	FIXTURE("test_multiple_content_types", "Text, image and resource.", none, mixed),
	FIXTURE("test_error_handling", "A failure.", none, failure),
	FIXTURE("test_tool_with_progress", "Tells progress.", none, progress),
	FIXTURE("test_tool_with_logging", "Logs.", none, logging),
	FIXTURE("test_logging_tool", "Logs, when asked to.", none, logging),
	FIXTURE("test_missing_capability", "Needs sampling.", none, missing_capability),
	FIXTURE("test_streaming_elicitation", "Tells progress; needs elicitation.", none,
		streaming),
	FIXTURE("test_trigger_tool_change", "Changes the list of tools.", none, change_tools),
	FIXTURE("test_trigger_prompt_change", "Changes the list of prompts.", none, change_prompts),
	FIXTURE("test_trigger_resource_change", "Changes a resource.", uri_field, change_resource),
	FIXTURE("greet", "Greets.", name_field, greet),
	FIXTURE_WITH("json_schema_2020_12_tool", "Has a schema of many words.", wide_schema, NULL,
		     schema),
	FIXTURE_WITH("test_x_mcp_header", "Has arguments that are headers, too.", mirror_schema,
		     mirror_rows, mirrors),
	{ 0 },
};
