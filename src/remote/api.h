/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - One daemon, and requests to it.
 *
 * HTTP by libcurl, over the daemon's unix socket or to a URL. Calls are made one after another on a
 * connection that is kept. Redirects are not followed: a token is sent only to the daemon that was
 * named.
 */
#ifndef CAISSON_REMOTE_API_H
#define CAISSON_REMOTE_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "http_client/http_call.h"
#include "remote/problem.h"
#include "remote/url.h"

struct err;
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
	char where[600];     /* "on PATH" or "at URL", for messages */
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
	/* Takes the body of a good answer, as it comes; anything but 0 gives up. NULL: kept. */
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
#define _answer_ __attribute__((cleanup(api_answer_free)))

/*
 * api_json() - A call that answers with a JSON object, or with 204 and nothing: a new object, which
 * is empty for 204; or NULL with @p. @body: the reference is taken; may be NULL.
 */
json_t *api_json(struct api *a, const char *method, const char *path, json_t *body,
		 struct problem *p);
/* api_json_ms() - The same with a time limit of its own. */
json_t *api_json_ms(struct api *a, const char *method, const char *path, json_t *body,
		    uint64_t timeout_ms, struct problem *p);
/* api_sandbox() - api_json() of /v1/sandboxes/@name@rest. */
json_t *api_sandbox(struct api *a, const char *method, const char *name, const char *rest,
		    json_t *body, struct problem *p);

/* api_begin() - A request that is set up for this daemon: address, certificates; no token. */
void api_begin(const struct api *a, struct http_call *q, const char *method, const char *path);

/* api_explain() - Why the daemon could not be reached, or did not answer. Return: -1. */
int api_explain(const struct api *a, CURLcode code, const struct http_call *q, struct problem *p);

/* ---- for tests ----------------------------------------------------------------------------- */

/* api_socket() - --socket, or caisson.sock in the state directory. 0, -EINVAL or -ENAMETOOLONG. */
int api_socket(const struct remote_options *o, char *path, size_t size, struct err *e);

/*
 * api_token() - From --token-file, else from CAISSON_TOKEN. A file may have the form of the
 * daemon's own (NAME:TOKEN); its first line counts. Other users must not be able to read it.
 * @ret: NULL without a token; end it with api_wipe().
 */
int api_token(const struct remote_options *o, char **ret, struct err *e);
void api_wipe(char *token); /* NULL is fine */

#endif
