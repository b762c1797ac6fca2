/* SPDX-License-Identifier: Apache-2.0 */
/* port_admit.c - Check a request through a port: the port, Host, the token or the owner. */
#include "front/api/port_admit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "front/api/find_sandbox.h"
#include "front/http/auth.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/ports/port_head.h"
#include "front/ports/ports.h"
#include "front/sandbox/sandbox.h"
#include "front/support/metrics.h"
#include "net/conn.h"
#include "net/http.h"

static bool no_such_port(struct http_exchange *x)
{
	reply_error(x, 404, "no_such_port", "port",
		    "POST /v1/sandboxes/{name}/ports/{port} opens one",
		    "there is no such open port");
	return false;
}

static bool host_or_owner(struct http_exchange *x, struct request_context *v, bool proven)
{
	struct auth_verdict verdict;

	auth_check_port(v->server->auth, x, proven, clock_now_ns(), &verdict);
	memcpy(v->owner, verdict.owner, sizeof(v->owner));
	if (verdict.status != 0)
		serve_refuse(x, &verdict, NULL);
	else if (!proven)
		conn_admit(http_conn(x));
	return verdict.status == 0;
}

static bool by_token(struct services *services, struct http_exchange *x, struct request_context *v,
		     unsigned int number, const char *token, bool in_path)
{
	if (!host_or_owner(x, v, true))
		return false;
	struct port *p = port_by_token(services->sandboxes, v->params.value[0], number, token);

	if (p) {
		(void)snprintf(v->owner, sizeof(v->owner), "%s", p->sandbox->owner);
		v->work = p;
		conn_admit(http_conn(x));
		return true;
	}
	metric_add(M_AUTH_FAILURES, 1);
	if (in_path)
		return no_such_port(x);
	reply_error(x, 401, "unauthorized", NULL, "opening the port returns its token",
		    "X-Caisson-Port-Token is not the token of this port");
	return false;
}

static bool by_owner(struct services *services, struct http_exchange *x, struct request_context *v,
		     unsigned int number)
{
	if (!host_or_owner(x, v, false))
		return false;
	struct sandbox *s = own_sandbox(services, x);

	if (!s)
		return false;
	v->work = port_find(s, number);
	return v->work ? true : no_such_port(x);
}

bool port_admit(struct services *services, struct http_exchange *x, struct request_context *v)
{
	const char *given = http_header(x, "x-caisson-port-token");
	char token[PORT_TOKEN_LEN + 1];
	unsigned int number;

	if (!port_name_parse(v->params.value[1], &number, token))
		return host_or_owner(x, v, true) && no_such_port(x);
	if (token[0])
		return by_token(services, x, v, number, token, true);
	if (given)
		return by_token(services, x, v, number, given, false);
	return by_owner(services, x, v, number);
}
