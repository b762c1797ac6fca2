/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream_life.c - The life of a server: idle, starting with a handshake, ready, failed.
 *
 * The first call starts it, and it is kept. When it ends, the calls that wait fail, and the next
 * call starts it again: at once if it had worked for a while, otherwise after a time that doubles.
 * Nothing is started without a call.
 *
 * The handshake finds the version of the protocol that the server speaks. Modern first:
 * server/discover, which a legacy server answers with an error, with something else, or not at all.
 * Then initialize, which offers the newest version with a handshake. A remote server whose entry
 * has no type, and which refuses that too, is tried as the older pair of stream and POST.
 */
#include "bridge/upstream.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "bridge/bridge_log.h"
#include "bridge/config.h"
#include "bridge/front_link.h"
#include "mcp/message.h"

#define PROBE_MS 5000u
#define ANSWER_MS 60000u
#define CLIENT "{\"name\":\"caisson\",\"version\":\"" CAISSON_VERSION "\"}"
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

void wire_over(struct wire *w, const char *why)
{
	struct upstream *u = w->up;

	if (w->dead)
		return;
	/* Some legacy servers end at a first request that they do not know. */
	if (u->state == UP_STARTING && u->modern && u->config->transport == BRIDGE_STDIO) {
		u->legacy_only = true;
		upstream_reopen(u);
		return;
	}
	upstream_fail(u, why);
}

void wire_bury(struct wire *w, void (*fn)(struct deferred *d))
{
	w->dead = true;
	w->bury = (struct deferred){ .fn = fn, .arg = w };
	loop_defer(w->up->base.loop, &w->bury);
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
		"does not answer: it was given %u.%03u s to start (startup_timeout_sec in its "
		"entry)",
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

static void ready(struct upstream *u)
{
	timer_cancel(&u->timer);
	u->ready_ns = clock_now_ns();
	set_state(u, UP_READY, NULL);
	log_text(LOG_INFO, "mcp_server_ready", u->config->name, "%s", u->version);
	calls_dispatch(u);
}

/* ---- the handshake ------------------------------------------------------------------------- */

static void discover(struct upstream *u)
{
	struct request *r = request_new(u, ASK_DISCOVER, 0, PROBE_MS);

	u->modern = true;
	(void)snprintf(u->version, sizeof(u->version), "%s", MCP_MODERN_VERSION);
	if (r)
		request_send(r, "server/discover", NULL, NULL, NULL);
}

static void initialize(struct upstream *u)
{
	struct request *r = request_new(u, ASK_INITIALIZE, 0, ANSWER_MS);

	u->modern = false;
	u->version[0] = '\0';
	if (r)
		request_send(r, "initialize",
			     "{\"protocolVersion\":\"" MCP_LEGACY_VERSION
			     "\",\"capabilities\":{},\"clientInfo\":" CLIENT,
			     NULL, NULL);
}

static void shake_hands(struct upstream *u)
{
	if (u->legacy_only || u->use_sse || u->config->transport == BRIDGE_SSE)
		initialize(u);
	else
		discover(u);
}

static bool lists(const json_t *versions, const char *version)
{
	size_t i;
	json_t *v;

	json_array_foreach(versions, i,
			   v) if (json_is_string(v) &&
				  strcmp(json_string_value(v), version) == 0) return true;
	return false;
}

static void discovered(struct upstream *u, const json_t *result)
{
	const json_t *tools = json_object_get(json_object_get(result, "capabilities"), "tools");
	struct request *r;

	if (!lists(json_object_get(result, "supportedVersions"), MCP_MODERN_VERSION)) {
		initialize(u);
		return;
	}
	if (json_is_true(json_object_get(tools, "listChanged"))) {
		r = request_new(u, ASK_LISTEN, 0, 0);
		u->listens = r;
		if (r)
			request_send(r, "subscriptions/listen",
				     "{\"notifications\":{\"toolsListChanged\":true}", NULL, NULL);
	}
	if (u->state == UP_STARTING)
		ready(u);
}

static void initialized(struct upstream *u, const json_t *result)
{
	const char *said = json_string_value(json_object_get(result, "protocolVersion"));
	const char *version = said ? mcp_legacy_version(said) : NULL;
	const json_t *tools = json_object_get(json_object_get(result, "capabilities"), "tools");
	char why[120];

	if (!version) {
		(void)snprintf(why, sizeof(why), "speaks an unknown version of the protocol: %.32s",
			       said ? said : "it does not say which");
		upstream_fail(u, why);
		return;
	}
	(void)snprintf(u->version, sizeof(u->version), "%s", version);
	notify(u, "notifications/initialized", NULL);
	if (u->wire->ops->settle)
		u->wire->ops->settle(u->wire, version,
				     json_is_true(json_object_get(tools, "listChanged")));
	ready(u);
}

void handshake_result(struct request *r, const char *text, size_t len)
{
	struct upstream *u = r->up;
	enum ask kind = r->kind;
	json_auto_t *result = json_loadb(text, len, 0, NULL);

	request_free(r);
	if (kind == ASK_LISTEN) {
		u->listens = false; /* it ended the stream in good order */
		tools_changed(u);
	} else if (kind == ASK_DISCOVER) {
		discovered(u, result);
	} else if (json_is_object(result)) {
		initialized(u, result);
	} else {
		upstream_fail(u, "answers initialize with something else");
	}
}

void handshake_error(struct request *r, int code, const char *message, const json_t *data)
{
	struct upstream *u = r->up;
	enum ask kind = r->kind;
	bool again = code == MCP_NO_VERSION && !u->retried &&
		     lists(json_object_get(data, "supported"), MCP_MODERN_VERSION);
	char why[300];

	request_free(r);
	if (kind == ASK_LISTEN) {
		u->listens = false;
	} else if (kind == ASK_DISCOVER && again) {
		u->retried = true;
		discover(u);
	} else if (kind == ASK_DISCOVER) {
		initialize(u);
	} else {
		(void)snprintf(why, sizeof(why), "refuses to be initialized: %.200s (%d)", message,
			       code);
		upstream_fail(u, why);
	}
}

void handshake_failure(struct request *r, const struct wire_failure *f)
{
	struct upstream *u = r->up;
	enum ask kind = r->kind;
	bool elsewhere = f->http == 400 || f->http == 404 || f->http == 405 || f->http == 406 ||
			 f->http == 415;

	request_free(r);
	if (kind == ASK_LISTEN) {
		u->listens = false;
		tools_changed(u);
	} else if (kind == ASK_DISCOVER && f->http && f->http != 401 && f->http != 403) {
		initialize(u);
	} else if (kind == ASK_INITIALIZE && elsewhere && u->config->maybe_sse && !u->use_sse) {
		u->use_sse = true;
		upstream_reopen(u);
	} else {
		u->use_sse = false;
		upstream_fail(u, f->message);
	}
}

void handshake_silence(struct request *r)
{
	struct upstream *u = r->up;
	enum ask kind = r->kind;

	upstream_abandon(u, r->id, false);
	request_free(r);
	if (kind == ASK_DISCOVER)
		initialize(u);
	else
		upstream_fail(u, "does not answer initialize");
}

/* ---- starting ------------------------------------------------------------------------------ */

static void open_wire(struct upstream *u)
{
	enum bridge_transport kind = u->use_sse ? BRIDGE_SSE : u->config->transport;
	struct err e = { 0 };
	int r = kind == BRIDGE_STDIO ? wire_stdio_open(u, &e) :
		kind == BRIDGE_SSE   ? wire_sse_open(u, &e) :
				       wire_http_open(u, &e);
	char why[300];

	if (r < 0) {
		(void)snprintf(why, sizeof(why), "cannot be started: %.250s", e.msg);
		upstream_fail(u, why);
		return;
	}
	shake_hands(u);
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
