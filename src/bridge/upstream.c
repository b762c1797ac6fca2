/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream.c - The life of a server: idle, starting, ready, failed.
 *
 * The first call starts it, and it is kept. When it ends, the calls that wait fail, and the next
 * call starts it again: at once if it had worked for a while, otherwise after a time that doubles.
 * Nothing is started without a call.
 */
#include "bridge/upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "bridge/config.h"
#include "bridge/front_link.h"
#include "bridge/log.h"

#define BACK_OFF_MS 1000u
#define BACK_OFF_MAX_MS 60000u
#define HEALTHY_NS (60 * CLOCK_NS_PER_S) /* after so long an end counts as the first */
#define WORKED_NS CLOCK_NS_PER_S         /* after so long the first is not waited for */

static void set_state(struct upstream *u, enum up_state s, const char *message)
{
	static const char *const names[] = { "idle", "starting", "ready", "failed" };

	u->state = s;
	front_link_send(u->front,
			json_pack("{s:s, s:s, s:s, s:s*}", "event", "state", "server",
				  u->config->name, "state", names[s], "message", message),
			NULL, 0);
}

/* ---- from the wire ------------------------------------------------------------------------- */

static void on_message(void *arg, char *text, size_t len)
{
	answers_message(arg, text, len);
}

static void on_failure(void *arg, uint64_t id, const struct wire_failure *f)
{
	answers_failure(arg, id, f);
}

static void on_closed(void *arg, const char *why)
{
	struct upstream *u = arg;

	/* Some legacy servers end at a first request that they do not know. */
	if (u->state == UP_STARTING && u->modern && u->config->transport == BRIDGE_STDIO) {
		u->legacy_only = true;
		upstream_reopen(u);
		return;
	}
	upstream_fail(u, why);
}

/* ---- states -------------------------------------------------------------------------------- */

static void close_wire(struct upstream *u)
{
	if (u->wire)
		u->wire->ops->close(u->wire);
	u->wire = NULL;
	u->version[0] = '\0';
	u->listens = u->listing = u->modern = false;
	u->nonsense = 0;
	/* The bridge's own requests end here; those of the front that were not sent yet wait. */
	for (struct request *r = u->requests, *next; r; r = next) {
		next = r->next;
		if (r->front_id == 0)
			request_free(r);
	}
}

static void on_rest(struct timer *t)
{
	struct upstream *u = t->arg;

	set_state(u, UP_IDLE, NULL);
}

static void on_patience(struct timer *t)
{
	struct upstream *u = t->arg;
	unsigned int ms = u->config->start_ms;
	char why[160];

	(void)snprintf(
		why, sizeof(why),
		"does not answer: it was given %u.%03u s to start (startup_timeout_sec in its entry)",
		ms / 1000, ms % 1000);
	upstream_fail(u, why);
}

void upstream_fail(struct upstream *u, const char *why)
{
	uint64_t now = clock_now_ns(), worked = u->ready_ns ? now - u->ready_ns : 0;
	uint64_t ms = BACK_OFF_MS;
	char message[400];

	(void)snprintf(message, sizeof(message), "%s: the MCP server %s", u->config->name, why);
	log_text(LOG_WARNING, "mcp_server_failed", u->config->name, "%s", why);
	close_wire(u);
	tools_free(u);
	u->failures = worked > HEALTHY_NS ? 1 : u->failures + 1;
	u->ready_ns = 0;
	u->use_sse = false;
	for (unsigned int i = 1; i < u->failures && ms < BACK_OFF_MAX_MS; i++)
		ms *= 2;
	if (ms > BACK_OFF_MAX_MS)
		ms = BACK_OFF_MAX_MS;
	if (u->failures == 1 && worked > WORKED_NS) {
		timer_cancel(&u->timer);
		set_state(u, UP_IDLE, message);
	} else {
		u->timer.fn = on_rest;
		timer_set(u->base.loop, &u->timer, now + ms * CLOCK_NS_PER_MS);
		set_state(u, UP_FAILED, message);
	}
	while (u->requests)
		request_fail(u->requests, "unavailable",
			     u->requests->id ?
				     "it was in mid-call: whether the tool ran is not known" :
			     u->config->transport == BRIDGE_STDIO ?
				     "what it wrote to stderr is in the daemon's log" :
				     NULL,
			     "the MCP server %s", why);
}

void upstream_ready(struct upstream *u)
{
	timer_cancel(&u->timer);
	u->ready_ns = clock_now_ns();
	set_state(u, UP_READY, NULL);
	log_text(LOG_INFO, "mcp_server_ready", u->config->name, "%s", u->version);
	calls_dispatch(u);
}

static void open_wire(struct upstream *u)
{
	const struct wire_user user = { on_message, on_failure, on_closed, u };
	const struct server_config *s = u->config;
	struct err e = { 0 };
	int r = s->transport == BRIDGE_STDIO ? wire_stdio_open(&u->base, s, &user, &u->wire, &e) :
		s->transport == BRIDGE_SSE || u->use_sse ?
					       wire_sse_open(&u->base, s, &user, &u->wire, &e) :
					       wire_http_open(&u->base, s, &user, &u->wire, &e);
	char why[300];

	if (r < 0) {
		u->wire = NULL;
		(void)snprintf(why, sizeof(why), "cannot be started: %.250s", e.msg);
		upstream_fail(u, why);
		return;
	}
	handshake_begin(u);
}

static void start(struct upstream *u)
{
	u->retried = false;
	set_state(u, UP_STARTING, NULL);
	u->timer.fn = on_patience;
	timer_set(u->base.loop, &u->timer, clock_now_ns() + u->config->start_ms * CLOCK_NS_PER_MS);
	open_wire(u);
}

void upstream_start(struct upstream *u)
{
	if (u->state == UP_IDLE || u->state == UP_FAILED)
		start(u);
}

void upstream_renew(struct upstream *u)
{
	if (clock_now_ns() - u->ready_ns < WORKED_NS) {
		upstream_fail(u, "does not know the session that it has just begun");
		return;
	}
	for (struct request *r; (r = request_find(u, ASK_CALL, true));)
		request_fail(r, "unavailable", "whether the tool ran is not known",
			     "the MCP server forgot the session");
	close_wire(u);
	tools_free(u);
	start(u);
}

void upstream_reopen(struct upstream *u)
{
	close_wire(u);
	open_wire(u);
}

/* ---- for the worker ------------------------------------------------------------------------ */

void upstream_init(struct upstream *u, const struct server_config *s, const struct wire_base *b,
		   struct front_link *o)
{
	*u = (struct upstream){ .config = s, .base = *b, .front = o };
	u->timer.arg = u;
}

void upstream_end(struct upstream *u)
{
	timer_cancel(&u->timer);
	close_wire(u);
	while (u->requests)
		request_free(u->requests);
	tools_free(u);
}
