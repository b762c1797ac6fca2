/* SPDX-License-Identifier: Apache-2.0 */
/* handle_ports.c - Open and close ports of a sandbox, and pass requests through them. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/api/port_proxy.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/ports/ports.h"
#include "front/sandbox/sandbox.h"
#include "front/support/daemon.h"
#include "front/support/refusal.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/http_header.h"

#define ANSWER_MAX (64u << 10)

/* ---- requests of the owner ----------------------------------------------------------------- */

/* Scheme and host as the client sees them. Over the unix socket: those of --listen, or "". */
static void base_of(const struct http_exchange *x, char *out, size_t size)
{
	const struct config *config = &context_of(x)->server->daemon->config;
	struct conn *c = http_conn(x);
	bool local = conn_peer(c)->is_unix;
	const char *host = local ? config->listen : http_request(x)->host;
	bool tls = local ? config->tls_cert != NULL : conn_is_tls(c);

	if (strcmp(host, "none") == 0 || !*host)
		out[0] = '\0';
	else
		(void)snprintf(out, size, "%s://%s", tls ? "https" : "http", host);
}

static void reply_port(struct http_exchange *x, int status, const struct port *p)
{
	struct reply answer;
	char base[320];

	base_of(x, base, sizeof(base));
	port_json(p, base, reply_begin(&answer, ANSWER_MAX));
	reply_end(&answer, x, status);
}

/* The number of the path; false: answered. */
static bool number_of(struct http_exchange *x, unsigned int *number)
{
	char token[PORT_TOKEN_LEN + 1];

	if (port_name_parse(context_param(x, 1), number, token) && !token[0])
		return true;
	reply_error(x, 422, "out_of_range", "port", "a number from 1 to 65535", "invalid port");
	return false;
}

static struct port *find_open(struct sandbox *s, struct http_exchange *x)
{
	unsigned int number;

	if (!number_of(x, &number))
		return NULL;
	struct port *port = port_find(s, number);
	char text[64];

	(void)snprintf(text, sizeof(text), "port %u of this sandbox is not open", number);
	if (!port)
		reply_missing(x, s, "no_such_port", "port",
			      "POST /v1/sandboxes/{name}/ports/{port} opens one", text);
	return port;
}

void handle_ports(struct sandbox *s, struct http_exchange *x)
{
	struct reply answer;
	char base[320];

	base_of(x, base, sizeof(base));
	struct json *j = reply_object(&answer, ANSWER_MAX);

	json_member_array(j, "ports");
	for (const struct port *port = s->ports; port; port = port->next)
		port_json(port, base, j);
	json_array_end(j);
	reply_end(&answer, x, 200);
}

void handle_port(struct sandbox *s, struct http_exchange *x)
{
	const struct port *port = find_open(s, x);

	if (port)
		reply_port(x, 200, port);
}

void handle_port_open(struct sandbox *s, struct http_exchange *x)
{
	struct refusal why;
	unsigned int number;
	bool made;

	if (!number_of(x, &number))
		return;
	const struct port *port = port_open(s, number, &made, &why);

	if (port)
		reply_port(x, made ? 201 : 200, port);
	else
		reply_refusal(x, &why);
}

void handle_port_close(struct sandbox *s, struct http_exchange *x)
{
	struct port *port = find_open(s, x);

	if (!port)
		return;
	port_close(port, "closed by its owner");
	reply_empty(x, 204);
}

/* ---- requests through a port --------------------------------------------------------------- */

/* A page of the service has no origin, and the token of the port in its path: it may call the port.
 */
static void reply_preflight(struct http_exchange *x)
{
	http_add_header(x, "Access-Control-Allow-Origin", "*");
	http_add_header(x, "Access-Control-Allow-Methods", "*");
	http_add_header(x, "Access-Control-Allow-Headers", "*, Authorization");
	http_add_header(x, "Access-Control-Max-Age", "600");
	reply_empty(x, 204);
}

/*
 * A person who opens the address without the token in a browser is redirected to the one with it:
 * then requests of the page have no origin, and cannot use the rights of the owner.
 */
static bool redirect(struct http_exchange *x, const struct port *port)
{
	const struct http_request *q = http_request(x);
	const char *dest = http_header(x, "sec-fetch-dest");
	_buf_ struct buf to = BUF_INIT(16u << 10);
	struct port_way way;

	if (!dest || strcmp(dest, "document") != 0 || strcmp(q->method, "GET") != 0)
		return false;
	port_way_set(&way, port->sandbox->name, port->number, port->token);
	(void)buf_printf(&to, "%s%s", way.prefix, port_inner_target(q->target));
	http_add_header(x, "Location", buf_str(&to));
	reply_empty(x, 307);
	return true;
}

static bool is_secret(const void *auth, const char *text, size_t len)
{
	return auth_is_within(auth, text, len);
}

void handle_port_pass(struct services *services, struct http_exchange *x)
{
	struct request_context *v = context_of(x);
	struct port *port = v->work;
	const struct http_request *q = http_request(x);
	const char *origin = http_header(x, "origin");
	bool in_path = strchr(context_param(x, 1), '~');
	struct port_way way = {
		.peer = conn_peer(http_conn(x))->host,
		.proto = conn_is_tls(http_conn(x)) ? "https" : "http",
		.is_secret = is_secret,
		.secrets = v->server->auth,
		.own_page = in_path && origin && strcmp(origin, "null") == 0,
		.switches = header_switches(q),
	};

	struct auth_verdict verdict;

	v->work = NULL;
	auth_check_target(v->server->auth, port_inner_target(q->target), &verdict);
	if (verdict.status) {
		serve_refuse(x, &verdict, NULL);
		return;
	}
	way.bare = way.switches && strcasecmp(http_header(x, "upgrade"), PORT_BARE) == 0;
	if (http_header(x, "service-worker")) {
		reply_error(x, 403, "service_worker", NULL, NULL,
			    "service workers are not for pages of sandboxes");
		return;
	}
	if (way.own_page && strcmp(q->method, "OPTIONS") == 0 &&
	    http_header(x, "access-control-request-method")) {
		reply_preflight(x);
		return;
	}
	if (!in_path && redirect(x, port))
		return;
	port_way_set(&way, port->sandbox->name, port->number, in_path ? port->token : NULL);
	port_proxy_begin(services, port, x, &way);
}
