/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refuse.c - Answer a request that was not admitted.
 *
 * Theory of operation: a right token is always let in, so guessing cannot be stopped, only be made
 * slow: the answer to a guess waits. What waits is bounded by the connections, each of which has
 * one request at a time; a client that goes away takes its answer along.
 */
#include "front/http/refuse.h"

#include <stdlib.h>

#include "base/clock.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/support/front.h"
#include "front/support/metrics.h"
#include "net/http.h"

#define WAIT_NS CLOCK_NS_PER_S

struct waiting {
	struct timer timer;
	struct http_exchange *x;
	struct auth_verdict verdict;
};

static void on_gone(struct request_context *v)
{
	struct waiting *w = v->work;

	timer_cancel(&w->timer);
	free(w);
}

static void on_time(struct timer *t)
{
	struct waiting *w = t->arg;
	struct http_exchange *x = w->x;
	const struct auth_verdict verdict = w->verdict;

	context_of(x)->gone = NULL;
	free(w);
	reply_verdict(x, &verdict, NULL);
}

static void no_body(struct http_exchange *x, const char *data, size_t len)
{
	(void)x;
	(void)data;
	(void)len;
}

void refuse(struct http_exchange *x, struct request_context *v, const struct auth_verdict *verdict,
	    const char *metadata)
{
	bool guess = verdict->status == 429;
	struct waiting *w = guess ? malloc(sizeof(*w)) : NULL;

	metric_add(M_AUTH_FAILURES, guess || verdict->status == 401 ? 1 : 0);
	if (!w) {
		reply_verdict(x, verdict, metadata);
		return;
	}
	*w = (struct waiting){ { .fn = on_time, .arg = w }, x, *verdict };
	v->refused = true;
	v->work = w;
	v->gone = on_gone;
	http_take_body(x, no_body);
	http_pause_body(x, true);
	timer_set(&v->f->loop, &w->timer, clock_now_ns() + WAIT_NS);
}
