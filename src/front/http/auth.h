/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h - Who is asking, and whether a browser was tricked into asking for them.
 *
 * In this order, and before any work is done:
 *
 * Host must be localhost, a loopback address, the address we listen on (any address, where we
 * listen on all of them; never 0.0.0.0 itself) or one of --allow-host, with any port: a page that
 * made its own name resolve to this machine fails here (421). On the unix socket any Host will do.
 * Origin, when there is one, must be that of the Host, or one of --allow-origin; "null" is neither.
 * Sec-Fetch-Site, when there is one, must be same-origin, same-site or none; a request from an
 * --allow-origin, and the mere opening of an open route as a page (a link), are excepted (403).
 * A token in the URL is refused (400): it would end in logs and histories. Only the Jupyter wire
 * takes one there, because its clients know no other way from a browser.
 *
 * Then the token, as `Authorization: Bearer T` (`token T` is the same) or `X-API-Key: T` (see
 * token.h). A token that is known always passes. Wrong ones slow their address down (limiter.h,
 * refuse.h, 429); a request without one is 401 and not counted.
 *
 * Without a token file callers are owner "local" when the kernel says that they are the user who
 * started the daemon, or root: over TCP it is asked who holds the other end (net/sockdiag.h), once
 * per connection. Who it was under sudo is not asked: a rule of sudo may allow this one command
 * alone. The unix socket is guarded by its file mode: who got through is "local" even when there
 * are tokens, unless they present one.
 */
#ifndef CAISSON_FRONT_AUTH_H
#define CAISSON_FRONT_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "front/http/token.h" /* OWNER_MAX */
#include "front/support/config.h"

struct err;
struct http_exchange;
struct peer;
struct route;
struct auth;

struct auth_verdict {
	int status; /* 0: welcome; else 400, 401, 403, 421 (Host), 429 */
	/* unauthorized, forbidden_origin, forbidden_host, token_in_url, rate_limited */
	const char *code;
	const char *message, *hint; /* static */
	unsigned int retry_after_s; /* with 429 */
	char owner[OWNER_MAX];      /* "local", a token's name, or "anonymous" on an open route */
};

/* What the decision is made of. Headers that are absent are NULL. */
struct auth_facts {
	const struct peer *peer;
	const char *method, *query; /* query: undecoded, "" when absent */
	const char *host, *origin;
	const char *fetch_site, *fetch_mode, *fetch_dest; /* Sec-Fetch-... */
	const char *authorization, *api_key;
	bool own;              /* over TCP: the user who started the daemon, or root */
	bool open;             /* the route needs no token */
	bool url_token;        /* ... or takes one as `token` in the query: */
	const char *url_value; /* this, or NULL */
	bool proven; /* it came with a secret that browsers do not send by themselves: only Host
			matters */
};

/* auth_load() - Before the jail. Refuses (with the fix) to listen beyond loopback without a token.
 */
int auth_load(const struct config *c, struct auth **ret, struct err *e);

/*
 * auth_open_tcp() - Before the jail: without tokens, prepare to ask who calls. @listener: -1: none.
 * Return: 0, or -errno when the kernel cannot tell. Then nobody could be served, and the message
 * says the fix.
 */
int auth_open_tcp(struct auth *a, int listener, struct err *e);

/*
 * auth_check() - @r: NULL when there is none. Where it needs no token (health), Host and Origin are
 * still checked. A burst of wrong tokens is logged once. reply_verdict() answers a refusal.
 */
void auth_check(struct auth *a, const struct http_exchange *x, const struct route *r,
		uint64_t now_ns, struct auth_verdict *ret);

/*
 * auth_check_port() - Of a request for a port of a sandbox, whose query is the service's. @proven:
 * it has brought the port's own token, in its path or in a header. Nothing sends that by itself, so
 * whoever sends it was given it, and Origin says nothing more; Host is checked even so, and owner
 * is then empty.
 */
void auth_check_port(struct auth *a, const struct http_exchange *x, bool proven, uint64_t now_ns,
		     struct auth_verdict *ret);

/* auth_is_ours() - Whether this is the value of an Authorization or X-API-Key header that opens the
 * daemon. */
bool auth_is_ours(const struct auth *a, const char *value);

/* auth_decide() - The same over plain values. */
void auth_decide(struct auth *a, const struct auth_facts *f, uint64_t now_ns,
		 struct auth_verdict *ret);

bool auth_has_tokens(const struct auth *a);
/* auth_knows() - Whether anybody can be this owner. */
bool auth_knows(const struct auth *a, const char *owner);
void auth_free(struct auth *a);

#endif
