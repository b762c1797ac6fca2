/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_packages.c - pip_install, install_package: packages for a session, or for all of the
 * caller's.
 *
 * Offered by default where the daemon has an index; elsewhere the error names the missing option.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "front/mcp/mcp.h"
#include "front/mcp/tool.h"
#include "front/mcp/tool_list.h"
#include "front/operations/operations.h"
#include "front/operations/services.h"
#include "front/packages/closure.h"
#include "front/packages/install.h"
#include "front/packages/packages.h"

struct waiter {
	struct mcp_call *c;
	struct install *in;
	uint64_t steps;
};

static void write_packages(const struct install *in, struct json *j, struct mcp_list *list)
{
	const json_t *p;
	size_t i;

	mcp_list_begin(list, j, "packages", in->packages->daemon->config.max_output);
	json_array_foreach(in->tree->packages, i, p)
	{
		const char *name = json_string_value(json_object_get(p, "name"));
		const char *version = json_string_value(json_object_get(p, "version"));

		if (!mcp_list_entry(list))
			break;
		json_object_begin(j);
		json_member_str(j, "name", name);
		json_member_str(j, "version", version);
		json_member_str(j, "origin", closure_of_image(p) ? "image" : "installed");
		json_object_end(j);
		(void)buf_printf(&list->text, "%s%s %s%s", list->n ? ", " : "", name, version,
				 closure_of_image(p) ? " (of the image)" : "");
		(void)mcp_list_next(list);
	}
	json_array_end(j);
}

/* The line that says what was done, and which packages are there for it. */
static void write_result(const struct install *in, struct mcp_output *o)
{
	const char *version = closure_version(in->tree->packages, in->first);
	_buf_ struct buf text = BUF_INIT(MCP_ANSWER_MAX);
	char message[INSTALL_MESSAGE_MAX];
	struct mcp_list list;
	struct json *j = &o->s;

	install_message(in, message, sizeof(message));
	json_object_begin(j);
	json_member_bool(j, "success", true);
	json_member_str(j, "message", message);
	json_member_str(j, "installed_version", version ? version : "");
	json_key(j, "installation_time");
	json_double(j, (double)(in->ended_ns - in->began_ns) / (double)CLOCK_NS_PER_S, 3);
	json_member_str(j, "language", ecosystem_name(in->eco));
	json_member_bool(j, "cached", in->cached);
	write_packages(in, j, &list);
	json_member_bool(j, "truncated", list.full);
	json_object_end(j);
	(void)buf_printf(&text, "%s\n%s%s", message, buf_str(&list.text),
			 list.full ? ", and more" : "");
	mcp_output_text(o, buf_str(&text), text.len);
	mcp_list_free(&list);
}

static void on_progress(struct install *in, const struct install_progress *p)
{
	struct waiter *w = in->arg;

	mcp_progress(w->c, ++w->steps, 0, p->text, strlen(p->text));
}

static void on_done(struct install *in)
{
	struct waiter *w = in->arg;
	struct mcp_call *c = w->c;
	struct mcp_output o;

	c->work = NULL;
	c->cancel = NULL;
	free(w);
	if (in->refusal.kind) {
		mcp_output_refuse(c, &in->refusal);
		return;
	}
	mcp_output_begin(c, &o);
	write_result(in, &o);
	mcp_output_end(c, &o, false);
}

static const struct install_ops ops = { .progress = on_progress, .done = on_done };

static void on_cancel(struct mcp_call *c)
{
	struct waiter *w = c->work;

	c->work = NULL;
	c->cancel = NULL;
	install_drop(w->in);
	free(w);
}

/* Both tools: pip_install has `package`, install_package `package_name`. */
static void install(struct mcp_call *c, json_t *args)
{
	bool session = json_object_get(args, "session_id") != NULL;
	json_t *package = json_object_get(args, "package");
	const char *language = json_string_value(json_object_get(args, "language"));
	enum ecosystem eco = language ? ecosystem_find(language) : ECO_PYTHON;
	struct sandbox *s = session ? mcp_obtain_sandbox(c, args) : NULL;
	struct waiter *w;
	struct refusal why;
	json_t *requirements;

	if (session && !s)
		return;
	if (eco == ECO_MAX_) {
		mcp_output_fail(c, "unsupported_language", "python or javascript",
				"there are no packages for this language");
		return;
	}
	w = calloc(1, sizeof(*w));
	requirements = json_pack("[O]", package ? package : json_object_get(args, "package_name"));
	if (!w || !requirements) {
		free(w);
		json_decref(requirements);
		mcp_output_fail(c, "out_of_memory", NULL, "the daemon is out of memory");
		return;
	}
	w->c = c;
	const struct install_request q = {
		.eco = eco,
		.requirements = requirements,
		.version = json_string_value(json_object_get(args, "version")),
		.upgrade = json_is_true(json_object_get(args, "upgrade")),
	};

	w->in = install_begin(c->mcp->services->packages, s, c->owner, &q, &ops, w, &why);
	json_decref(requirements);
	if (!w->in) {
		free(w);
		mcp_output_refuse(c, &why);
		return;
	}
	c->work = w;
	c->cancel = on_cancel;
}

static const char schema[] =
	"{\"type\":\"object\",\"properties\":{\"success\":{\"type\":\"boolean\"},"
	"\"message\":{\"type\":\"string\"},\"installed_version\":{\"type\":\"string\"},"
	"\"installation_time\":{\"type\":\"number\",\"description\":\"seconds\"},"
	"\"language\":{\"type\":\"string\"},\"cached\":{\"type\":\"boolean\"},"
	"\"packages\":{\"type\":\"array\",\"description\":\"all that was installed for it, and those of the image that it uses\"},"
	"\"truncated\":{\"type\":\"boolean\",\"description\":\"packages is not all of them\"}},"
	"\"required\":[\"success\",\"message\",\"installed_version\",\"installation_time\"]}";

const struct mcp_tool mcp_tools_packages[] = {
	{ &operation_pip_install, install, TOOL_IDEMPOTENT | TOOL_OPEN_WORLD, TOOL_WITH_PACKAGES,
	  schema, .task = true },
	{ &operation_install_packages, install, TOOL_IDEMPOTENT | TOOL_OPEN_WORLD,
	  TOOL_WITH_PACKAGES, schema, .task = true },
	{ 0 },
};
