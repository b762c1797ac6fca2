/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - From a name to a sandbox, or to words that a model can act on. */
#include "front/mcp/place.h"

#include "front/mcp/tool.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/support/front.h"

static const char *name_of(const json_t *args)
{
	return json_string_value(json_object_get(args, "session_id"));
}

struct sandbox *mcp_place_find(struct mcp_call *c, const json_t *args)
{
	struct sandbox *s = sandbox_find(c->f, c->owner, name_of(args));

	if (!s)
		mcp_output_fail(
			c, "no_such_session",
			"execute_code or write_file with this session_id makes it",
			"there is no session %s: it was never used, or was idle for too long and "
			"removed with everything in it",
			name_of(args));
	return s;
}

struct sandbox *mcp_place(struct mcp_call *c, const json_t *args)
{
	struct refusal why = { 0 };
	struct sandbox *s;

	if (c->f->draining) {
		mcp_output_fail(c, "draining", "try again in 5 s", "the daemon is shutting down");
		return NULL;
	}
	s = sandbox_obtain(c->f, c->owner, name_of(args), &why);
	if (!s)
		mcp_output_refuse(c, &why);
	return s;
}
