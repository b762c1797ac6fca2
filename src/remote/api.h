/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - One daemon, and requests to it.
 *
 * HTTP by libcurl, over the daemon's unix socket or to a URL. Calls are made one after another on a
 * connection that is kept. Redirects are not followed, a token is sent nowhere else than to the
 * daemon that was named.
 */
#ifndef CAISSON_REMOTE_API_H
#define CAISSON_REMOTE_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "http_client/call.h"
#include "remote/problem.h"
#include "remote/url.h"

struct remote_options;

#define API_BODY_MAX (256u << 20) /* of an answer that is kept in memory */
#define API_TIMEOUT_MS 60000u     /* of a call that should be quick */
#define API_ENDLESS UINT64_MAX    /* a stream: as long as it takes */

struct api {
	struct http_call http;
	CURLM *multi;
	struct url url;      /* base "http://localhost" for a socket */
	char socket[108];    /* empty: url */
	char *token;         /* owned, wiped at the end; NULL: none */
	const char *ca_file; /* borrowed */
	char where[600];     /* for messages */
};

struct api_call {
	const char *method;
	const char *path; /* from the root, encoded, with its query */
	json_t *json;     /* body; borrowed */
	const char *accept;
	const char *header; /* of the answer, to be kept */
	/* A body that is read while it is sent: bytes, 0 at the end, negative to give up. */
	int64_t (*source)(void *arg, char *data, size_t size);
	int64_t source_size; /* -1: not known */
	/* Takes the body of a good answer, as it comes; anything but 0 gives up. NULL: it is kept.
	 */
	int (*sink)(void *arg, const char *data, size_t len);
	void *arg;           /* for all three */
	uint64_t timeout_ms; /* 0: API_TIMEOUT_MS */
	/* A further descriptor to watch while waiting, when on_watch is set: called when it can be
	 * read; anything but 0 gives up. */
	int watch_fd;
	int (*on_watch)(void *arg);
};

struct api_answer {
	unsigned int status;
	struct buf body;
	char header[128]; /* the one that was asked for; empty: it is not there */
	bool gave_up;     /* source, sink or on_watch did */
};

/* api_open() - Nothing is sent yet. Prints nothing. 0 or -1 with @p; api_close() in every case. */
int api_open(struct api *a, const struct remote_options *o, struct problem *p);
void api_close(struct api *a);

/* api_again() - The same daemon on another connection: for a call while another one runs. */
int api_again(struct api *a, const struct api *other, struct problem *p);

/*
 * api_call() - One request. @ret must be freed with api_answer_free() in every case; it may be
 * reused. Return: 0 for a good answer (2xx); -1 with @p for every other, and when there was none.
 */
int api_call(struct api *a, const struct api_call *c, struct api_answer *ret, struct problem *p);
void api_answer_free(struct api_answer *x);

/* api_json() - A call that answers with JSON. The object, or NULL with @p. */
json_t *api_json(struct api *a, const char *method, const char *path, json_t *body,
		 struct problem *p);

/* api_begin() - A request that is set up for this daemon: address, certificates; no token. */
void api_begin(const struct api *a, struct http_call *q, const char *method, const char *path);

/* api_explain() - Why the daemon could not be spoken with. Return: -1. */
int api_explain(const struct api *a, CURLcode code, const struct http_call *q, struct problem *p);

#endif
