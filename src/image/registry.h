/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.h - One repository of one registry: its address, and the credentials for it.
 *
 * Credentials are sent to the registry itself when it asks for them (Basic), or to the server that
 * it names for tokens (Bearer), and to no other: not to a server that it redirects to. Plain HTTP
 * is tried only with a registry on this machine, or when the caller allows it, and only when the
 * registry does not speak TLS.
 *
 * Servers that a registry names, for tokens or for content, are at public addresses, or at
 * addresses of the registry's own kind: a registry on the internet leads nobody into the network of
 * this machine, and one on this machine leads nobody into the network beside it. Behind a proxy of
 * the operator the proxy connects, and its rules count.
 */
#ifndef CAISSON_IMAGE_REGISTRY_H
#define CAISSON_IMAGE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "http_client/http_call.h"
#include "image/ref.h"
#include "image/registry_creds.h"

struct err;

/* The header WWW-Authenticate: the credentials that a registry requires. */
enum challenge_scheme { CHALLENGE_NONE, CHALLENGE_BASIC, CHALLENGE_BEARER };

struct challenge {
	enum challenge_scheme scheme;
	/* Of Bearer: where to request a token, and for what. Printable; "": not given. */
	char realm[1024], service[256], scope[512];
};

/*
 * challenge_parse() - Add one header's value; several add up, and Bearer is preferred. A parameter
 * that is too long or invalid counts as not given.
 */
void challenge_parse(struct challenge *c, const char *value);

struct buf;

struct registry_options {
	bool insecure;        /* plain HTTP and any certificate */
	const struct buf *ca; /* PEM; NULL: the system's */
};

struct registry {
	struct ref ref;
	struct registry_options options;
	bool http_ok, plain;  /* plain HTTP is allowed; is used */
	bool answered;        /* an answer came, so plain is settled */
	unsigned int answers; /* to requests of transfers, counted */
	const char *kind;     /* of its own address, as in "a private address"; NULL: public */
	const char *barred; /* of an address that a request was not sent to; NULL: there was none */
	struct creds creds;
	char *auth; /* the header "Authorization: ..."; NULL: not needed so far */
	CURLM *multi;
};

/* registry_open() - @creds: copied. 0 or -ENOMEM. */
int registry_open(struct registry *r, const struct ref *ref, const struct creds *creds,
		  const struct registry_options *o, struct err *e);
void registry_close(struct registry *r);

/* registry_url() - "https://HOST/v2/NAME/KIND/WHAT", @kind: "manifests" or "blobs". 0 or -errno. */
int registry_url(const struct registry *r, const char *kind, const char *what, char *url,
		 size_t size);

/* registry_url_ok() - Whether a request may go there: https, or http where allowed. */
bool registry_url_ok(const struct registry *r, const char *url);

/* registry_begin() - A request for @url, with the options of all requests to this registry. */
void registry_begin(struct registry *r, struct http_call *q, const char *url);

/* registry_authorize() - Get credentials for a challenge into r->auth. 0, or -EACCES: none. */
int registry_authorize(struct registry *r, const struct challenge *c, struct err *e);

#endif
