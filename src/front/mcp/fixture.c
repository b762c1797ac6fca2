/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c - What the fixtures share. */
#include "front/mcp/fixture.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "front/mcp/tool.h"
#include "front/support/front.h"

#define TEXT_MAX (1u << 20)

void fixture_result(struct mcp_call *c, const char *content, bool is_error)
{
	struct mcp_answer a;

	mcp_answer_begin(c, &a);
	json_key(&a.j, "content");
	json_raw(&a.j, content, strlen(content));
	json_member_bool(&a.j, "isError", is_error);
	mcp_answer_end(c, &a);
}

void fixture_text(struct mcp_call *c, const char *fmt, ...)
{
	_buf_ struct buf b = BUF_INIT(TEXT_MAX);
	struct mcp_output o;
	va_list ap;

	va_start(ap, fmt);
	(void)buf_vprintf(&b, fmt, ap);
	va_end(ap);
	mcp_output_begin(c, &o);
	mcp_output_text(&o, buf_str(&b), b.len);
	mcp_output_end(c, &o, false);
}

/* ---- pauses ------------------------------------------------------------------------------------------- */

struct pause {
	struct timer timer;
	struct mcp_call *call;
	unsigned int step;
	void (*then)(struct mcp_call *c, unsigned int step);
};

static void on_cancel(struct mcp_call *c)
{
	struct pause *p = c->work;

	timer_cancel(&p->timer);
	free(p);
}

static void on_time(struct timer *t)
{
	struct pause p = *(struct pause *)t->arg;

	free(t->arg);
	p.call->work = NULL;
	p.call->cancel = NULL;
	p.then(p.call, p.step);
}

void fixture_pause(struct mcp_call *c, unsigned int ms, unsigned int step,
		   void (*then)(struct mcp_call *c, unsigned int step))
{
	struct pause *p = calloc(1, sizeof(*p));

	if (!p) {
		mcp_fail(c, MCP_INTERNAL, "the daemon is out of memory");
		return;
	}
	p->call = c;
	p->step = step;
	p->then = then;
	p->timer.fn = on_time;
	p->timer.arg = p;
	c->work = p;
	c->cancel = on_cancel;
	timer_set(&c->f->loop, &p->timer, c->f->loop.now_ns + ms * CLOCK_NS_PER_MS);
}

json_t *fixture_form(const char *message, const char *member, const char *type)
{
	return json_pack("{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s}},s:[s]}}}", "method",
			 "elicitation/create", "params", "mode", "form", "message", message,
			 "requestedSchema", "type", "object", "properties", member, "type", type,
			 "required", member);
}
