/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.h - HTTP requests on the loop, by libcurl.
 *
 * The functions of a request are called from the loop and never from inside libcurl, so that
 * everything may be done in them, also fetch_stop(). Redirects are not followed: the headers may
 * hold credentials that are for one server.
 */
#ifndef CAISSON_BRIDGE_FETCH_H
#define CAISSON_BRIDGE_FETCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "http_client/http_call.h"
#include "net/loop.h"

struct err;

struct fetcher {
	struct loop *loop;
	CURLM *multi;
	struct timer timer;
	unsigned int live;          /* requests that were begun and are not freed */
	void (*on_none)(void *arg); /* the last one was freed */
	void *arg;
};

struct fetch {
	struct fetcher *all;
	struct http_call http; /* headers are added to it */
	struct buf out;        /* what is sent */
	struct buf in;         /* what came and was not handed on yet */
	int status;            /* of the final answer; 0 before it */
	char type[64];         /* Content-Type, in lower case, without parameters */
	char session[300];     /* Mcp-Session-Id; "": none */
	bool begun, head_told, ended, paused, stopped;
	CURLcode code;
	struct deferred pump;
	/* Each may be NULL; without on_end it frees itself at its end. */
	void (*on_head)(struct fetch *f);
	void (*on_data)(struct fetch *f, const char *data, size_t len);
	/* @error: NULL when the answer came whole. It is to be stopped then, too. */
	void (*on_end)(struct fetch *f, const char *error);
	void *arg;
};

int fetcher_init(struct fetcher *all, struct loop *loop, struct err *e);
void fetcher_free(struct fetcher *all);

/*
 * fetch_new() - A request that is not started. @method: POST, GET or DELETE.
 * Then http_call_header() for each header, fill functions and arg, fetch_go().
 */
struct fetch *fetch_new(struct fetcher *all, const char *method, const char *url);
/* fetch_go() - @body: copied; NULL for GET. 0 or -ENOMEM; on failure it is freed. */
int fetch_go(struct fetch *f, const char *body, size_t len);
/* fetch_stop() - No function is called any more; frees it. */
void fetch_stop(struct fetch *f);

#endif
