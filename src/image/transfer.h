/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.h - One document or layer from a registry: requested, retried, resumed, checked.
 *
 * A transfer into memory is a manifest or a configuration; one into a file is a layer, and
 * continues at the end of the file. The bytes are hashed as they arrive. Several transfers run at
 * once on the registry's handle.
 *
 * Life: transfer_begin() -> transfers_step() until transfer_over() -> transfer_end().
 */
#ifndef CAISSON_IMAGE_TRANSFER_H
#define CAISSON_IMAGE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "hash/hash.h"
#include "http_client/http_call.h"
#include "image/open.h"
#include "image/registry.h"

enum transfer_state {
	TRANSFER_RUNS = 1,
	TRANSFER_WAITS, /* until at_ns, for the next try */
	TRANSFER_DONE,
};

#define TRANSFER_URL_MAX 4096

struct transfer {
	/* The request. */
	const char *kind, *what; /* "manifests" or "blobs"; tag or digest; borrowed */
	const char *digest;      /* of the content; NULL: any content */
	uint64_t size;           /* of the content; unused without digest */
	int fd;                  /* the file; -1: into body */

	enum transfer_state state;
	struct err err; /* its code is not 0: the transfer failed */
	struct buf body;
	char type[128];             /* Content-Type */
	char got[IMAGE_DIGEST_MAX]; /* the digest of the content that came */
	uint64_t have;              /* bytes so far */

	/* Inside. */
	struct registry *r;
	struct http_call http;
	struct hash sum;
	char url[TRANSFER_URL_MAX], first_url[TRANSFER_URL_MAX];
	struct challenge challenge;
	struct buf problem; /* the body of an answer that refuses */
	int status;
	uint64_t from; /* first byte of the request */
	bool resumed;  /* the file had some bytes already */
	unsigned int tries, hops, logins;
	uint64_t retry_after_ms, at_ns;
};

/* transfer_begin() - The request is filled in, the rest zero. Hashes the file's content first. */
void transfer_begin(struct transfer *t, struct registry *r);

/*
 * transfers_step() - Continue those that run, for at most @ms or until something happens.
 * @fds: other descriptors to wait for, as in curl_multi_poll()
 */
void transfers_step(struct registry *r, struct transfer **list, size_t n, struct curl_waitfd *fds,
		    unsigned int n_fds, int ms);

/* transfer_end() - Free everything; the file stays the caller's. */
void transfer_end(struct transfer *t);

bool transfer_over(const struct transfer *t);

/* transfer_wait() - A single one, to its end. 0 or t->err.code. */
int transfer_wait(struct transfer *t);

#endif
