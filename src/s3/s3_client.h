/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3_client.h - Requests to an S3-compatible server: signed, several at a time, repeated when that
 * makes sense.
 *
 * Blocking: for a process that has nothing else to do. A request that fails on the way (no
 * connection, time, 5xx, 429) is tried again with growing pauses; a download goes on where it
 * stopped, of the same version of the object. To cancel, close the other end of cancel_fd.
 */
#ifndef CAISSON_S3_S3_CLIENT_H
#define CAISSON_S3_S3_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "http_client/http_call.h"
#include "s3/sign.h"
#include "s3/site.h"
#include "s3/xml.h"

struct err;

#define S3_TRIES 6u /* pauses of 0.2, 0.4, 0.8, 1.6 and 3.2 s between them */
#define S3_TEXT_MAX (8u << 20)

struct s3_client {
	struct s3_site site;
	struct s3_creds creds;
	const struct buf *ca; /* PEM of authorities for the server; NULL: the machine's */
	unsigned int tries;   /* 0: S3_TRIES */
	int cancel_fd;        /* write end of a pipe; -1: none */
	CURLM *multi;         /* s3_client_open() */
};

/* s3_client_open() - The rest is filled by the caller. */
int s3_client_open(struct s3_client *c, struct err *e);

struct s3_call {
	/* The asker's. */
	const char *method, *bucket;
	const char *key;   /* whole; NULL: the bucket itself */
	const char *query; /* canonical; NULL: none */
	struct s3_header headers[6];
	size_t n_headers;
	const void *body;
	size_t len;
	/* Takes the content of an answer 2xx; not 0: stop, that is the result. NULL: it is kept in
	 * text. */
	int (*sink)(void *arg, const char *data, size_t len);
	void *arg;

	/* The answer. */
	int status;
	char etag[S3_ETAG_MAX];
	uint64_t size;                  /* of the whole object, by Content-Length */
	struct buf text;                /* at most S3_TEXT_MAX; of errors too */
	char region[S3_REGION_MAX + 1]; /* the bucket's, when the server names it */

	/* While it runs. */
	struct s3_client *client;
	struct http_call http;
	uint64_t got, skip; /* bytes handed on; bytes that came again */
	unsigned int tried;
	uint64_t again_ns; /* when to try again; 0: not waiting */
	int stopped;       /* the result of the sink */
	CURLcode code;
	bool over;
};

/*
 * s3_run() - All of them at once. Return: 0 when each has a final answer, whatever its status;
 * otherwise a negative errno with a message: -ECANCELED, the result of a sink, -ETIMEDOUT or
 * -EHOSTUNREACH when tries were used up.
 */
int s3_run(struct s3_client *c, struct s3_call **calls, size_t n, struct err *e);
void s3_call_free(struct s3_call *call);
#define _s3_call_ __attribute__((cleanup(s3_call_free)))

/*
 * s3_check() - 0 for 2xx. Otherwise a negative errno and a message for people, without secrets:
 * -ENOENT, -EACCES, -ESTALE (412: it is another version now), -EOPNOTSUPP (501), -EIO.
 */
int s3_check(const struct s3_call *call, struct err *e);

#endif
