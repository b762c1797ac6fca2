/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers.c - Messages of a server: answers, progress, changes, and requests of its own.
 *
 * A result is passed on as it came, as text. A server may not ask us for anything: no capability is
 * declared, so all but ping is answered with an error. An answer that belongs to no request is
 * dropped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "bridge/bridge_log.h"
#include "bridge/config.h"
#include "bridge/front_link.h"
#include "bridge/upstream.h"
#include "mcp/slice.h"

#define SMALL_MAX (1u << 20) /* of what is parsed here */
#define MESSAGE_MAX 1000u    /* bytes of an error's text */
#define ROUNDS_MAX 8u        /* of a call that has to be repeated with a state */
#define PROGRESS_NS (50 * CLOCK_NS_PER_MS)
#define NONSENSE_MAX 10000u

/* ---- answers -------------------------------------------------------------------------------- */

static struct request *find(const struct upstream *u, uint64_t id)
{
	for (struct request *r = u->requests; id && r; r = r->next)
		if (r->id == id)
			return r;
	return NULL;
}

/* A text of a server, cut and without control characters, for a message of ours. */
static void copy_text(const char *from, char *to, size_t size)
{
	size_t len = utf8_fit(from, strlen(from), size - 1);

	memcpy(to, from, len);
	to[len] = '\0';
	for (char *p = to; *p; p++)
		if ((unsigned char)*p < 0x20)
			*p = ' ';
}

/* An error of JSON-RPC: its number, and its text cut and made printable. */
static int read_error(const char *text, size_t len, char *message, size_t size, json_t **ret_data)
{
	json_auto_t *error = len <= SMALL_MAX ? json_loadb(text, len, 0, NULL) : NULL;
	const char *said = json_string_value(json_object_get(error, "message"));
	int code = (int)json_integer_value(json_object_get(error, "code"));

	copy_text(said ? said : "without a message", message, size);
	*ret_data = json_incref(json_object_get(error, "data"));
	return code;
}

static void on_error(struct request *r, const struct slice *error)
{
	struct upstream *u = r->up;
	char said[MESSAGE_MAX], message[MESSAGE_MAX + 80];
	json_auto_t *data = NULL;
	int code = read_error(error->at, error->len, said, sizeof(said), &data);

	(void)snprintf(message, sizeof(message), "the MCP server answered with an error: %s (%d)",
		       said, code);
	if (r->kind == ASK_CALL) {
		request_fail(r, "upstream", NULL, "%s", message);
	} else if (r->kind == ASK_LIST) {
		request_free(r);
		tools_failed(u, "upstream", message);
	} else {
		handshake_error(r, code, said, data);
	}
}

/* A modern server has more to ask, or wants the call again with a state of its own. */
static void on_input_required(struct request *r, const struct slice *state,
			      const struct slice *inputs)
{
	bool asks = inputs->at && inputs->at[0] == '{' &&
		    inputs->at + 1 + strspn(inputs->at + 1, " \t") != inputs->at + inputs->len - 1;

	if (asks || !state->at || state->at[0] != '"' || ++r->rounds > ROUNDS_MAX) {
		request_fail(r, "upstream", NULL,
			     "the tool asks for input, which this client cannot give");
		return;
	}
	free(r->state);
	r->state = strndup(state->at, state->len);
	if (!r->state) {
		request_fail(r, "internal", NULL, "no memory");
		return;
	}
	r->id = 0;
	calls_send(r);
}

static void on_call_result(struct request *r, const struct slice *result)
{
	static const char *const keys[] = { "resultType", "isError", "requestState",
					    "inputRequests" };
	struct upstream *u = r->up;
	struct slice s[4];

	if (slice_members(result->at, result->len, keys, 4, s) < 0) {
		request_fail(r, "unavailable", NULL, "the MCP server's result is not an object");
		return;
	}
	if (slice_is(&s[0], "\"input_required\"")) {
		on_input_required(r, &s[2], &s[3]);
		return;
	}
	front_link_result(u->front, r->front_id, slice_is(&s[1], "true"), result->at, result->len);
	request_free(r);
}

static void on_result(struct request *r, const struct slice *result)
{
	if (r->kind == ASK_CALL)
		on_call_result(r, result);
	else if (r->kind == ASK_LIST)
		tools_page(r, result->at, result->len);
	else
		handshake_result(r, result->at, result->len);
}

/* ---- notifications and requests ------------------------------------------------------------- */

static void on_progress(struct upstream *u, const struct slice *params)
{
	json_auto_t *p = params->at && params->len <= SMALL_MAX ?
				 json_loadb(params->at, params->len, 0, NULL) :
				 NULL;
	json_t *token = json_object_get(p, "progressToken"), *total = json_object_get(p, "total");
	const char *said = json_string_value(json_object_get(p, "message"));
	struct request *r = find(u, (uint64_t)json_integer_value(token));
	uint64_t now = clock_now_ns();
	char message[MESSAGE_MAX];

	if (!r || !r->progress || !r->front_id || now - r->progress_ns < PROGRESS_NS)
		return;
	r->progress_ns = now;
	copy_text(said ? said : "", message, sizeof(message));
	front_link_send(u->front,
			json_pack("{s:s, s:I, s:f, s:O*, s:s*}", "event", "progress", "id",
				  (json_int_t)r->front_id, "progress",
				  json_number_value(json_object_get(p, "progress")), "total",
				  json_is_number(total) ? total : NULL, "message",
				  said ? message : NULL),
			NULL, 0);
}

static void on_notification(struct upstream *u, const struct slice *method,
			    const struct slice *params)
{
	if (slice_is(method, "\"notifications/progress\""))
		on_progress(u, params);
	else if (slice_is(method, "\"notifications/tools/list_changed\""))
		tools_changed(u);
}

/*
 * The server asks for input of a person or a model. Nobody can be asked here, and the server gets
 * that answer at once, instead of waiting until the time of the call is over; also a modern server,
 * which may not ask at all.
 */
static void on_request(struct upstream *u, const struct slice *id, const struct slice *method)
{
	_buf_ struct buf text = BUF_INIT(SMALL_MAX);

	if (id->len > 1024 || (u->modern && u->config->transport != BRIDGE_STDIO))
		return; /* modern HTTP has no way to answer it */
	(void)buf_puts(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
	(void)buf_append(&text, id->at, id->len);
	if (slice_is(method, "\"ping\""))
		(void)buf_puts(&text, ",\"result\":{}}");
	else
		(void)buf_puts(
			&text,
			",\"error\":{\"code\":-32601,\"message\":\"this client can only call "
			"tools and cannot answer questions; take input as arguments\"}}");
	if (!text.err)
		upstream_send(u, text.data, text.len, NULL);
}

static void one_message(struct upstream *u, char *text, size_t len)
{
	static const char *const keys[] = {
		"jsonrpc", "id", "method", "params", "result", "error",
	};
	enum { VERSION, ID, METHOD, PARAMS, RESULT, ERROR, N };
	struct slice s[N];
	struct request *r;
	uint64_t id;

	if (slice_members(text, len, keys, N, s) < 0 || !slice_is(&s[VERSION], "\"2.0\"")) {
		if (u->nonsense++ == 0)
			log_bytes(LOG_WARNING, "mcp_server_nonsense", u->config->name, text, len);
		if (u->nonsense > NONSENSE_MAX)
			upstream_fail(u, "writes no valid messages");
		return;
	}
	u->nonsense = 0;
	if (s[METHOD].at) {
		if (s[ID].at)
			on_request(u, &s[ID], &s[METHOD]);
		else
			on_notification(u, &s[METHOD], &s[PARAMS]);
		return;
	}
	id = slice_id(&s[ID]);
	r = find(u, id);
	if (!r || !s[RESULT].at == !s[ERROR].at)
		return; /* of a call that was cancelled, or forged */
	struct wire *w = u->wire;

	if (s[RESULT].at)
		on_result(r, &s[RESULT]);
	else
		on_error(r, &s[ERROR]);
	if (u->wire == w)
		upstream_abandon(u, id, true);
}

void answers_message(struct upstream *u, char *text, size_t len)
{
	/* Several at once, which one revision of the protocol has. */
	json_auto_t *list = text[0] == '[' ? json_loadb(text, len, 0, NULL) : NULL;
	size_t i;
	json_t *m;

	if (!list)
		one_message(u, text, len);
	json_array_foreach(list, i, m)
	{
		_mem_ char *one = json_dumps(m, JSON_COMPACT | JSON_ENCODE_ANY);

		if (one && u->wire)
			one_message(u, one, strlen(one));
	}
}

void answers_failure(struct upstream *u, uint64_t id, const struct wire_failure *f)
{
	struct request *r = find(u, id);
	char why[400];

	if (!r)
		return;
	(void)snprintf(why, sizeof(why), "the MCP server %s", f->message);
	if (r->kind == ASK_DISCOVER || r->kind == ASK_INITIALIZE || r->kind == ASK_LISTEN) {
		handshake_failure(r, f);
	} else if (f->no_session && !r->again) {
		/* The server did not read it, so it may be sent again, in a new session. */
		r->again = r->kind == ASK_CALL;
		if (r->kind == ASK_CALL)
			r->id = 0;
		upstream_renew(u);
	} else if (r->kind == ASK_LIST) {
		request_free(r);
		tools_failed(u, f->too_large ? "too_large" : "unavailable", why);
	} else {
		request_fail(r, f->too_large ? "too_large" : "unavailable",
			     f->http == 401 || f->http == 403 ?
				     "check the headers of its entry in the configuration" :
				     NULL,
			     "%s", why);
	}
}
