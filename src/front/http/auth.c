/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.c - The decision over one request; the rules are in auth.h.
 *
 * Every rule is a function that either leaves the verdict alone or refuses; the first refusal
 * stands. The texts are static and hold nothing of the request, so that a refusal reflects nothing.
 */
#include "front/http/auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/http/limiter.h"
#include "front/http/request.h"
#include "front/http/route.h"
#include "front/support/log.h"
#include "front/support/origin.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/sockdiag.h"

#define HOSTS_OWN 4 /* three names of loopback, and the address we listen on */

struct auth {
	struct token_set tokens;
	struct limiter limiter;
	struct origin hosts[HOSTS_OWN + CONFIG_LIST_MAX];
	size_t n_hosts;
	struct origin origins[CONFIG_LIST_MAX];
	size_t n_origins;
	bool any_address; /* we listen on all addresses: every literal one may be ours */
	uid_t starter;
	bool everyone;       /* no caller needs a token */
	struct sockdiag who; /* without tokens: asks the Linux kernel who called over TCP */
};

/* ---- load ---------------------------------------------------------------------------------- */

static int add_host(struct auth *a, const char *text, struct err *e)
{
	if (!origin_parse_host(text, &a->hosts[a->n_hosts]))
		return err_say(e, -EINVAL, "'%.64s' is not a host", text);
	a->n_hosts++;
	return 0;
}

static int load_hosts(struct auth *a, const struct config *c, struct err *e)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < ARRAY_SIZE(loopback); i++)
		(void)add_host(a, loopback[i], NULL);
	if (strcmp(c->listen, "none") != 0) {
		struct origin *o = &a->hosts[a->n_hosts];
		char host[64];
		const char *colon = strrchr(c->listen, ':');

		/* Without the port, which may be 0: "any free one". */
		(void)snprintf(host, sizeof(host), "%.*s",
			       (int)(colon ? colon - c->listen : (ptrdiff_t)strlen(c->listen)),
			       c->listen);
		if (add_host(a, host, e) < 0)
			return err_wrap(e, "--listen");
		a->any_address = o->is_any;
		if (o->is_any)
			a->n_hosts--;
	}
	for (size_t i = 0; c->allow_hosts[i]; i++)
		if (add_host(a, c->allow_hosts[i], e) < 0)
			return err_wrap(e, "--allow-host");
	for (size_t i = 0; c->allow_origins[i]; i++)
		if (!origin_parse(c->allow_origins[i], &a->origins[a->n_origins++]))
			return err_say(e, -EINVAL, "--allow-origin: '%.64s' is not an origin",
				       c->allow_origins[i]);
	return 0;
}

int auth_load(const struct config *c, struct auth **ret, struct err *e)
{
	struct auth *a = calloc(1, sizeof(*a));
	int loopback = 1, r;

	if (!a)
		return err_set(e, -ENOMEM, "prepare authentication");
	limiter_init(&a->limiter);
	a->starter = getuid();
	a->everyone = c->no_token;
	a->who.fd = -1;
	r = load_hosts(a, c, e);
	if (r == 0 && c->token_file && (r = token_load(c->token_file, &a->tokens, e)) < 0)
		r = err_wrap(e, "--token-file '%.256s'", c->token_file);
	if (r == 0 && strcmp(c->listen, "none") != 0) {
		loopback = addr_is_loopback(c->listen, e);
		r = loopback < 0 ? err_wrap(e, "--listen") : 0;
	}
	if (r == 0 && !loopback && !c->token_file && !c->no_token)
		r = err_say(
			e, -EPERM,
			"--listen %.64s: other machines can reach this address, and there is no "
			"token; make one (umask 077; echo \"me:$(openssl rand -hex 32)\" >tokens) "
			"and give --token-file tokens, or listen on 127.0.0.1, or give --no-token "
			"to serve every caller",
			c->listen);
	if (r < 0) {
		auth_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

int auth_open_tcp(struct auth *a, int listener, struct err *e)
{
	struct err why = { 0 };

	if (listener < 0 || auth_has_tokens(a) || a->everyone ||
	    sockdiag_open(listener, &a->who, &why) == 0)
		return 0;
	return err_say(
		e, why.code,
		"--listen: there is no token, and the Linux kernel does not tell which user calls "
		"over TCP (%.128s); give --token-file FILE, or --listen none to serve only the "
		"unix socket",
		why.msg);
}

bool auth_knows(const struct auth *a, const char *owner)
{
	for (size_t i = 0; i < a->tokens.n; i++)
		if (strcmp(a->tokens.list[i].owner, owner) == 0)
			return true;
	return strcmp(owner, "local") == 0;
}

bool auth_has_tokens(const struct auth *a)
{
	return a->tokens.n > 0;
}

void auth_free(struct auth *a)
{
	if (!a)
		return;
	token_free(&a->tokens);
	sockdiag_close(&a->who);
	free(a);
}

/* ---- decide -------------------------------------------------------------------------------- */

static void refuse(struct auth_verdict *v, int status, const char *code, const char *message,
		   const char *hint)
{
	v->status = status;
	v->code = code;
	v->message = message;
	v->hint = hint;
}

/* For now: the same request may be admitted in a second. */
static void refuse_for_memory(struct auth_verdict *v, const char *message)
{
	refuse(v, 503, "out_of_memory", message,
	       "try again; if this goes on, free memory on the host");
	v->retry_after_s = 1;
}

static bool host_allowed(const struct auth *a, const struct origin *host)
{
	for (size_t i = 0; i < a->n_hosts; i++)
		if (origin_same_host(&a->hosts[i], host))
			return true;
	return a->any_address && host->is_address && !host->is_any;
}

static bool origin_allowed(const struct auth *a, const struct origin *o)
{
	for (size_t i = 0; i < a->n_origins; i++)
		if (origin_equal(&a->origins[i], o))
			return true;
	return false;
}

/* A person followed a link: the browser shows the page, and no other page can read it. */
static bool is_navigation(const struct auth_facts *f)
{
	return f->open && (strcmp(f->method, "GET") == 0 || strcmp(f->method, "HEAD") == 0) &&
	       f->fetch_mode && strcmp(f->fetch_mode, "navigate") == 0 && f->fetch_dest &&
	       strcmp(f->fetch_dest, "document") == 0;
}

static void check_browser(const struct auth *a, const struct auth_facts *f, struct auth_verdict *v)
{
	static const char hint[] =
		"--allow-origin names web origins whose pages may call this service";
	struct origin host = { 0 }, origin;
	bool host_good = f->host && origin_parse_host(f->host, &host);

	if (!f->peer->is_unix && (!host_good || !host_allowed(a, &host))) {
		refuse(v, 421, "forbidden_host", "this service is not called by that Host",
		       "use its address or localhost, or start the daemon with --allow-host NAME, where "
		       "NAME is the host in the URL");
		return;
	}
	if (f->proven)
		return;
	if (f->origin) {
		bool parsed = origin_parse(f->origin, &origin);

		if (parsed && origin_allowed(a, &origin))
			return;
		if (!parsed || !host_good || !origin_matches_host(&origin, &host)) {
			refuse(v, 403, "forbidden_origin",
			       "pages of that Origin may not call this service", hint);
			return;
		}
	}
	if (f->fetch_site && strcmp(f->fetch_site, "same-origin") != 0 &&
	    strcmp(f->fetch_site, "same-site") != 0 && strcmp(f->fetch_site, "none") != 0 &&
	    !is_navigation(f))
		refuse(v, 403, "forbidden_origin", "pages of other sites may not call this service",
		       hint);
}

static void refuse_url(struct auth_verdict *v)
{
	refuse(v, 400, "token_in_url", "a token in the URL would be kept in logs and histories",
	       "send it as 'Authorization: Bearer TOKEN' or 'X-API-Key: TOKEN', and replace this "
	       "one");
}

static void check_url(const struct auth_facts *f, struct auth_verdict *v)
{
	static const char *const names[] = {
		"token",   "access_token", "auth_token", "api_key",       "apikey",
		"api-key", "x-api-key",    "bearer",     "authorization",
	};
	const char *at = f->query;
	char name[QUERY_NAME_MAX];

	while (query_name_next(&at, name))
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (strcasecmp(name, names[i]) == 0)
				refuse_url(v);
}

/* The token in an Authorization header; NULL: another scheme. */
static const char *bearer(const char *authorization)
{
	static const char *const schemes[] = { "bearer ", "token " }; /* Jupyter uses "token" */

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		const char *token = authorization + strlen(schemes[i]);

		if (strncasecmp(authorization, schemes[i], strlen(schemes[i])) == 0)
			return token + strspn(token, " ");
	}
	return NULL;
}

/* The token of the request, or NULL. */
static const char *presented(const struct auth_facts *f)
{
	if (!f->authorization)
		return f->api_key ? f->api_key : f->url_value;
	const char *token = bearer(f->authorization);

	return token ? token : ""; /* another scheme is a wrong token, not a missing one */
}

bool auth_is_within(const struct auth *a, const char *text, size_t len)
{
	return token_within(&a->tokens, text, len) != 0;
}

void auth_check_target(const struct auth *a, const char *target, struct auth_verdict *ret)
{
	*ret = (struct auth_verdict){ 0 };
	if (auth_is_within(a, target, strlen(target)))
		refuse_url(ret);
}

/*
 * Without a token file the caller is known by its user id. A token is wrong here too: its sender
 * believes to be somebody else than that user, or means another daemon.
 */
static void check_user(const struct auth *a, const struct auth_facts *f, struct auth_verdict *v)
{
	const char *token = presented(f);
	bool known = f->peer->is_unix || f->own || a->everyone;

	if (known && token && *token)
		refuse(v, 401, "unauthorized", "the token is not known: this daemon has no tokens",
		       "send none, or have the daemon started with --token-file FILE");
	else if (known)
		(void)snprintf(v->owner, sizeof(v->owner), "local");
	else if (f->unanswered)
		refuse_for_memory(v, "the Linux kernel has no memory to tell which user calls");
	else
		refuse(v, 401, "unauthorized",
		       "without a token only the user who started this daemon, and root, may call "
		       "over TCP",
		       "call as that user, or have the daemon started with --token-file FILE and "
		       "send 'Authorization: Bearer TOKEN'");
}

static void wrong_token(struct auth *a, const struct auth_facts *f, uint64_t now_ns,
			const char *hint, struct auth_verdict *v)
{
	const char *net = f->peer->net;
	uint64_t blocked = f->peer->is_unix ? 0 : limiter_blocked(&a->limiter, net, now_ns);

	if (blocked) {
		refuse(v, 429, "rate_limited", "too many wrong tokens from this address",
		       "wait as long as Retry-After says, or send a token that is known");
		v->retry_after_s = (unsigned int)((blocked + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S);
		return;
	}
	refuse(v, 401, "unauthorized", "the token is not known", hint);
	if (!f->peer->is_unix && limiter_fail(&a->limiter, net, now_ns))
		log_event(LOG_LEVEL_WARNING, "auth_blocked", F_STR("peer", f->peer->host),
			  F_STR("why", "too many wrong tokens"));
}

static void check_token(struct auth *a, const struct auth_facts *f, uint64_t now_ns,
			struct auth_verdict *v)
{
	static const char hint[] = "send 'Authorization: Bearer TOKEN' or 'X-API-Key: TOKEN'";
	const char *token = presented(f), *owner;

	if (!token && f->peer->is_unix) {
		(void)snprintf(v->owner, sizeof(v->owner), "local");
	} else if (!token) {
		refuse(v, 401, "unauthorized", "this service needs a token", hint);
	} else if (token_owner(&a->tokens, token, strlen(token), &owner) < 0) {
		refuse_for_memory(v, "the daemon is out of memory");
	} else if (owner) {
		(void)snprintf(v->owner, sizeof(v->owner), "%s", owner);
	} else {
		wrong_token(a, f, now_ns, hint, v);
	}
}

void auth_decide(struct auth *a, const struct auth_facts *f, uint64_t now_ns,
		 struct auth_verdict *ret)
{
	struct auth_verdict *v = ret;

	*v = (struct auth_verdict){ 0 };
	check_browser(a, f, v);
	if (v->status == 0 && !f->url_token)
		check_url(f, v);
	if (v->status != 0 || f->proven)
		return;
	if (f->open)
		(void)snprintf(v->owner, sizeof(v->owner), "anonymous");
	else if (auth_has_tokens(a))
		check_token(a, f, now_ns, v);
	else
		check_user(a, f, v);
}

/* Over TCP and without tokens: whether the Linux kernel reports the user who started the daemon, or
 * root. */
static void ask_user(struct auth *a, struct conn *c, struct auth_facts *f)
{
	uid_t uid;
	int r;

	if (a->who.fd < 0 || !conn_peer(c)->is_loopback)
		return;
	r = conn_uid(c, &a->who, &uid);
	f->own = r == 0 && (uid == a->starter || uid == 0);
	f->unanswered = r < 0 && !sockdiag_is_final(r);
}

static struct auth_facts facts_of(const struct http_exchange *x)
{
	const struct http_request *r = http_request(x);

	return (struct auth_facts){
		.peer = conn_peer(http_conn(x)),
		.method = r->method,
		.query = r->query,
		.host = r->host,
		.origin = http_header(x, "origin"),
		.fetch_site = http_header(x, "sec-fetch-site"),
		.fetch_mode = http_header(x, "sec-fetch-mode"),
		.fetch_dest = http_header(x, "sec-fetch-dest"),
		.authorization = http_header(x, "authorization"),
		.api_key = http_header(x, "x-api-key"),
	};
}

void auth_check(struct auth *a, const struct http_exchange *x, const struct route *r,
		uint64_t now_ns, struct auth_verdict *ret)
{
	_buf_ struct buf token = BUF_INIT(1024);
	struct auth_facts f = facts_of(x);

	f.open = r && r->open;
	if (!f.open)
		ask_user(a, http_conn(x), &f);
	f.url_token = r && r->url_token;
	if (f.url_token && http_query(x, "token", &token))
		f.url_value = buf_str(&token);
	auth_decide(a, &f, now_ns, ret);
}

void auth_check_port(struct auth *a, const struct http_exchange *x, bool proven, uint64_t now_ns,
		     struct auth_verdict *ret)
{
	struct auth_facts f = facts_of(x);

	f.proven = proven;
	if (!auth_has_tokens(a)) /* they are for the service behind the port */
		f.authorization = f.api_key = NULL;
	if (!proven)
		ask_user(a, http_conn(x), &f);
	f.query = "";
	auth_decide(a, &f, now_ns, ret);
}
