/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency.c - Keys of requests, and the answers that belong to them. */
#include "front/http/idempotency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "front/http/reply.h"
#include "front/http/route.h"
#include "front/http/serve.h"
#include "front/support/daemon.h"
#include "front/support/log.h"
#include "front/support/time_text.h"
#include "hash/hash.h"
#include "net/http.h"
#include "store/store.h"

struct idempotency {
	struct store *store;
	char owner[OWNER_MAX];
	char key[STORE_KEY_MAX + 1];
	char route[STORE_ROUTE_MAX + 1]; /* method and path as sent */
	unsigned char hash[STORE_HASH_LEN];
};

/* Visible ASCII, as in the draft of the header, with or without quotes. */
static bool key_valid(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (s[i] < 0x21 || s[i] > 0x7e)
			return false;
	return n > 0 && n <= STORE_KEY_MAX;
}

static int put(const struct idempotency *i, int status, const void *body, size_t len, struct err *e)
{
	struct store_key k = { .owner = i->owner,
			       .key = i->key,
			       .route = i->route,
			       .status = status,
			       .body = body,
			       .body_len = len,
			       .created_at = (int64_t)time_now_ms() };

	memcpy(k.hash, i->hash, sizeof(k.hash));
	return store_key_put(i->store, &k, e);
}

/* ---- the answer ---------------------------------------------------------------------------- */

void idempotency_drop(struct idempotency *i)
{
	struct err e = { 0 };

	if (i && store_key_del(i->store, i->owner, i->key, i->route, &e) < 0)
		log_event(LOG_LEVEL_ERROR, "idempotency", F_STR("why", e.msg));
	free(i);
}

/* An error that may not occur next time is not kept. */
void idempotency_answer(struct idempotency *i, int status, const void *body, size_t len)
{
	struct err e = { 0 };

	if (status == 429 || status >= 500 || len > STORE_BODY_MAX) {
		idempotency_drop(i);
		return;
	}
	if (put(i, status, body, len, &e) < 0)
		log_event(LOG_LEVEL_ERROR, "idempotency", F_STR("why", e.msg));
	free(i);
}

struct idempotency *idempotency_take(struct http_exchange *x)
{
	struct request_context *v = context_of(x);
	struct idempotency *i = v->idempotency;

	v->idempotency = NULL;
	return i;
}

/* ---- the request --------------------------------------------------------------------------- */

struct found {
	struct http_exchange *x;
	const struct idempotency *i;
};

static void on_found(const struct store_key *k, void *arg)
{
	const struct found *f = arg;

	if (memcmp(k->hash, f->i->hash, sizeof(k->hash)) != 0) {
		reply_error(f->x, 422, "key_reused", "Idempotency-Key",
			    "a new key for each new request",
			    "this key was used for another request");
	} else if (k->status == 0) {
		reply_retry(f->x, 409, 1, "in_progress", NULL,
			    "the first request with this key is not answered yet");
	} else {
		_buf_ struct buf b = BUF_INIT(STORE_BODY_MAX + 1);

		(void)buf_append(&b, k->body, k->body_len);
		http_add_header(f->x, "Idempotency-Replayed", "true");
		reply_json(f->x, k->status, &b);
	}
}

static struct idempotency *idempotency_new(struct http_exchange *x, const char *key)
{
	const struct http_request *q = http_request(x);
	struct idempotency *i = calloc(1, sizeof(*i));

	if (!i || !hash_sha256(q->body, q->body_len, i->hash)) {
		free(i);
		return NULL;
	}
	i->store = context_of(x)->server->daemon->store;
	memcpy(i->owner, context_of(x)->owner, sizeof(i->owner));
	(void)snprintf(i->key, sizeof(i->key), "%s", key);
	(void)snprintf(i->route, sizeof(i->route), "%s %.*s", q->method, STORE_ROUTE_MAX - 16,
		       q->path);
	return i;
}

bool idempotency_begin(struct http_exchange *x)
{
	const char *key = http_header(x, "idempotency-key");
	struct err e = { 0 };

	if (!key)
		return true;
	if (!key_valid(key)) {
		reply_error(x, 400, "invalid_value", "Idempotency-Key",
			    "1 to 255 visible ASCII characters", "invalid key");
		return false;
	}
	struct idempotency *i = idempotency_new(x, key);

	if (!i) {
		reply_no_memory(x);
		return false;
	}
	struct found found = { x, i };
	int r = store_key_get(i->store, i->owner, i->key, i->route, (int64_t)time_now_ms(),
			      on_found, &found, &e);

	if (r == 0)
		r = put(i, 0, NULL, 0, &e);
	if (r != 0) {
		if (r < 0)
			reply_retry(x, 503, 5, "not_recorded", NULL,
				    "the key cannot be written, so nothing runs: %s", e.msg);
		free(i);
		return false;
	}
	context_of(x)->idempotency = i;
	return true;
}
