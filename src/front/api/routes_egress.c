/* SPDX-License-Identifier: Apache-2.0 */
/* routes_egress.c - What a sandbox may reach, and what it has reached. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

static const struct field params[] = { ROUTE_SANDBOX_PARAM, { 0 } };
static const struct field egress_body[] = {
	{ .name = "egress",
	  .kind = FIELD_STRING_LIST,
	  .required = true,
	  .max = 256,
	  .description = "As at create: all that it may reach from now on. Empty: nothing.",
	  .example = "[\"pypi.org\", \"git.example.net:22\"]" },
	{ 0 },
};

#define NO_SANDBOX                                                                                 \
	{                                                                                          \
		404, "There is no such sandbox of yours.", "Error", NULL, "no_such_sandbox"        \
	}

static const struct response_doc get_out[] = {
	{ 200, "The entries, in their canonical form.", "Egress", NULL },
	NO_SANDBOX,
	{ 0 },
};
static const struct response_doc put_out[] = {
	{ 200, "They are in force.", "Egress", NULL },
	ROUTE_POLICY,
	NO_SANDBOX,
	{ 409, "It does not run, or a service in it has the port.", "Error", NULL,
	  "sandbox_stopped port_in_use" },
	{ 422, "An entry is none.", "Error", NULL, "invalid_value" },
	{ 503, "It can not be recorded, or not be done now.", "Error", NULL, "not_recorded" },
	{ 0 },
};
static const struct response_doc net_out[] = {
	{ 200, "Connections now, and numbers since its cell was made.", "Net", NULL },
	NO_SANDBOX,
	{ 0 },
};

static const struct route rows[] = {
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/egress",
	  .id = "get_egress",
	  .summary = "What a sandbox may reach",
	  .description = "Everything else has no address in it.",
	  .tag = "egress",
	  .params = params,
	  .responses = get_out,
	  .handler = handle_egress_get },
	{ .method = "PUT",
	  .path = "/v1/sandboxes/{name}/egress",
	  .id = "set_egress",
	  .summary = "Change what a sandbox may reach",
	  .description = "At once: open connections that the new list does not allow are cut.",
	  .tag = "egress",
	  .params = params,
	  .body = egress_body,
	  .responses = put_out,
	  .handler = handle_egress_put },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/net",
	  .id = "get_net",
	  .summary = "Connections, names and bytes",
	  .description = "What goes through its way out now, and what was refused.",
	  .tag = "egress",
	  .params = params,
	  .responses = net_out,
	  .handler = handle_net },
	{ 0 },
};
const struct route_table routes_egress = { .rows = rows };
