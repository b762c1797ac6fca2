/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.h - The client of wire/image_fetch.h: one image of one registry, loaded by a process that
 * can do nothing else.
 *
 * Life: fetch_start() -> fetch_image() -> fetch_layer() for each layer that is wanted, fetch_hear()
 * until all of them are there -> fetch_end(). The process ends with any failure.
 */
#ifndef CAISSON_IMAGE_FETCH_H
#define CAISSON_IMAGE_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "wire/image_fetch.h"

struct creds;
struct err;
struct incoming;
struct ref;

struct fetch {
	int sock; /* readable: fetch_hear() */
	int manifest, config;
	pid_t pid;
};

#define FETCH_NONE                                                                                 \
	{                                                                                          \
		-1, -1, -1, 0                                                                      \
	}

/* fetch_start() - @ca: a file of certificates, or NULL. @insecure: see registry.h. */
int fetch_start(struct fetch *f, const char *ca, bool insecure, struct err *e);

/*
 * fetch_image() - Ask for @ref, and wait for its documents: fills manifest, config, m and the
 * layers of c in @in, and the digest of its result. The manifest has the digest of @ref, if @ref
 * has one, or is named by an index that has it.
 */
int fetch_image(struct fetch *f, const struct ref *ref, const struct creds *creds,
		struct incoming *in, struct err *e);

/* fetch_layer() - Load layer @i into @file, which stays the caller's. */
int fetch_layer(struct fetch *f, size_t i, int file, struct err *e);

/* fetch_hear() - Wait for the next reply, which is MOVED or LOADED. -errno: it failed; @ret->layer
 * is then the one that it was about, or none. */
int fetch_hear(struct fetch *f, struct image_fetch_reply *ret, struct err *e);

/* fetch_end() - End it, whatever it does. Idempotent. */
void fetch_end(struct fetch *f);

#endif
