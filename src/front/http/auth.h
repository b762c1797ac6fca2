/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h - The caller of a request, and whether a page of another site made a browser send it.
 *
 * In this order, and before any work is done:
 *
 * Host must be localhost, a loopback address, the address of --listen (any address, if that is all
 * of them; never 0.0.0.0 itself) or one of --allow-host, with any port: a page that made its own
 * name resolve to this machine fails here (421). On the unix socket any Host is accepted. Origin,
 * when there is one, must be that of the Host, or one of --allow-origin; "null" is neither.
 * Sec-Fetch-Site, when there is one, must be same-origin, same-site or none; a request from an
 * --allow-origin, and opening an open route as a page (a link), are excepted (403). A token in the
 * URL is refused (400): logs and histories would keep it. Only the Jupyter routes take one there,
 * because browsers with Jupyter clients cannot send it otherwise.
 *
 * Then the token, as `Authorization: Bearer T` (`token T` is the same) or `X-API-Key: T` (see
 * token.h). A known token always passes. Wrong ones slow their address down (limiter.h, serve.h,
 * 429); a request without a token is 401 and not counted.
 *
 * Without a token file the owner of a request is "local" if the Linux kernel reports that the
 * caller is the user who started the daemon, or root: over TCP it is asked for the user of the
 * other end (net/sockdiag.h), once per connection. The user who called sudo is not asked for: a
 * rule of sudo may allow only this one command. With --no-token every caller is "local"; Host and
 * Origin are checked all the same. The file mode of the unix socket decides who can
 * connect to it: these callers are "local" even if there are tokens, unless they send one.
 */
#ifndef CAISSON_FRONT_AUTH_H
#define CAISSON_FRONT_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/http/token.h" /* OWNER_MAX */
#include "front/support/config.h"

struct err;
struct http_exchange;
struct peer;
struct route;
struct auth;

struct auth_verdict {
	int status; /* 0: admitted; otherwise 400, 401, 403, 421 (Host), 429, 503 */
	/* unauthorized, forbidden_origin, forbidden_host, token_in_url, rate_limited,
	 * out_of_memory */
	const char *code;
	const char *message, *hint; /* static */
	unsigned int retry_after_s; /* with 429 and 503 */
	char owner[OWNER_MAX];      /* "local", a token's name, or "anonymous" on an open route */
};

/* The input of the decision. Headers that are absent are NULL. */
struct auth_facts {
	const struct peer *peer;
	const char *method, *query; /* query: undecoded, "" when absent */
	const char *host, *origin;
	const char *fetch_site, *fetch_mode, *fetch_dest; /* Sec-Fetch-... */
	const char *authorization, *api_key;
	bool own;              /* over TCP: the user who started the daemon, or root */
	bool unanswered;       /* over TCP: the Linux kernel could not be asked, for now */
	bool open;             /* the route needs no token */
	bool url_token;        /* the route takes a token as `token` in the query: */
	const char *url_value; /* this, or NULL */
	bool proven; /* by a secret that browsers do not send by themselves: only Host is checked */
};

/* auth_load() - Before the jail. An address beyond loopback without a token is an error. */
int auth_load(const struct config *c, struct auth **ret, struct err *e);

/*
 * auth_open_tcp() - Before the jail: without tokens, prepare to ask which user calls. @listener:
 * may be -1. Return: 0, or -errno when the Linux kernel cannot tell: then no request could be
 * admitted, and the message has the remedy.
 */
int auth_open_tcp(struct auth *a, int listener, struct err *e);

/*
 * auth_check() - @r: NULL without a route. Where it needs no token (health), Host and Origin are
 * still checked. A burst of wrong tokens is logged once. reply_verdict() answers a refusal.
 */
void auth_check(struct auth *a, const struct http_exchange *x, const struct route *r,
		uint64_t now_ns, struct auth_verdict *ret);

/*
 * auth_check_port() - A request for a port of a sandbox; its query is for the service. @proven: it
 * has the token of the port, in its path or in a header. No browser sends that by itself, so its
 * sender was given it, and Origin does not matter; Host is checked, and owner is then empty.
 */
void auth_check_port(struct auth *a, const struct http_exchange *x, bool proven, uint64_t now_ns,
		     struct auth_verdict *ret);

/* auth_is_within() - Whether a text contains a token of the daemon, or may: without memory. */
bool auth_is_within(const struct auth *a, const char *text, size_t len);

/*
 * auth_check_target() - Of a request that a port has admitted: refuses (token_in_url) a token of
 * the daemon in the target for the service. Other values there are the service's, whatever the
 * parameter is called. Only for admitted requests: others could try tokens without being slowed
 * down.
 */
void auth_check_target(const struct auth *a, const char *target, struct auth_verdict *ret);

/* auth_decide() - The same over plain values. */
void auth_decide(struct auth *a, const struct auth_facts *f, uint64_t now_ns,
		 struct auth_verdict *ret);

bool auth_has_tokens(const struct auth *a);
/* auth_knows() - Whether a caller can have this owner name. */
bool auth_knows(const struct auth *a, const char *owner);
void auth_free(struct auth *a);

#endif
