/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - The life of one request and its response, apart from their bytes.
 *
 * It begins with a parsed head, or with an error that has to be answered, and ends in one of two
 * ways: the response is handed over (exchange_finish) or the client is gone (exchange_gone). In
 * both on_done is its last callback. One block of memory holds the struct, the headers and their
 * text.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/exchange.h"

struct http_exchange *exchange_new(struct http_conn *h, size_t n_headers, size_t text_len,
				   char **ret_text)
{
	size_t headers_len = n_headers * sizeof(struct http_header);
	struct http_exchange *x = malloc(sizeof(*x) + headers_len + text_len);

	if (!x)
		return NULL;
	*x = (struct http_exchange){
		.h = h,
		.req = { .method = "",
			 .target = "",
			 .path = "",
			 .query = "",
			 .host = "",
			 .body = "" },
		.extra = BUF_INIT(64 * 1024),
		.started_ns = h->begun_ns,
		.body_done = true,
	};
	x->req.headers = (struct http_header *)(x + 1);
	*ret_text = (char *)(x + 1) + headers_len;
	return x;
}

void exchange_free(struct http_exchange *x)
{
	timer_cancel(&x->alive);
	/* A handler that answers in on_head may still read the status. */
	if (x->h->in_head) {
		x->h->spent = x;
		return;
	}
	buf_free(&x->body);
	buf_free(&x->extra);
	free(x->rest_copy);
	free(x);
}

void exchange_gone(struct http_exchange *x)
{
	struct http_conn *h = x->h;

	x->gone = true;
	timer_cancel(&x->alive);
	h->x = NULL;
	if (x->on_gone)
		x->on_gone(x);
	h->config->on_done(x);
	exchange_free(x);
}

void exchange_finish(struct http_exchange *x)
{
	struct http_conn *h = x->h;
	bool keep = x->keep && x->body_done && !x->failed;

	h->x = NULL;
	h->config->on_done(x);
	exchange_free(x);
	if (h->state == HTTP_STATE_CLOSING)
		return;
	if (!keep) {
		http_finish(h);
		return;
	}
	h->state = HTTP_STATE_IDLE;
	if (h->advancing)
		return;
	if (http_input_len(h) > 0)
		loop_defer(conn_loop(h->conn), &h->again);
	else
		http_settle(h);
}

void http_fail(struct http_conn *h, int status, const char *message)
{
	struct http_exchange *x = h->x;
	char *text;

	h->state = HTTP_STATE_HANDLING;
	http_deadline(h, 0);
	if (!x)
		x = h->x = exchange_new(h, 0, 0, &text);
	if (!x) {
		http_drop(h, -ENOMEM);
		return;
	}
	/* Once an answer has begun no more of the request is parsed. */
	assert(x->status == 0);
	x->failed = true;
	/* A handler that has begun to read a body learns that it breaks off. */
	if (x->on_body && x->on_gone) {
		void (*on_gone)(struct http_exchange * x) = x->on_gone;

		x->on_gone = NULL;
		on_gone(x);
	}
	h->config->on_error(x, status, message);
	if (h->x == x && x->status == 0)
		http_reply(x, status, "text/plain; charset=utf-8", message, strlen(message));
}

int http_status(const struct http_exchange *x)
{
	return x->bytes_out > 0 ? x->status : 0;
}

uint64_t http_bytes_out(const struct http_exchange *x)
{
	return x->bytes_out;
}

uint64_t http_started_ns(const struct http_exchange *x)
{
	return x->started_ns;
}

struct conn *http_conn(const struct http_exchange *x)
{
	return x->h->conn;
}

const struct http_config *http_config_of(const struct http_exchange *x)
{
	return x->h->config;
}

void http_set_user(struct http_exchange *x, void *user, void (*on_gone)(struct http_exchange *x))
{
	x->user = user;
	x->on_gone = on_gone;
}

void *http_user(const struct http_exchange *x)
{
	return x->user;
}
