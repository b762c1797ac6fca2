/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idempotency.h - Idempotency-Key: a request that is sent again is answered again, not done again.
 *
 * The key is noted in the store before the work begins and its answer when there is one, for a day.
 * The same key for another request is an error; one whose first request still runs is told to come
 * back.
 */
#ifndef CAISSON_FRONT_IDEMPOTENCY_H
#define CAISSON_FRONT_IDEMPOTENCY_H

#include <stdbool.h>
#include <stddef.h>

struct front;
struct http_exchange;
struct idempotency;

/*
 * idempotency_begin() - At the start of a handler. Without the header it only returns true. With it
 * the request context has the key, and the next answer of the exchange is stored under it. Return:
 * false when the request was answered: from the store, or with an error.
 */
bool idempotency_begin(struct front *f, struct http_exchange *x);

/* idempotency_begin_once() - The same for what may be a stream, which has an answer of its own
 * kind: it is resumed, not repeated. */
bool idempotency_begin_once(struct front *f, struct http_exchange *x, bool stream);

/* idempotency_take() - The key of this exchange, for work that goes on without its client; NULL: it
 * has none. */
struct idempotency *idempotency_take(struct http_exchange *x);
/* idempotency_answer() - Store and free. */
void idempotency_answer(struct idempotency *i, int status, const void *body, size_t len);
/* idempotency_drop() - There was no answer: the key is free again. NULL is fine. */
void idempotency_drop(struct idempotency *i);

#endif
