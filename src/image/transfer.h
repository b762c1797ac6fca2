/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.h - One thing from a registry: asked for, tried again, resumed, checked.
 *
 * A transfer into memory is a manifest or a configuration; one into a file is a layer, and goes on
 * where the file ends. What arrives is hashed on the way. Several run at once on the registry's
 * handle.
 *
 * Life: transfer_begin() -> transfers_step() until it is over (state) -> transfer_end().
 */
#ifndef CAISSON_IMAGE_TRANSFER_H
#define CAISSON_IMAGE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "http_client/call.h"
#include "image/challenge.h"
#include "image/open.h"

struct digest;
struct registry;

enum transfer_state {
	TRANSFER_IDLE,
	TRANSFER_RUNS,
	TRANSFER_WAITS, /* until `at`, to be tried again */
	TRANSFER_DONE,
	TRANSFER_FAILED, /* err says why */
};

#define TRANSFER_URL_MAX 4096

struct transfer {
	/* What is asked for. */
	const char *kind, *what; /* "manifests" or "blobs"; tag or digest; borrowed */
	const char *digest;      /* what it must be; NULL: whatever it is */
	uint64_t size;           /* what it must have; not looked at without digest */
	int fd;                  /* the file; -1: into body */

	enum transfer_state state;
	struct err err;
	struct buf body;
	char type[128];             /* Content-Type */
	char got[IMAGE_DIGEST_MAX]; /* the digest of what came */
	uint64_t have;              /* bytes that are there */

	/* Inside. */
	struct registry *r;
	struct http_call http;
	struct digest *sum;
	char url[TRANSFER_URL_MAX], first_url[TRANSFER_URL_MAX];
	struct challenge challenge;
	struct buf problem; /* what a registry says when it refuses */
	int status;
	uint64_t from; /* first byte that was asked for */
	bool resumed;  /* something of it was in the file */
	unsigned int tries, hops, logins;
	uint64_t retry_after_ms, at_ns;
};

/* transfer_begin() - The request is filled in, the rest is zero. What is in the file is hashed
 * first. */
void transfer_begin(struct transfer *t, struct registry *r);

/*
 * transfers_step() - Let those that run go on, for at most @ms or until something happens.
 * @fds: others to wait for, as curl_multi_poll() has them
 */
void transfers_step(struct registry *r, struct transfer **list, size_t n, struct curl_waitfd *fds,
		    unsigned int n_fds, int ms);

/* transfer_end() - Free everything; the file stays the caller's. */
void transfer_end(struct transfer *t);

bool transfer_over(const struct transfer *t);

/* transfer_wait() - A single one, to its end. 0 or t->err.code. */
int transfer_wait(struct transfer *t);

#endif
