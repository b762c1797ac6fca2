/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c - Addresses of requests to a registry, and their header Authorization.
 *
 * The header is kept as text and added by transfer.c, only to requests for the registry's own
 * origin: libcurl's own ways to send credentials could not be taken back for a redirect.
 *
 * A connection is kept for its host and port, so an address was judged when it was opened.
 */
#include "image/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "gate/address.h"
#include "image/documents.h"

#define TOKEN_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
#define CONNECT_S 20L
#define STALL_S 60L /* without a byte: try again */
#define TOKEN_MAX (64u << 10)

int registry_open(struct registry *r, const struct ref *ref, const struct creds *creds,
		  const struct registry_options *o, struct err *e)
{
	*r = (struct registry){ .ref = *ref, .options = *o, .creds = *creds };
	r->http_ok = o->insecure || ref_is_local(ref);
	r->multi = http_call_multi();
	return r->multi ? 0 : err_set(e, -ENOMEM, "start libcurl");
}

void registry_close(struct registry *r)
{
	if (r->auth)
		explicit_bzero(r->auth, strlen(r->auth));
	free(r->auth);
	explicit_bzero(&r->creds, sizeof(r->creds));
	if (r->multi)
		(void)curl_multi_cleanup(r->multi);
	*r = (struct registry){ 0 };
}

/* ---- addresses ----------------------------------------------------------------------------- */

/* Docker's registry is not at the host of its name. */
static const char *host_of(const struct registry *r)
{
	return strcmp(r->ref.host, REF_DOCKER) == 0 ? "registry-1.docker.io" : r->ref.host;
}

int registry_url(const struct registry *r, const char *kind, const char *what, char *url,
		 size_t size)
{
	int n = snprintf(url, size, "%s://%s/v2/%s/%s/%s", r->plain ? "http" : "https", host_of(r),
			 r->ref.name, kind, what);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool registry_url_ok(const struct registry *r, const char *url)
{
	return strncasecmp(url, "https://", 8) == 0 ||
	       (r->http_ok && strncasecmp(url, "http://", 7) == 0);
}

/* ---- connections --------------------------------------------------------------------------- */

static bool has_proxy(void)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy", "http_proxy",
					     "ALL_PROXY", "all_proxy" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *v = getenv(names[i]);

		if (v && *v)
			return true;
	}
	return false;
}

/* For libcurl, before each connection. The registry's own address decides which others may be
 * connected to. */
static curl_socket_t open_socket(struct registry *r, bool own, const struct curl_sockaddr *to)
{
	struct in6_addr a;
	const char *kind = address_of(&to->addr, &a) ? address_refusal(&a, NULL, 0) :
						       "not an address of the internet";

	if (own)
		r->kind = kind;
	else if (kind && !(r->kind && strcmp(kind, r->kind) == 0)) {
		r->barred = kind;
		return CURL_SOCKET_BAD;
	}
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static curl_socket_t open_own(void *arg, curlsocktype use, struct curl_sockaddr *to)
{
	(void)use;
	return open_socket(arg, true, to);
}

static curl_socket_t open_other(void *arg, curlsocktype use, struct curl_sockaddr *to)
{
	(void)use;
	return open_socket(arg, false, to);
}

void registry_begin(struct registry *r, struct http_call *q, const char *url)
{
	const struct http_call_options o = { .ca = r->options.ca,
					     .insecure = r->options.insecure,
					     .connect_s = CONNECT_S,
					     .silent_s = STALL_S,
					     .buffer = 512L << 10 };
	char own[REF_HOST_MAX + 16];

	http_call_begin(q, &o, "GET", url); /* transfer.c follows redirects, without credentials */
	if (!q->easy || has_proxy())
		return;
	(void)snprintf(own, sizeof(own), "%s://%s/", r->plain ? "http" : "https", host_of(r));
	(void)curl_easy_setopt(q->easy, CURLOPT_OPENSOCKETDATA, r);
	(void)curl_easy_setopt(q->easy, CURLOPT_OPENSOCKETFUNCTION,
			       http_origin_is(url, own) ? open_own : open_other);
}

/* ---- challenges: a word without '=' begins one, the others are its parameters --------------- */

struct word {
	const char *text;
	size_t len;
};

static bool is(struct word w, const char *name)
{
	return w.len == strlen(name) && strncasecmp(w.text, name, w.len) == 0;
}

/* Copy a token or a quoted string to @to, if that is not NULL. Return: the text after it. */
static const char *take_value(const char *p, char *to, size_t size)
{
	size_t n = 0;
	bool quoted = *p == '"', fits = true;

	if (to)
		to[0] = '\0';
	p += quoted;
	while (*p && (quoted ? *p != '"' : *p != ',' && *p != ' ' && *p != '\t')) {
		if (quoted && *p == '\\' && p[1])
			p++;
		fits = fits && n + 1 < size && *p >= ' ' && *p <= '~';
		if (fits && to)
			to[n++] = *p;
		p++;
	}
	fits = fits && (!quoted || *p == '"');
	if (to)
		to[fits ? n : 0] = '\0';
	return p + (quoted && *p);
}

static char *place(struct challenge *c, struct word name, size_t *ret_size)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} rows[] = {
		{ "realm", c->realm, sizeof(c->realm) },
		{ "service", c->service, sizeof(c->service) },
		{ "scope", c->scope, sizeof(c->scope) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (is(name, rows[i].name)) {
			*ret_size = rows[i].size;
			return rows[i].to;
		}
	return NULL;
}

static void begin(struct challenge *c, struct word scheme, bool *bearer)
{
	*bearer = is(scheme, "Bearer") && c->scheme != CHALLENGE_BEARER;
	if (*bearer)
		c->scheme = CHALLENGE_BEARER;
	else if (is(scheme, "Basic") && c->scheme == CHALLENGE_NONE)
		c->scheme = CHALLENGE_BASIC;
}

void challenge_parse(struct challenge *c, const char *p)
{
	bool bearer = false;

	while (*(p += strspn(p, " \t,\r\n"))) {
		struct word w = { p, strspn(p, TOKEN_CHARS) };
		const char *after = w.text + w.len;
		size_t size = 0;

		if (w.len == 0)
			return;
		after += strspn(after, " \t");
		if (*after == '=') {
			char *to = bearer ? place(c, w, &size) : NULL;

			after++;
			p = take_value(after + strspn(after, " \t"), to, size);
		} else {
			begin(c, w, &bearer);
			p = w.text + w.len;
		}
	}
}

/* ---- tokens -------------------------------------------------------------------------------- */

static int on_body(void *arg, const char *data, size_t n)
{
	return buf_append(arg, data, n);
}

static int add_query(struct buf *url, const char *name, const char *value)
{
	char *escaped = curl_easy_escape(NULL, value, 0);

	if (!escaped)
		return -ENOMEM;
	(void)buf_printf(url, "%c%s=%s", strchr(buf_str(url), '?') ? '&' : '?', name, escaped);
	curl_free(escaped);
	return url->err;
}

static int token_url(const struct registry *r, const struct challenge *c, struct buf *url)
{
	char scope[REF_NAME_MAX + 32];
	int e = buf_puts(url, c->realm);

	(void)snprintf(scope, sizeof(scope), "repository:%s:pull", r->ref.name);
	if (e == 0 && c->service[0])
		e = add_query(url, "service", c->service);
	/* The scope that is needed, and not the one that the registry asks for. */
	return e == 0 ? add_query(url, "scope", scope) : e;
}

static bool token_ok(const char *s)
{
	for (const char *p = s; *p; p++)
		if (*p < 0x21 || *p > 0x7e)
			return false;
	return *s;
}

static int set_auth(struct registry *r, const char *scheme, const char *value, struct err *e)
{
	_secret_ struct buf line = BUF_INIT(TOKEN_MAX + 64);

	(void)buf_printf(&line, "Authorization: %s %s", scheme, value);
	free(r->auth);
	r->auth = line.err ? NULL : strdup(buf_str(&line));
	return r->auth ? 0 : err_set(e, -ENOMEM, "keep a token");
}

static int take_token(struct registry *r, const struct buf *body, struct err *e)
{
	json_auto_t *doc = document_load("token", buf_str(body), body->len, e);
	const char *token = document_text(doc, "token");

	if (!doc)
		return -EBADMSG;
	if (!*token)
		token = document_text(doc, "access_token");
	if (!token_ok(token))
		return err_say(e, -EBADMSG, "the registry returned an invalid token");
	return set_auth(r, "Bearer", token, e);
}

/* One request that is waited for: everything else needs its answer. */
static int fetch_token(struct registry *r, const struct challenge *c, struct err *e)
{
	_buf_ struct buf url = BUF_INIT(8192);
	_buf_ struct buf body = BUF_INIT(TOKEN_MAX);
	struct http_call q = { .on_body = on_body, .arg = &body };

	if (token_url(r, c, &url) < 0)
		return err_set(e, -ENOMEM, "ask for a token");
	registry_begin(r, &q, buf_str(&url));
	http_call_timeout(&q, STALL_S * 1000);
	if (q.easy && r->creds.user[0]) {
		(void)curl_easy_setopt(q.easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		(void)curl_easy_setopt(q.easy, CURLOPT_USERNAME, r->creds.user);
		(void)curl_easy_setopt(q.easy, CURLOPT_PASSWORD, r->creds.password);
	}
	CURLcode code = http_call_perform(&q);
	int status = http_call_status(&q);

	http_call_free(&q);
	if (code != CURLE_OK && r->barred)
		return err_say(e, -EPROTO, "the registry takes tokens from '%.100s', which is %s",
			       c->realm, r->barred);
	if (code != CURLE_OK)
		return err_say(e, -EHOSTUNREACH, "ask %.100s for a token: %.200s", c->realm,
			       http_call_why(&q, code));
	if (status == 401 || status == 403)
		return err_say(
			e, -EACCES,
			r->creds.user[0] ?
				"the registry refuses these credentials" :
				"the registry requires credentials: log in with 'docker login' "
				"or 'podman login'");
	if (status != 200)
		return err_say(e, status == 429 || status >= 500 ? -EHOSTUNREACH : -EPROTO,
			       "ask %.100s for a token: HTTP %d", c->realm, status);
	return take_token(r, &body, e);
}

static int set_basic(struct registry *r, struct err *e)
{
	_buf_ struct buf plain = BUF_INIT(8192);
	_buf_ struct buf text = BUF_INIT(16384);

	(void)buf_printf(&plain, "%s:%s", r->creds.user, r->creds.password);
	base64_encode(buf_str(&plain), plain.len, &text);
	if (plain.err || text.err)
		return err_set(e, -ENOMEM, "prepare credentials");
	return set_auth(r, "Basic", buf_str(&text), e);
}

int registry_authorize(struct registry *r, const struct challenge *c, struct err *e)
{
	if (c->scheme == CHALLENGE_BEARER) {
		if (!registry_url_ok(r, c->realm))
			return err_say(
				e, -EACCES,
				"the registry takes tokens from '%.100s', which is not https",
				c->realm);
		return fetch_token(r, c, e);
	}
	if (c->scheme == CHALLENGE_BASIC && r->creds.user[0])
		return set_basic(r, e);
	return err_say(
		e, -EACCES,
		c->scheme == CHALLENGE_NONE ?
			"the registry refuses, and offers no way to log in" :
			"the registry requires a user and a password: log in with 'docker login' "
			"or 'podman login', or name a file with --authfile");
}
