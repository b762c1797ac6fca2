/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - Answers in the one shape: JSON results, and
 * {"error":{"code","message","field"?,"hint"?}}.
 *
 * Every answer has X-Content-Type-Options: nosniff, Cache-Control: no-store and X-Request-Id. Every
 * error that is answered here is counted by its code (metric_error()).
 */
#ifndef CAISSON_FRONT_REPLY_H
#define CAISSON_FRONT_REPLY_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"

struct auth_verdict;
struct http_exchange;
struct refusal;
struct schema_error;

/* reply_headers() - The headers above; for answers that are not made here, such as streams. */
void reply_headers(struct http_exchange *x);

void reply_json(struct http_exchange *x, int status, const struct buf *json);
/* reply_written() - The document that @j has written into its buffer; 500 if it is not whole. */
void reply_written(struct http_exchange *x, int status, struct json *j);

/* An answer that one function writes and sends. */
struct reply {
	struct buf out;
	struct json j;
};
/* reply_begin() - Of at most @max bytes. Return: its writer. The caller calls reply_end(). */
struct json *reply_begin(struct reply *r, size_t max);
/* reply_object() - The same, inside the object that the answer is. */
struct json *reply_object(struct reply *r, size_t max);
/* reply_end() - End the object of reply_object(), send the answer as reply_written(), and free it.
 */
void reply_end(struct reply *r, struct http_exchange *x, int status);

/* reply_no_memory() - 503 `out_of_memory`, with Retry-After. */
void reply_no_memory(struct http_exchange *x);

/* reply_empty() - Without content, such as 204. */
void reply_empty(struct http_exchange *x, int status);

/* reply_is_ws() - Whether the request is a WebSocket handshake. False: answered with 426. */
bool reply_is_ws(struct http_exchange *x, const char *hint);

/* reply_error() - @field and @hint may be NULL. The message is escaped; @code must not need it. */
void reply_error(struct http_exchange *x, int status, const char *code, const char *field,
		 const char *hint, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* reply_retry() - As reply_error(), with Retry-After. */
void reply_retry(struct http_exchange *x, int status, unsigned int seconds, const char *code,
		 const char *hint, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/*
 * reply_verdict() - A refusal of auth_check(), with WWW-Authenticate or Retry-After.
 * @metadata: a URL with the issuer of tokens (RFC 9728), or NULL.
 */
void reply_verdict(struct http_exchange *x, const struct auth_verdict *v, const char *metadata);

/* reply_refusal() - A refusal of the core, with the status of its kind, and Retry-After. */
void reply_refusal(struct http_exchange *x, const struct refusal *r);

/* reply_schema() - A refusal of schema_parse(). */
void reply_schema(struct http_exchange *x, const struct schema_error *e);

/* reply_protocol() - For http_config.on_error: a status of the HTTP layer in the one shape. */
void reply_protocol(struct http_exchange *x, int status, const char *message);

#define REPLY_ID_MAX 65

/*
 * reply_request_id() - The name of this request: its X-Request-Id when that is 1 to 64 characters
 * of A-Za-z0-9._-, else 16 hexadecimal digits. An exchange always has the same one, in the answer
 * and in the log.
 */
void reply_request_id(const struct http_exchange *x, char out[REPLY_ID_MAX]);

#endif
