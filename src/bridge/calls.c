/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - Requests to a server, and whatever comes from it: answers, progress, changes, and requests of its own.
 *
 * A result is passed on as it came, as text. A server may not ask us for anything: no capability is declared, so all
 * but ping is answered with an error. Many requests are under way at once; numbers are never used twice.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json_quote.h"
#include "base/utf8.h"
#include "bridge/config.h"
#include "bridge/outlet.h"
#include "bridge/say.h"
#include "bridge/upstream.h"
#include "mcp/era.h"
#include "mcp/header.h"
#include "mcp/slice.h"
#include "wire/bridge.h"

#define SMALL_MAX (1u << 20) /* of what is parsed here */
#define MESSAGE_MAX 1000u    /* bytes of an error's text */
#define ROUNDS_MAX 8u        /* of a call that has to be repeated with a state */
#define PROGRESS_NS (50 * CLOCK_NS_PER_MS)
#define NONSENSE_MAX 10000u
#define TEXT_MAX ((size_t)BRIDGE_BODY_MAX + (256u << 10))

/* ---- requests --------------------------------------------------------------------------------- */

void request_free(struct request *r)
{
	for (struct request **p = &r->up->requests; *p; p = &(*p)->next)
		if (*p == r) {
			*p = r->next;
			r->up->n_requests--;
			break;
		}
	timer_cancel(&r->timer);
	buf_free(&r->arguments);
	free(r->tool);
	free(r->state);
	free(r);
}

void request_fail(struct request *r, const char *code, const char *message, const char *hint)
{
	struct outlet *o = r->up->outlet;
	uint64_t id = r->front_id;

	request_free(r);
	if (id)
		outlet_error(o, id, code, message, hint);
}

/* Nobody waits any more: tell the server. */
static void give_up(struct request *r, const char *reason)
{
	struct upstream *u = r->up;
	char params[160];

	if (!r->id || !u->wire)
		return;
	/* To a modern server over HTTP the end of the stream says it. */
	if (u->config->transport == BRIDGE_STDIO || !u->modern) {
		(void)snprintf(params, sizeof(params),
			       "{\"requestId\":%" PRIu64 ",\"reason\":\"%s\"", r->id, reason);
		notify(u, "notifications/cancelled", params);
	}
	u->wire->ops->abandon(u->wire, r->id, false);
}

static void on_timeout(struct timer *t)
{
	struct request *r = t->arg;
	struct upstream *u = r->up;
	char message[300];

	if (r->kind == ASK_DISCOVER || r->kind == ASK_INITIALIZE) {
		talk_silence(r);
		return;
	}
	(void)snprintf(message, sizeof(message), "%s: no answer in %" PRIu64 ".%03" PRIu64 " s%s",
		       u->config->name, r->timeout_ms / 1000, r->timeout_ms % 1000,
		       u->state == UP_STARTING ? ": the MCP server is still starting" : "");
	give_up(r, "timeout");
	if (r->kind == ASK_LIST) {
		request_free(r);
		tools_failed(u, "timeout", message);
		return;
	}
	request_fail(r, "timeout", message, NULL);
}

struct request *request_new(struct upstream *u, enum ask kind, uint64_t front_id,
			    uint64_t timeout_ms)
{
	struct request *r = calloc(1, sizeof(*r)), **last = &u->requests;

	if (!r) {
		if (front_id)
			outlet_error(u->outlet, front_id, "internal", "no memory", NULL);
		return NULL;
	}
	r->up = u;
	r->kind = kind;
	r->front_id = front_id;
	r->timeout_ms = timeout_ms;
	r->timer = (struct timer){ .fn = on_timeout, .arg = r };
	buf_init(&r->arguments, BRIDGE_BODY_MAX);
	if (timeout_ms)
		timer_set(u->base.loop, &r->timer, clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS);
	while (*last)
		last = &(*last)->next;
	*last = r;
	u->n_requests++;
	return r;
}

static void put_meta(struct buf *out, const struct request *r)
{
	const struct upstream *u = r->up;
	bool token = r->kind == ASK_CALL && r->progress;

	if (!u->modern && !token)
		return;
	(void)buf_puts(out, ",\"_meta\":{");
	if (u->modern)
		(void)buf_printf(out,
				 "\"" MCP_META_VERSION "\":\"%s\",\"" MCP_META
				 "clientInfo\":{\"name\":\"caisson\",\"version\":\"" CAISSON_VERSION
				 "\"},\"" MCP_META_CAPABILITIES "\":{}%s",
				 u->version, token ? "," : "");
	if (token)
		(void)buf_printf(out, "\"progressToken\":%" PRIu64, r->id);
	(void)buf_puts(out, "}");
}

void request_send(struct request *r, const char *method, const char *params, const char *name,
		  char *const *headers)
{
	struct upstream *u = r->up;
	_buf_ struct buf text = BUF_INIT(TEXT_MAX);
	struct err e = { 0 };
	int code;

	r->id = ++u->last_id;
	(void)buf_printf(&text,
			 "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64 ",\"method\":\"%s\",\"params\":",
			 r->id, method);
	size_t begin = text.len;

	(void)buf_puts(&text, params ? params : "{");
	size_t filled = text.len - begin;

	put_meta(&text, r);
	/* A comma too many, when there is nothing in front of it. */
	if (filled == 1 && text.len > begin + 1 && !text.err)
		text.data[begin + 1] = ' ';
	(void)buf_puts(&text, "}}");
	const struct wire_message m = { .text = buf_str(&text),
					.len = text.len,
					.id = r->id,
					.method = method,
					.name = name,
					.headers = headers,
					.version = u->version[0] ? u->version : NULL,
					.modern = u->modern };

	code = text.err ? text.err : u->wire->ops->send(u->wire, &m, &e);
	if (code == 0)
		return;
	char message[400];

	(void)snprintf(message, sizeof(message), "%s: the MCP server %.200s", u->config->name,
		       text.err ? "can not be sent that much" : e.msg);
	request_fail(r,
		     text.err == -EMSGSIZE ? "too_large" :
		     code == -EBUSY        ? "busy" :
					     "unavailable",
		     message, NULL);
}

static void say_to(struct upstream *u, const char *text, size_t len, const char *method)
{
	const struct wire_message m = { .text = text,
					.len = len,
					.method = method,
					.version = u->version[0] ? u->version : NULL,
					.modern = u->modern };

	if (u->wire)
		(void)u->wire->ops->send(u->wire, &m, NULL);
}

void notify(struct upstream *u, const char *method, const char *params)
{
	_buf_ struct buf text = BUF_INIT(SMALL_MAX);

	(void)buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"%s%s%s}", method,
			 params ? ",\"params\":" : "", params ? params : "", params ? "}" : "");
	if (!text.err)
		say_to(u, text.data, text.len, method);
}

/* ---- calls ------------------------------------------------------------------------------------ */

static void send_call(struct request *r)
{
	struct upstream *u = r->up;
	_buf_ struct buf params = BUF_INIT(TEXT_MAX);
	_buf_ struct buf name = BUF_INIT(64u << 10);
	const json_t *tool = tools_find(u, r->tool);
	bool remote = u->modern && u->config->transport != BRIDGE_STDIO;
	char message[400];

	if (u->tools && !tool) {
		(void)snprintf(message, sizeof(message), "%s: there is no tool '%.128s'",
			       u->config->name, r->tool);
		request_fail(r, "unknown_tool", message, NULL);
		return;
	}
	(void)buf_puts(&params, "{\"name\":");
	(void)json_quote(&params, r->tool, strlen(r->tool));
	(void)buf_puts(&params, ",\"arguments\":");
	(void)buf_append(&params, buf_str(&r->arguments), r->arguments.len);
	if (r->state)
		(void)buf_printf(&params, ",\"requestState\":%s", r->state);
	char **headers = remote ? tools_headers(tool, buf_str(&r->arguments), r->arguments.len) :
				  NULL;

	if (params.err || (remote && (!headers || mcp_header_encode(r->tool, &name) < 0)))
		request_fail(r, "too_large", "the arguments are too large to be sent", NULL);
	else
		request_send(r, "tools/call", buf_str(&params), remote ? buf_str(&name) : NULL,
			     headers);
	tools_free_headers(headers);
}

/* The oldest that is not sent yet; ASK_TOOLS never is. */
static struct request *next_unsent(const struct upstream *u)
{
	for (struct request *r = u->requests; r; r = r->next)
		if (r->kind == ASK_CALL && r->id == 0)
			return r;
	return NULL;
}

void calls_dispatch(struct upstream *u)
{
	/* Headers that a call has to have are in the list of tools. */
	bool list_first = u->modern && u->config->transport != BRIDGE_STDIO && !u->tools;
	bool wanted = false;

	for (struct request *r = u->requests; r; r = r->next)
		wanted |= r->kind == ASK_TOOLS || (list_first && r->kind == ASK_CALL && !r->id);
	if (wanted)
		tools_want(u);
	if (list_first && !u->tools)
		return;
	for (struct request *r; u->state == UP_READY && (r = next_unsent(u));)
		send_call(r);
}

static bool admit(struct upstream *u, uint64_t front_id)
{
	char message[300];

	if (u->n_requests >= REQUESTS_MAX) {
		(void)snprintf(message, sizeof(message), "%s: %u calls wait already",
			       u->config->name, REQUESTS_MAX);
		outlet_error(u->outlet, front_id, "busy", message, "make fewer calls at once");
		return false;
	}
	if (u->state == UP_FAILED) {
		uint64_t now = clock_now_ns(), at = u->timer.at_ns;

		(void)snprintf(
			message, sizeof(message),
			"%s: the MCP server failed %u times in a row; it is tried again in %" PRIu64
			" s",
			u->config->name, u->failures,
			at > now ? (at - now) / CLOCK_NS_PER_S + 1 : 1);
		outlet_error(u->outlet, front_id, "unavailable", message, NULL);
		return false;
	}
	return true;
}

void upstream_call(struct upstream *u, uint64_t front_id, const char *tool, struct buf *arguments,
		   uint64_t timeout_ms, bool progress)
{
	struct request *r = admit(u, front_id) ? request_new(u, ASK_CALL, front_id, timeout_ms) :
						 NULL;

	if (!r)
		return;
	r->tool = strdup(tool);
	r->progress = progress;
	r->arguments = *arguments;
	*arguments = (struct buf){ .max = arguments->max };
	if (!r->tool) {
		request_fail(r, "internal", "no memory", NULL);
		return;
	}
	if (u->state == UP_READY)
		calls_dispatch(u);
	else
		upstream_start(u);
}

void upstream_tools(struct upstream *u, uint64_t front_id, uint64_t timeout_ms)
{
	if (tools_fresh(u)) {
		outlet_result(u->outlet, front_id, false, u->tools_text, u->tools_len);
		return;
	}
	if (!admit(u, front_id) || !request_new(u, ASK_TOOLS, front_id, timeout_ms))
		return;
	if (u->state == UP_READY)
		calls_dispatch(u);
	else
		upstream_start(u);
}

bool upstream_cancel(struct upstream *u, uint64_t front_id)
{
	for (struct request *r = u->requests; r; r = r->next)
		if (r->front_id == front_id) {
			give_up(r, "cancelled");
			request_free(r);
			return true;
		}
	return false;
}

/* ---- answers ---------------------------------------------------------------------------------- */

static struct request *find(const struct upstream *u, uint64_t id)
{
	for (struct request *r = u->requests; id && r; r = r->next)
		if (r->id == id)
			return r;
	return NULL;
}

/* Texts of servers go into messages of ours. */
static void copy_text(const char *from, char *to, size_t size)
{
	size_t len = utf8_fit(from, strlen(from), size - 1);

	memcpy(to, from, len);
	to[len] = '\0';
	for (char *p = to; *p; p++)
		if ((unsigned char)*p < 0x20)
			*p = ' ';
}

int calls_error(const char *text, size_t len, char *message, size_t size, json_t **ret_data)
{
	json_t *error = len <= SMALL_MAX ? json_loadb(text, len, 0, NULL) : NULL;
	const char *said = json_string_value(json_object_get(error, "message"));
	int code = (int)json_integer_value(json_object_get(error, "code"));

	copy_text(said ? said : "it does not say which", message, size);
	*ret_data = json_incref(json_object_get(error, "data"));
	json_decref(error);
	return code;
}

static void on_error(struct request *r, const struct slice *error)
{
	struct upstream *u = r->up;
	char said[MESSAGE_MAX], message[MESSAGE_MAX + 300];
	json_t *data = NULL;
	int code = calls_error(error->at, error->len, said, sizeof(said), &data);

	(void)snprintf(message, sizeof(message),
		       "%s: the MCP server answered with an error: %s (%d)", u->config->name, said,
		       code);
	if (r->kind == ASK_CALL) {
		request_fail(r, "upstream", message, NULL);
	} else if (r->kind == ASK_LIST) {
		request_free(r);
		tools_failed(u, "upstream", message);
	} else {
		talk_error(r, code, said, data);
	}
	json_decref(data);
}

/* A modern server has more to ask, or wants the call again with a state of its own. */
static void on_input_required(struct request *r, const struct slice *state,
			      const struct slice *inputs)
{
	bool asks = inputs->at && inputs->at[0] == '{' &&
		    inputs->at + 1 + strspn(inputs->at + 1, " \t") != inputs->at + inputs->len - 1;
	char message[300];

	if (asks || !state->at || state->at[0] != '"' || ++r->rounds > ROUNDS_MAX) {
		(void)snprintf(message, sizeof(message),
			       "%s: the tool asks for input, which nobody can give it here",
			       r->up->config->name);
		request_fail(r, "upstream", message, NULL);
		return;
	}
	free(r->state);
	r->state = strndup(state->at, state->len);
	if (!r->state) {
		request_fail(r, "internal", "no memory", NULL);
		return;
	}
	r->id = 0;
	send_call(r);
}

static void on_call_result(struct request *r, const struct slice *result)
{
	static const char *const keys[] = { "resultType", "isError", "requestState",
					    "inputRequests" };
	struct upstream *u = r->up;
	struct slice s[4];
	char message[300];

	if (slice_members(result->at, result->len, keys, 4, s) < 0) {
		(void)snprintf(message, sizeof(message), "%s: the MCP server's result is no object",
			       u->config->name);
		request_fail(r, "unavailable", message, NULL);
		return;
	}
	if (slice_is(&s[0], "\"input_required\"")) {
		on_input_required(r, &s[2], &s[3]);
		return;
	}
	outlet_result(u->outlet, r->front_id, slice_is(&s[1], "true"), result->at, result->len);
	request_free(r);
}

static void on_result(struct request *r, const struct slice *result)
{
	if (r->kind == ASK_CALL)
		on_call_result(r, result);
	else if (r->kind == ASK_LIST)
		tools_page(r, result->at, result->len);
	else
		talk_result(r, result->at, result->len);
}

/* ---- what nobody asked for -------------------------------------------------------------------- */

static void on_progress(struct upstream *u, const struct slice *params)
{
	json_t *p = params->at && params->len <= SMALL_MAX ?
			    json_loadb(params->at, params->len, 0, NULL) :
			    NULL;
	json_t *token = json_object_get(p, "progressToken"), *total = json_object_get(p, "total");
	const char *said = json_string_value(json_object_get(p, "message"));
	struct request *r = find(u, (uint64_t)json_integer_value(token));
	uint64_t now = clock_now_ns();
	char message[MESSAGE_MAX];

	if (r && r->progress && r->front_id && now - r->progress_ns >= PROGRESS_NS) {
		r->progress_ns = now;
		copy_text(said ? said : "", message, sizeof(message));
		outlet_say(u->outlet,
			   json_pack("{s:s, s:I, s:f, s:o*, s:s*}", "event", "progress", "id",
				     (json_int_t)r->front_id, "progress",
				     json_number_value(json_object_get(p, "progress")), "total",
				     json_is_number(total) ? json_incref(total) : NULL, "message",
				     said ? message : NULL),
			   NULL, 0);
	}
	json_decref(p);
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
 * It wants something of us: a word of a person, of a model. There is nobody here who could be asked, and it hears so at
 * once, instead of waiting until its caller's time is over; also a modern one, which may not ask at all.
 */
static void on_request(struct upstream *u, const struct slice *id, const struct slice *method)
{
	_buf_ struct buf text = BUF_INIT(SMALL_MAX);

	if (id->len > 1024 || (u->modern && u->config->transport != BRIDGE_STDIO))
		return; /* modern HTTP has no road for it */
	(void)buf_puts(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
	(void)buf_append(&text, id->at, id->len);
	if (slice_is(method, "\"ping\""))
		(void)buf_puts(&text, ",\"result\":{}}");
	else
		(void)buf_puts(
			&text,
			",\"error\":{\"code\":-32601,\"message\":\"this client can only call tools: "
			"nobody can be asked here; take what is needed as arguments\"}}");
	if (!text.err)
		say_to(u, text.data, text.len, NULL);
}

static void one_message(struct upstream *u, char *text, size_t len)
{
	static const char *const keys[] = { "jsonrpc", "id", "method", "params", "result", "error" };
	enum { VERSION, ID, METHOD, PARAMS, RESULT, ERROR, N };
	struct slice s[N];
	struct request *r;
	uint64_t id;

	if (slice_members(text, len, keys, N, s) < 0 || !slice_is(&s[VERSION], "\"2.0\"")) {
		if (u->nonsense++ == 0)
			say(SAY_WARNING, "mcp_server_nonsense", u->config->name, text, len);
		if (u->nonsense > NONSENSE_MAX)
			upstream_fail(u, "writes nothing but nonsense");
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
		return; /* of a call that nobody waits for, or forged */
	struct wire *w = u->wire;

	if (s[RESULT].at)
		on_result(r, &s[RESULT]);
	else
		on_error(r, &s[ERROR]);
	if (u->wire == w && w)
		w->ops->abandon(w, id, true);
}

void calls_message(struct upstream *u, char *text, size_t len)
{
	size_t i;
	json_t *list, *m;

	if (text[0] != '[') {
		one_message(u, text, len);
		return;
	}
	/* Several at once, which one revision of the protocol has. */
	list = json_loadb(text, len, 0, NULL);
	json_array_foreach(list, i, m)
	{
		char *one = json_dumps(m, JSON_COMPACT | JSON_ENCODE_ANY);

		if (one && u->wire)
			one_message(u, one, strlen(one));
		free(one);
	}
	if (!list)
		one_message(u, text, len);
	json_decref(list);
}

void calls_failure(struct upstream *u, uint64_t id, const struct wire_failure *f)
{
	struct request *r = find(u, id);
	char message[400];

	if (!r)
		return;
	(void)snprintf(message, sizeof(message), "%s: the MCP server %s", u->config->name,
		       f->message);
	if (r->kind == ASK_DISCOVER || r->kind == ASK_INITIALIZE || r->kind == ASK_LISTEN) {
		talk_failure(r, f);
	} else if (f->no_session && !r->again) {
		/* It was not looked at, so it may be made again, in a session that the server knows. */
		r->again = r->kind == ASK_CALL;
		if (r->kind == ASK_CALL)
			r->id = 0;
		upstream_renew(u);
	} else if (r->kind == ASK_LIST) {
		request_free(r);
		tools_failed(u, f->too_large ? "too_large" : "unavailable", message);
	} else {
		request_fail(r, f->too_large ? "too_large" : "unavailable", message,
			     f->http == 401 || f->http == 403 ?
				     "check the headers of its entry in the configuration" :
				     NULL);
	}
}
