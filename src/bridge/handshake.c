/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handshake.c - Which version of the protocol a server speaks.
 *
 * Modern first: server/discover, which a legacy server answers with an error, with something else,
 * or not at all. Then initialize, which offers the newest version with a handshake. A remote server
 * whose entry has no type, and which refuses that too, is tried as the older pair of stream and
 * POST.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bridge/config.h"
#include "bridge/upstream.h"
#include "mcp/era.h"

#define PROBE_MS 5000u
#define ANSWER_MS 60000u

#define CLIENT "{\"name\":\"caisson\",\"version\":\"" CAISSON_VERSION "\"}"

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

void handshake_begin(struct upstream *u)
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
		upstream_ready(u);
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
	u->wire->ops->settle(u->wire, version, json_is_true(json_object_get(tools, "listChanged")));
	upstream_ready(u);
}

void handshake_result(struct request *r, const char *text, size_t len)
{
	struct upstream *u = r->up;
	enum ask kind = r->kind;
	json_t *result = json_loadb(text, len, 0, NULL);

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
	json_decref(result);
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

	u->wire->ops->abandon(u->wire, r->id, false);
	request_free(r);
	if (kind == ASK_DISCOVER)
		initialize(u);
	else
		upstream_fail(u, "does not answer initialize");
}
