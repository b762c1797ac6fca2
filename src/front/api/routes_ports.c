/* SPDX-License-Identifier: Apache-2.0 */
/* routes_ports.c - Services in a sandbox, and the ways to them. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

#define PORT_PARAM                                                                                 \
	{                                                                                          \
		.name = "port", .kind = FIELD_INTEGER, .required = true, .min = 1, .max = 65535,   \
		.description = "Port on which a service listens in the sandbox.",                  \
		.example = "8000"                                                                  \
	}

static const struct field sandbox_params[] = { ROUTE_SANDBOX_PARAM, { 0 } };
static const struct field port_params[] = { ROUTE_SANDBOX_PARAM, PORT_PARAM, { 0 } };
static const struct field pass_params[] = {
	ROUTE_SANDBOX_PARAM,
	{ .name = "port",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = 70,
	  .pattern = "^[1-9][0-9]{0,4}(~[0-9a-f]{64})?$",
	  .description = "The port, or PORT~TOKEN as in `url`.",
	  .example = "\"8000\"" },
	{ .name = "path",
	  .kind = FIELD_STRING,
	  .required = true,
	  .description = "Anything, slashes too: the path of the service.",
	  .example = "\"index.html\"" },
	{ 0 },
};
static const struct field no_fields[] = { { 0 } };

#define NO_SANDBOX                                                                                 \
	{                                                                                          \
		404, "There is no such sandbox of yours.", "Error", NULL, "no_such_sandbox"        \
	}
#define NO_PORT                                                                                    \
	{                                                                                          \
		404, "There is no such sandbox of yours, or the port is not open.", "Error", NULL, \
			"no_such_sandbox no_such_port"                                             \
	}
#define BAD_PORT                                                                                   \
	{                                                                                          \
		422, "That is no port.", "Error", NULL, "out_of_range"                             \
	}

static const struct response_doc list_out[] = {
	{ 200, "The ports that are open.", "PortList", NULL },
	NO_SANDBOX,
	{ 0 },
};
static const struct response_doc open_out[] = {
	{ 200, "It was open already.", "Port", NULL },
	{ 201, "It is open.", "Port", NULL },
	NO_SANDBOX,
	{ 409, "The sandbox does not run, or has 32 open ports.", "Error", NULL,
	  "sandbox_stopped too_many_ports" },
	BAD_PORT,
	{ 503, "It can not be recorded, so it is not opened.", "Error", NULL, "not_recorded" },
	{ 0 },
};
static const struct response_doc one_out[] = {
	{ 200, "The port.", "Port", NULL },
	NO_PORT,
	BAD_PORT,
	{ 0 },
};
static const struct response_doc close_out[] = {
	{ 204, "It is closed, and what went through it is cut off.", NULL, NULL },
	NO_PORT,
	BAD_PORT,
	{ 0 },
};
static const struct response_doc pass_out[] = {
	{ 200, "Whatever the service answers, with its status.", NULL, "*/*" },
	NO_PORT,
	{ 409, "The sandbox does not run, or ended.", "Error", NULL },
	{ 502, "Nothing listens on the port, or its answer is no HTTP.", "Error", NULL },
	{ 504, "The service did not answer in time.", "Error", NULL },
	{ 0 },
};

static const struct route rows[] = {
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/ports",
	  .id = "list_ports",
	  .summary = "List open ports",
	  .description = "With their URLs and tokens.",
	  .tag = "ports",
	  .params = sandbox_params,
	  .responses = list_out,
	  .handler = handle_ports },
	{ .method = "POST",
	  .path = "/v1/sandboxes/{name}/ports/{port}",
	  .id = "open_port",
	  .summary = "Open a port",
	  .description =
		  "From then on a service that listens on it in the sandbox can be reached at `url`, which has a "
		  "token of its own: whoever has the URL may use the service, and nothing else of the daemon. "
		  "Opening it again says the same.",
	  .tag = "ports",
	  .body = no_fields,
	  .params = port_params,
	  .responses = open_out,
	  .handler = handle_port_open },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/ports/{port}",
	  .id = "get_port",
	  .summary = "One open port",
	  .description = "As opening it said.",
	  .tag = "ports",
	  .params = port_params,
	  .responses = one_out,
	  .handler = handle_port },
	{ .method = "DELETE",
	  .path = "/v1/sandboxes/{name}/ports/{port}",
	  .id = "close_port",
	  .summary = "Close a port",
	  .description = "Its token is worth nothing afterwards.",
	  .tag = "ports",
	  .params = port_params,
	  .responses = close_out,
	  .handler = handle_port_close },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/ports/{port}/{path}",
	  .id = "use_port",
	  .summary = "Speak with a service in a sandbox",
	  .description =
		  "HTTP with any method, and WebSocket. Let in by the token in the path (`8000~TOKEN`), by "
		  "X-Caisson-Port-Token, or as the sandbox's owner. The service sees neither tokens nor cookies "
		  "of anybody else. `Upgrade: caisson-tcp` is not passed on: after our 101 the connection is one to the port "
		  "itself, for whatever it speaks.",
	  .tag = "ports",
	  .params = pass_params,
	  .responses = pass_out,
	  .below = true,
	  .handler = handle_port_pass },
	{ .method = "*",
	  .path = "/v1/sandboxes/{name}/ports/{port}/{path}",
	  .id = "use_port_by_any_method",
	  .summary = "The same with every other method",
	  .description = "One path, any method: no table can say that.",
	  .tag = "ports",
	  .params = pass_params,
	  .responses = pass_out,
	  .hidden = true,
	  .below = true,
	  .handler = handle_port_pass },
	{ 0 },
};

const struct route_table routes_ports = { .rows = rows };
