/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idempotency.h - Idempotency-Key: a request that is sent again is answered again, not done again.
 *
 * The store keeps the key from before the work begins, and its answer when there is one, for a day.
 * The same key for another request is an error. While the first request runs the answer to the
 * second is 409, with Retry-After.
 */
#ifndef CAISSON_FRONT_IDEMPOTENCY_H
#define CAISSON_FRONT_IDEMPOTENCY_H

#include <stdbool.h>
#include <stddef.h>

struct http_exchange;
struct idempotency;

/*
 * idempotency_begin() - At the start of a handler. Without the header it only returns true. With it
 * the request context has the key, and the next answer of the exchange is stored under it. Return:
 * false when the request was answered: from the store, or with an error.
 */
bool idempotency_begin(struct http_exchange *x);

/* idempotency_take() - The key of this exchange, for work that goes on without its client; NULL: it
 * has none. */
struct idempotency *idempotency_take(struct http_exchange *x);
/* idempotency_answer() - Store the answer, and free @i. */
void idempotency_answer(struct idempotency *i, int status, const void *body, size_t len);
/* idempotency_drop() - There was no answer: the key can be used again. @i: may be NULL. */
void idempotency_drop(struct idempotency *i);

#endif
