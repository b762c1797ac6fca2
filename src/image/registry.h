/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.h - One repository of one registry: where it is, and what it is shown to let us read.
 *
 * Credentials go to the registry itself when it asks for them (Basic), or to the place that it
 * names for tokens (Bearer), and to nobody else: not to where it redirects. Plain HTTP is tried
 * only with a registry on this machine, or when the caller allows it, and only when it does not
 * speak TLS.
 */
#ifndef CAISSON_IMAGE_REGISTRY_H
#define CAISSON_IMAGE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "http_client/call.h"
#include "image/challenge.h"
#include "image/creds.h"
#include "image/ref.h"

struct err;

struct registry_options {
	bool insecure;        /* plain HTTP and any certificate */
	const char *ca_file;  /* NULL: the system's */
	const char *authfile; /* NULL: see creds.h */
};

struct registry {
	struct ref ref;
	struct registry_options options;
	bool http_ok, plain;  /* may it, does it speak plain HTTP */
	bool answered;        /* something came back: what it speaks is known */
	unsigned int answers; /* to requests of transfers, counted */
	struct creds creds;
	char *auth; /* the header to show, "Authorization: ..."; NULL: none yet */
	CURLM *multi;
};

int registry_open(struct registry *r, const struct ref *ref, const struct registry_options *o,
		  struct err *e);
void registry_close(struct registry *r);

/* registry_url() - "https://HOST/v2/NAME/KIND/WHAT". @kind: "manifests" or "blobs". 0 or
 * -ENAMETOOLONG. */
int registry_url(const struct registry *r, const char *kind, const char *what, char *url,
		 size_t size);

/* registry_url_ok() - Whether it may be asked for: https, or http where allowed. For redirects. */
bool registry_url_ok(const struct registry *r, const char *url);

/* registry_begin() - A request for @url, as all to this registry are. */
void registry_begin(const struct registry *r, struct http_call *q, const char *url);

/* registry_authorize() - The registry said this; get what it wants. 0, -EACCES when there is
 * nothing to show. */
int registry_authorize(struct registry *r, const struct challenge *c, struct err *e);

#endif
