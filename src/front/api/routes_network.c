/* SPDX-License-Identifier: Apache-2.0 */
/* routes_network.c - Services that listen in a sandbox, and the hosts that it may reach. */
#include "front/api/handlers.h"
#include "front/api/routes.h"

#define PORT_PARAMS                                                                                \
	SANDBOX_PARAM, FIELD(IN_PATH, INTEGER, "port", 1, 65535,                                   \
			     "Port on which a service listens in the sandbox.", .required = true,  \
			     .example = "8000")
#define PASS_PARAMS                                                                                \
	SANDBOX_PARAM,                                                                             \
		FIELD(IN_PATH, STRING, "port", 1, 70, "The port, or PORT~TOKEN as in `url`.",      \
		      .required = true, .pattern = "^[1-9][0-9]{0,4}(~[0-9a-f]{64})?$",            \
		      .example = "\"8000\""),                                                      \
		FIELD(IN_PATH, STRING, "path", 0, 0,                                               \
		      "Anything, slashes too: the path of the service.", .required = true,         \
		      .example = "\"index.html\"")

#define NO_PORT                                                                                    \
	FAILURE(404, "no_such_sandbox no_such_port",                                               \
		"There is no such sandbox of yours, or the port is not open.")
#define BAD_PORT FAILURE(422, "out_of_range", "Invalid port.")
#define PASS_RESPONSES                                                                             \
	RESPONSES(CONTENT(200, "*/*", "Whatever the service answers, with its status."), NO_PORT,  \
		  FAILURE(409, NULL, "The sandbox does not run, or ended."),                       \
		  FAILURE(502, NULL, "Nothing listens on the port, or its answer is not HTTP."),   \
		  FAILURE(504, NULL, "The service did not answer in time."))

#define PORTS SANDBOX "/ports"
#define PORT PORTS "/{port}"

const struct route routes_network[] = {
	{ "GET", PORTS, "ports", FOR_SANDBOX(handle_ports),
	  OPERATION("list_ports", "List open ports", "With their URLs and tokens.",
		    FIELDS(SANDBOX_PARAM)),
	  RESPONSES(RESPONSE(200, "PortList", "The ports that are open."), NO_SANDBOX) },
	{ "POST", PORT, "ports", FOR_SANDBOX(handle_port_open),
	  OPERATION("open_port", "Open a port",
		    "From then on a service that listens on it in the sandbox can be reached at "
		    "`url`, which has a token of its own: every holder of the URL may use the "
		    "service, and nothing else of the daemon. Opening it again has the same result.",
		    FIELDS(PORT_PARAMS)),
	  RESPONSES(RESPONSE(200, "Port", "It was open already."),
		    RESPONSE(201, "Port", "It is open."), NO_SANDBOX,
		    FAILURE(409, "sandbox_stopped too_many_ports",
			    "The sandbox does not run, or has 32 open ports."),
		    BAD_PORT,
		    FAILURE(503, "not_recorded", "It cannot be recorded, so it is not opened.")) },
	{ "GET", PORT, "ports", FOR_SANDBOX(handle_port),
	  OPERATION("get_port", "One open port", "As opening it said.", FIELDS(PORT_PARAMS)),
	  RESPONSES(RESPONSE(200, "Port", "The port."), NO_PORT, BAD_PORT) },
	{ "DELETE", PORT, "ports", FOR_SANDBOX(handle_port_close),
	  OPERATION("close_port", "Close a port", "Its token is worth nothing afterwards.",
		    FIELDS(PORT_PARAMS)),
	  RESPONSES(RESPONSE(204, NULL, "It is closed, and what went through it is cut off."),
		    NO_PORT, BAD_PORT) },
	{ "GET", PORT "/{path}", "ports", FOR_DAEMON(handle_port_pass),
	  OPERATION("use_port", "Speak with a service in a sandbox",
		    "HTTP with any method, and WebSocket. Let in by the token in the path "
		    "(`8000~TOKEN`), by X-Caisson-Port-Token, or as the sandbox's owner. The "
		    "service sees neither tokens nor cookies of anybody else. `Upgrade: "
		    "caisson-tcp` is not passed on: after our 101 the connection is one to the "
		    "port itself, for whatever it speaks.",
		    FIELDS(PASS_PARAMS)),
	  PASS_RESPONSES, .below = true },
	{ "*", PORT "/{path}", "ports", FOR_DAEMON(handle_port_pass),
	  OPERATION("use_port_by_any_method", "The same with every other method",
		    "One path, any method: an OpenAPI document cannot express that.",
		    FIELDS(PASS_PARAMS)),
	  PASS_RESPONSES, .hidden = true, .below = true },
	{ "GET", SANDBOX "/egress", "egress", FOR_SANDBOX(handle_egress_get),
	  OPERATION("get_egress", "Hosts that a sandbox may reach",
		    "Everything else has no address in it.", FIELDS(SANDBOX_PARAM)),
	  RESPONSES(RESPONSE(200, "Egress", "The entries, in their canonical form."), NO_SANDBOX) },
	{ "PUT", SANDBOX "/egress", "egress", FOR_SANDBOX(handle_egress_put),
	  OPERATION("set_egress", "Change the hosts that a sandbox may reach",
		    "At once: open connections that the new list does not allow are cut.",
		    FIELDS(SANDBOX_PARAM,
			   FIELD(IN_BODY, STRING_LIST, "egress", 0, 256,
				 "As at create: all that it may reach from now on. Empty: nothing.",
				 .required = true,
				 .example = "[\"pypi.org\", \"git.example.net:22\"]"))),
	  RESPONSES(RESPONSE(200, "Egress", "They are in force."), POLICY, NO_SANDBOX,
		    FAILURE(409, "sandbox_stopped port_in_use",
			    "It does not run, or a service in it has the port."),
		    FAILURE(422, "invalid_value", "An entry is invalid."),
		    FAILURE(503, "not_recorded", "It cannot be recorded, or not be done now.")) },
	{ "GET", SANDBOX "/net", "egress", FOR_SANDBOX(handle_net),
	  OPERATION("get_net", "Connections, names and bytes",
		    "Its open connections, and the refused ones.", FIELDS(SANDBOX_PARAM)),
	  RESPONSES(RESPONSE(200, "Net", "Connections now, and numbers since its cell was made."),
		    NO_SANDBOX) },
	{ 0 },
};
