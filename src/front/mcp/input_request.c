/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_request.c - Questions to a modern client, and the seal on the state that it carries for the
 * daemon.
 *
 * requestState is BASE64(payload) "." BASE64(mac). The payload is JSON: when it ends, and the
 * handler's state. The mac is HMAC-SHA256 over the payload, the owner, the method and the
 * parameters without those that differ between the rounds, each ended by a NUL, which none of them
 * can contain.
 */
#include "front/mcp/input_request.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "front/mcp/call.h"
#include "front/mcp/mcp.h"
#include "front/support/json_alloc.h"
#include "front/support/time_text.h"

#define STATE_MAX (64u << 10)
#define STATE_MS (15u * 60u * 1000u)
#define MAC_BYTES 32u
#define SIGNED_MAX (64u << 20)

static const char *const kinds[][2] = {
	{ "elicitation/create", "elicitation" },
	{ "sampling/createMessage", "sampling" },
	{ "roots/list", "roots" },
};

/* ---- the seal ------------------------------------------------------------------------------ */

/* An argument that is null is one that is absent, and is taken out before a handler sees it. */
static void drop_nulls(json_t *params)
{
	json_t *args = json_copy(json_object_get(params, "arguments")), *one;
	const char *key;
	void *next;

	json_object_foreach_safe(args, next, key, one) if (json_is_null(one))(void)
		json_object_del(args, key);
	if (args)
		(void)json_object_set_new(params, "arguments", args);
}

static bool sign(const struct mcp_call *c, const char *payload, size_t len,
		 unsigned char mac[MAC_BYTES])
{
	_buf_ struct buf b = BUF_INIT(SIGNED_MAX);
	json_t *params = json_copy(c->m.params);
	unsigned int n = 0;
	char *text;

	(void)json_object_del(params, "_meta");
	(void)json_object_del(params, "inputResponses");
	(void)json_object_del(params, "requestState");
	drop_nulls(params);
	text = json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(params);
	(void)buf_append(&b, payload, len);
	(void)buf_append(&b, "", 1);
	(void)buf_append(&b, c->owner, strlen(c->owner) + 1);
	(void)buf_append(&b, c->m.method, strlen(c->m.method) + 1);
	if (!text || buf_puts(&b, text) < 0) {
		json_alloc_free(text);
		return false;
	}
	json_alloc_free(text);
	return HMAC(EVP_sha256(), c->mcp->key, MCP_KEY_BYTES, (const unsigned char *)buf_str(&b),
		    b.len, mac, &n) &&
	       n == MAC_BYTES;
}

static bool put_base64(struct buf *out, const void *data, size_t len)
{
	size_t room = (len + 2) / 3 * 4 + 1;
	char *to = buf_reserve(out, room);

	if (!to || EVP_EncodeBlock((unsigned char *)to, data, (int)len) != (int)room - 1)
		return false;
	buf_commit(out, room - 1);
	return true;
}

/* @state: stolen. Appends to @out. */
static bool seal(const struct mcp_call *c, json_t *state, struct buf *out)
{
	json_int_t until = (json_int_t)time_now_ms() + (json_int_t)STATE_MS;
	json_t *payload = json_pack("{s:I,s:o}", "e", until, "s", state);
	char *text = json_dumps(payload, JSON_COMPACT);
	unsigned char mac[MAC_BYTES];
	bool ok = text && strlen(text) < STATE_MAX / 2 && sign(c, text, strlen(text), mac) &&
		  put_base64(out, text, strlen(text)) && buf_puts(out, ".") == 0 &&
		  put_base64(out, mac, sizeof(mac));

	json_alloc_free(text);
	json_decref(payload);
	return ok;
}

/* The handler's state; NULL: the seal is not valid for this request, or too old. */
static json_t *unseal(const struct mcp_call *c, const char *text)
{
	_buf_ struct buf payload = BUF_INIT(STATE_MAX), mac = BUF_INIT(MAC_BYTES);
	const char *dot = strchr(text, '.');
	unsigned char own[MAC_BYTES];
	json_t *all, *state = NULL;

	if (!dot || !base64_decode(text, (size_t)(dot - text), &payload) ||
	    !base64_decode(dot + 1, strlen(dot + 1), &mac) || mac.len != MAC_BYTES ||
	    !sign(c, buf_str(&payload), payload.len, own) ||
	    CRYPTO_memcmp(own, buf_str(&mac), MAC_BYTES) != 0)
		return NULL;
	all = json_loadb(buf_str(&payload), payload.len, 0, NULL);
	if (json_integer_value(json_object_get(all, "e")) >= (json_int_t)time_now_ms())
		state = json_incref(json_object_get(all, "s"));
	json_decref(all);
	return state;
}

/* ---- answers ------------------------------------------------------------------------------- */

bool mcp_inputs_check(struct mcp_call *c)
{
	json_t *answers = json_object_get(c->m.params, "inputResponses"), *one;
	json_t *state = json_object_get(c->m.params, "requestState");
	const char *key;

	if (c->era != MCP_MODERN)
		return true;
	if (answers && !json_is_object(answers)) {
		mcp_fail(c, MCP_INVALID_PARAMS, "params.inputResponses must be an object");
		return false;
	}
	json_object_foreach(answers, key, one)
	{
		if (json_is_object(one))
			continue;
		mcp_fail(c, MCP_INVALID_PARAMS,
			 "params.inputResponses[\"%.60s\"] must be an object", key);
		return false;
	}
	if (!state)
		return true;
	if (json_is_string(state))
		c->state = unseal(c, json_string_value(state));
	if (c->state)
		return true;
	mcp_fail(c, MCP_INVALID_PARAMS,
		 "params.requestState is not the one of this request, or too old: "
		 "begin again without it");
	return false;
}

const json_t *mcp_input(const struct mcp_call *c, const char *key)
{
	if (c->era != MCP_MODERN)
		return NULL;
	return json_object_get(json_object_get(c->m.params, "inputResponses"), key);
}

/* ---- questions ----------------------------------------------------------------------------- */

/* The capability that a client needs to answer this. */
static const char *needs(const json_t *request)
{
	const char *method = json_string_value(json_object_get(request, "method"));

	for (size_t i = 0; method && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kinds[i][0], method) == 0)
			return kinds[i][1];
	return "";
}

static const char *leave_out(const struct mcp_call *c, json_t *requests)
{
	const char *key, *missing = NULL;
	json_t *one;
	void *next;

	json_object_foreach_safe(requests, next, key, one)
	{
		if (mcp_capable(c, needs(one), NULL))
			continue;
		missing = needs(one);
		(void)json_object_del(requests, key);
	}
	return missing;
}

bool mcp_inputs_json(struct mcp_call *c, json_t *requests, json_t *state, struct buf *out)
{
	_buf_ struct buf sealed = BUF_INIT(STATE_MAX);
	bool carries = state != NULL;
	struct mcp_answer a;
	bool ok = !carries || seal(c, state, &sealed);

	mcp_answer_begin_as(c, &a, "input_required");
	json_member_value(&a.j, "inputRequests", requests);
	if (carries)
		json_member_str(&a.j, "requestState", buf_str(&sealed));
	json_decref(requests);
	ok = ok && mcp_answer_close(c, &a) == 0 && buf_append(out, buf_str(&a.buf), a.buf.len) == 0;
	buf_free(&a.buf);
	return ok;
}

void mcp_inputs_ask(struct mcp_call *c, json_t *requests, json_t *state)
{
	_buf_ struct buf b = BUF_INIT(MCP_ANSWER_MAX);
	const char *missing = leave_out(c, requests);

	if (c->era != MCP_MODERN || json_object_size(requests) == 0) {
		json_decref(requests);
		json_decref(state);
		if (c->era == MCP_MODERN && missing)
			mcp_fail_capability(c, missing, NULL);
		else
			mcp_fail(c, MCP_INVALID_REQUEST,
				 "this asks the client back, in the way of version %s",
				 MCP_MODERN_VERSION);
		return;
	}
	if (mcp_inputs_json(c, requests, state, &b))
		mcp_answer_text(c, &b);
	else
		mcp_fail(c, MCP_INTERNAL, "the state of the request could not be sealed");
}
