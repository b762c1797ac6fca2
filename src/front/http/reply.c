/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.c - Answers in the one shape.
 *
 * The id of a request is not stored: it is a hash of a random secret, the exchange and the time it
 * began. So it costs no memory, cannot be guessed, and is the same in the answer and in the log.
 */
#include "front/http/reply.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/http/auth.h"
#include "front/http/idempotency.h"
#include "front/http/serve.h"
#include "front/support/metrics.h"
#include "front/support/refusal.h"
#include "front/support/schema.h"
#include "hash/hash.h"
#include "net/http.h"

#define ERROR_MAX (16 * 1024)

/* Whether the id of a client is used. */
static bool reply_id_valid(const char *s)
{
	size_t len = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

	return len > 0 && len < REPLY_ID_MAX && !s[len];
}

void reply_request_id(const struct http_exchange *x, char out[REPLY_ID_MAX])
{
	static struct {
		unsigned char secret[32];
		const void *exchange;
		uint64_t started_ns;
	} seed;
	static bool seeded;
	unsigned char hash[HASH_BYTES];
	const char *given = http_header(x, "x-request-id");

	if (given && reply_id_valid(given)) {
		(void)snprintf(out, REPLY_ID_MAX, "%s", given);
		return;
	}
	if (!seeded)
		(void)!getrandom(seed.secret, sizeof(seed.secret), 0);
	seeded = true;
	seed.exchange = x;
	seed.started_ns = http_started_ns(x);
	if (!hash_sha256(&seed, sizeof(seed), hash))
		memset(hash, 0, sizeof(hash)); /* the secret must not be visible */
	for (size_t i = 0; i < 8; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

void reply_headers(struct http_exchange *x)
{
	char id[REPLY_ID_MAX];

	reply_request_id(x, id);
	http_add_header(x, "X-Content-Type-Options", "nosniff");
	http_add_header(x, "Cache-Control", "no-store");
	http_add_header(x, "X-Request-Id", id);
}

/* Without memory for a body the answer has the status alone. */
static void send_json(struct http_exchange *x, int status, const struct buf *json)
{
	struct idempotency *i = context_of(x) ? idempotency_take(x) : NULL;

	if (i)
		idempotency_answer(i, status, buf_str(json), json->len);
	if (context_of(x) && context_of(x)->prelude != STREAM_NONE) {
		stream_out_last(x, status < 400 ? "done" : "refused",
				json->err ? "{}" : buf_str(json), json->err ? 2 : json->len);
		return;
	}
	reply_headers(x);
	http_reply(x, status, "application/json", buf_str(json), json->err ? 0 : json->len);
}

void reply_json(struct http_exchange *x, int status, const struct buf *json)
{
	if (json->err == -ENOMEM)
		reply_no_memory(x);
	else if (json->err)
		reply_error(x, 500, "internal", NULL, NULL, "the answer could not be written");
	else
		send_json(x, status, json);
}

void reply_written(struct http_exchange *x, int status, struct json *j)
{
	int r = json_finish(j);

	if (r < 0 && !j->out->err)
		j->out->err = r;
	reply_json(x, status, j->out);
}

struct json *reply_begin(struct reply *r, size_t max)
{
	buf_init(&r->out, max);
	json_init(&r->j, &r->out);
	return &r->j;
}

struct json *reply_object(struct reply *r, size_t max)
{
	json_object_begin(reply_begin(r, max));
	return &r->j;
}

void reply_end(struct reply *r, struct http_exchange *x, int status)
{
	if (r->j.depth > 0)
		json_object_end(&r->j);
	reply_written(x, status, &r->j);
	buf_free(&r->out);
}

void reply_no_memory(struct http_exchange *x)
{
	reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
}

void reply_empty(struct http_exchange *x, int status)
{
	reply_headers(x);
	http_reply(x, status, NULL, "", 0);
}

static void send_body(struct http_exchange *x, int status, const char *code, struct buf *body)
{
	metric_error(code);
	/* An error that is an event of a stream is part of an answer that began well. */
	if (context_of(x) && context_of(x)->prelude == STREAM_NONE)
		context_of(x)->error = code;
	send_json(x, status, body);
}

static void send_error(struct http_exchange *x, int status, const char *code, const char *message,
		       const char *field, const char *hint)
{
	_buf_ struct buf body = BUF_INIT(ERROR_MAX);

	error_json(&body, code, message, field, hint);
	send_body(x, status, code, &body);
}

void reply_error(struct http_exchange *x, int status, const char *code, const char *field,
		 const char *hint, const char *fmt, ...)
{
	char message[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	send_error(x, status, code, message, field, hint);
}

bool reply_is_ws(struct http_exchange *x, const char *hint)
{
	if (http_is_ws(x))
		return true;
	http_add_header(x, "Upgrade", "websocket");
	reply_error(x, 426, "upgrade_required", NULL, hint,
		    "the request is not a WebSocket handshake");
	return false;
}

void reply_retry(struct http_exchange *x, int status, unsigned int seconds, const char *code,
		 const char *hint, const char *fmt, ...)
{
	char message[512], after[16];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	(void)snprintf(after, sizeof(after), "%u", seconds ? seconds : 1);
	http_add_header(x, "Retry-After", after);
	send_error(x, status, code, message, NULL, hint);
}

void reply_verdict(struct http_exchange *x, const struct auth_verdict *v, const char *metadata)
{
	_buf_ struct buf challenge = BUF_INIT(4096);

	(void)buf_puts(&challenge, "Bearer realm=\"caisson\"");
	if (metadata)
		(void)buf_printf(&challenge, ", resource_metadata=\"%s\"", metadata);
	if (v->status == 401)
		http_add_header(x, "WWW-Authenticate", buf_str(&challenge));
	if (v->retry_after_s)
		reply_retry(x, v->status, v->retry_after_s, v->code, v->hint, "%s", v->message);
	else
		send_error(x, v->status, v->code, v->message, NULL, v->hint);
}

static const int statuses[REFUSAL_KINDS_] = {
	[REFUSAL_NONE] = 500, /* a refusal that nobody gave a reason for */
	[REFUSAL_MALFORMED] = 400,   [REFUSAL_INVALID] = 422,    [REFUSAL_FORBIDDEN] = 403,
	[REFUSAL_NOT_FOUND] = 404,   [REFUSAL_CONFLICT] = 409,   [REFUSAL_TOO_LARGE] = 413,
	[REFUSAL_TOO_MANY] = 429,    [REFUSAL_NO_SPACE] = 507,   [REFUSAL_CANCELLED] = 499,
	[REFUSAL_UNSUPPORTED] = 501, [REFUSAL_BAD_ANSWER] = 502, [REFUSAL_UNAVAILABLE] = 503,
	[REFUSAL_TIMEOUT] = 504,     [REFUSAL_INTERNAL] = 500,
};

void reply_refusal(struct http_exchange *x, const struct refusal *r)
{
	_buf_ struct buf body = BUF_INIT(ERROR_MAX);

	if (r->retry_after_s) {
		reply_retry(x, statuses[r->kind], r->retry_after_s, r->code, r->hint, "%s",
			    r->message);
		return;
	}
	refusal_json(r, &body);
	send_body(x, statuses[r->kind], r->code, &body);
}

void reply_schema(struct http_exchange *x, const struct schema_error *e)
{
	if (e->kind == REFUSAL_UNAVAILABLE)
		http_add_header(x, "Retry-After", "1");
	send_error(x, statuses[e->kind], e->code, e->message, e->field, e->hint);
}

#define BODY_HINT                                                                                  \
	"send less at once (files of any size: PUT /v1/sandboxes/{name}/files), or ask the "       \
	"operator for a larger --max-body"

void reply_protocol(struct http_exchange *x, int status, const char *message)
{
	static const struct {
		int status;
		const char *code;
	} codes[] = {
		{ 400, "bad_request" },        { 404, "not_found" },
		{ 405, "method_not_allowed" }, { 408, "request_timeout" },
		{ 413, "payload_too_large" },  { 414, "uri_too_long" },
		{ 417, "bad_request" },        { 426, "upgrade_required" },
		{ 431, "headers_too_large" },  { 501, "not_implemented" },
		{ 503, "unavailable" },        { 505, "bad_request" },
	};
	const char *code = status >= 500 ? "internal" : "bad_request";

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].status == status)
			code = codes[i].code;
	if (status == 413)
		reply_error(x, status, code, NULL, BODY_HINT, "%s: at most %zu bytes (--max-body)",
			    message, http_config_of(x)->body_max);
	else
		send_error(x, status, code, message, NULL, NULL);
}
