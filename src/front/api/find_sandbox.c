/* SPDX-License-Identifier: Apache-2.0 */
/* find_sandbox.c - Another owner's sandbox does not exist for us: the answer is the same as for
 * none. */
#include "front/api/find_sandbox.h"

#include <stdio.h>

#include "front/http/reply.h"
#include "front/http/route.h"
#include "front/http/serve.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/support/time_text.h"

struct sandbox *own_sandbox(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	struct sandbox *s = sandbox_find(f, context_of(x)->owner, p->value[0]);

	if (!s)
		reply_error(x, 404, "no_such_sandbox", "name", "see GET /v1/sandboxes",
			    "there is no such sandbox");
	return s;
}

void reply_refusal(struct http_exchange *x, const struct refusal *r)
{
	if (r->retry_after_s)
		reply_retry(x, r->status, r->retry_after_s, r->code, r->hint, "%s", r->message);
	else
		reply_error(x, r->status, r->code, r->field, r->hint, "%s", r->message);
}

void reply_missing(struct http_exchange *x, const struct sandbox *s, const char *code,
		   const char *field, const char *hint, const char *message)
{
	char at[STAMP_MAX], text[320];

	time_text(at, s->adopted_ms);
	(void)snprintf(text, sizeof(text),
		       "%s; the daemon's front was restarted at %s, and processes, ports and "
		       "executions from before that are gone",
		       hint, at);
	reply_error(x, 404, code, field, s->adopted_ms ? text : hint, "%s", message);
}
