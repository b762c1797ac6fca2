/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_task.c - Tools of the conformance suite that become tasks. */
#include <string.h>

#include "front/mcp/fixture.h"
#include "front/mcp/mrtr.h"
#include "front/mcp/task.h"
#include "front/mcp/tool.h"

#define JOB_MS 1000

static const char *string_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/* For tools that are a task or nothing. False: answered. */
static bool begin(struct mcp_call *c)
{
	if (mcp_task_begin(c))
		return true;
	if (mcp_capable(c, "extensions", MCP_TASKS))
		mcp_fail(c, MCP_INTERNAL, "there are too many tasks");
	else
		mcp_fail_capability(c, "extensions", MCP_TASKS);
	return false;
}

static void computed(struct mcp_call *c, unsigned int step)
{
	(void)step;
	fixture_text(c, "computed %s",
		     string_of(json_object_get(c->m.params, "arguments"), "label"));
}

static void slow_compute(struct mcp_call *c, json_t *args)
{
	double seconds = json_number_value(json_object_get(args, "seconds"));

	if (seconds > 0)
		(void)mcp_task_begin(c);
	fixture_pause(c, (unsigned int)(seconds * 1000), 0, computed);
}

static void failed(struct mcp_call *c, unsigned int step)
{
	(void)step;
	fixture_result(c, "[{\"type\":\"text\",\"text\":\"The job has failed.\"}]", true);
}

static void failing_job(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (begin(c))
		fixture_pause(c, JOB_MS, 0, failed);
}

static void broken(struct mcp_call *c, unsigned int step)
{
	(void)step;
	mcp_fail(c, MCP_INTERNAL, "the job has broken the protocol");
}

static void protocol_error_job(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (begin(c))
		fixture_pause(c, JOB_MS, 0, broken);
}

/* ---- questions ---------------------------------------------------------------------------------------- */

static void on_confirmed(struct mcp_call *c, const json_t *responses)
{
	bool yes = json_is_true(json_object_get(
		json_object_get(json_object_get(responses, "confirm"), "content"), "confirm"));

	fixture_text(c, "%s: %s", yes ? "deleted" : "kept",
		     string_of(json_object_get(c->m.params, "arguments"), "filename"));
}

static void confirm_delete(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (begin(c))
		mcp_task_ask(c,
			     json_pack("{s:o}", "confirm",
				       fixture_form("Delete it?", "confirm", "boolean")),
			     on_confirmed);
}

static void on_both(struct mcp_call *c, const json_t *responses)
{
	fixture_text(c, "%zu answers", json_object_size(responses));
}

static void multi_input(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (begin(c))
		mcp_task_ask(c,
			     json_pack("{s:o,s:o}", "name",
				       fixture_form("What is your name?", "name", "string"),
				       "confirm", fixture_form("Go on?", "confirm", "boolean")),
			     on_both);
}

static void greeted(struct mcp_call *c, unsigned int step)
{
	(void)step;
	fixture_text(c, "Hello, %s!",
		     string_of(json_object_get(mcp_input(c, "user_name"), "content"), "name"));
}

static void input_then_task(struct mcp_call *c, json_t *args)
{
	(void)args;
	if (!mcp_input(c, "user_name"))
		mcp_inputs_ask(c,
			       json_pack("{s:o}", "user_name",
					 fixture_form("What is your name?", "name", "string")),
			       json_pack("{s:i}", "round", 1));
	else if (begin(c))
		fixture_pause(c, JOB_MS, 0, greeted);
}

/* ---- the table ---------------------------------------------------------------------------------------- */

static const struct field none[] = { { 0 } };
static const struct field slow_fields[] = {
	{ .name = "seconds", .kind = FIELD_NUMBER, .required = true, .min = 0, .max = 3600 },
	{ .name = "label", .kind = FIELD_STRING, .max = 1000 },
	{ 0 },
};
static const struct field file_fields[] = {
	{ .name = "filename", .kind = FIELD_STRING, .required = true, .max = 1000 },
	{ 0 },
};

const struct mcp_tool mcp_tools_fixture_task[] = {
	FIXTURE("slow_compute", "Takes its time.", slow_fields, slow_compute),
	FIXTURE("failing_job", "Fails after a while.", none, failing_job),
	FIXTURE("protocol_error_job", "Ends with an error of the protocol.", none,
		protocol_error_job),
	FIXTURE("confirm_delete", "Asks while it runs.", file_fields, confirm_delete),
	FIXTURE("multi_input", "Asks two things while it runs.", none, multi_input),
	FIXTURE("test_tool_with_task", "Asks first, then becomes a task.", none, input_then_task),
	{ 0 },
};
