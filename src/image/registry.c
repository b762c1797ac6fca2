/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - Where requests go, and what they show. */
#include "image/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "image/document.h"

#define CONNECT_S 20L
#define STALL_S 60L /* no byte for so long: try again */
#define TOKEN_MAX (64u << 10)

int registry_open(struct registry *r, const struct ref *ref, const struct registry_options *o,
		  struct err *e)
{
	*r = (struct registry){ .ref = *ref, .options = *o };
	r->http_ok = o->insecure || ref_is_local(ref);
	r->multi = http_call_multi();
	if (!r->multi)
		return err_set(e, -ENOMEM, "start libcurl");
	return creds_find(ref->host, o->authfile, &r->creds, e);
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

int registry_url(const struct registry *r, const char *kind, const char *what, char *url,
		 size_t size)
{
	/* Docker's registry does not live at its name. */
	const char *host = strcmp(r->ref.host, REF_DOCKER) == 0 ? "registry-1.docker.io" :
								  r->ref.host;
	int n = snprintf(url, size, "%s://%s/v2/%s/%s/%s", r->plain ? "http" : "https", host,
			 r->ref.name, kind, what);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool registry_url_ok(const struct registry *r, const char *url)
{
	return strncasecmp(url, "https://", 8) == 0 ||
	       (r->http_ok && strncasecmp(url, "http://", 7) == 0);
}

void registry_begin(const struct registry *r, struct http_call *q, const char *url)
{
	const struct http_call_options o = { .ca_file = r->options.ca_file,
					     .insecure = r->options.insecure,
					     .connect_s = CONNECT_S,
					     .silent_s = STALL_S,
					     .buffer = 512L << 10 };

	http_call_begin(q, &o, "GET", url); /* transfer.c follows redirects, without credentials */
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
	/* What we came for, not what the registry would like us to ask for. */
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
	_buf_ struct buf line = BUF_INIT(TOKEN_MAX + 64);

	(void)buf_printf(&line, "Authorization: %s %s", scheme, value);
	free(r->auth);
	r->auth = line.err ? NULL : strdup(buf_str(&line));
	if (line.data)
		explicit_bzero(line.data, line.len);
	return r->auth ? 0 : err_set(e, -ENOMEM, "keep a token");
}

static int take_token(struct registry *r, const struct buf *body, struct err *e)
{
	_document_ json_t *doc = document_load("token", buf_str(body), body->len, e);
	const char *token = document_text(doc, "token");

	if (!doc)
		return -EBADMSG;
	if (!*token)
		token = document_text(doc, "access_token");
	if (!token_ok(token))
		return err_say(e, -EBADMSG, "the registry's token is none");
	return set_auth(r, "Bearer", token, e);
}

/* One request, waited for: everything else waits for its answer too. */
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
	if (code != CURLE_OK)
		return err_say(e, -EIO, "ask %.100s for a token: %.200s", c->realm,
			       http_call_why(&q, code));
	if (status == 401 || status == 403)
		return err_say(
			e, -EACCES, "the registry refuses %s",
			r->creds.user[0] ?
				"these credentials" :
				"without credentials: log in with 'docker login' or 'podman login'");
	if (status != 200)
		return err_say(e, -EIO, "ask %.100s for a token: HTTP %d", c->realm, status);
	return take_token(r, &body, e);
}

/* Of libcurl's ways to show them this is the one that we can take back for another host. */
static int show_basic(struct registry *r, struct err *e)
{
	_buf_ struct buf plain = BUF_INIT(8192);
	_buf_ struct buf text = BUF_INIT(16384);
	struct json j;

	(void)buf_printf(&plain, "%s:%s", r->creds.user, r->creds.password);
	json_init(&j, &text);
	json_base64(&j, buf_str(&plain), plain.len);
	if (plain.err || json_finish(&j) < 0)
		return err_set(e, -ENOMEM, "show credentials");
	text.data[text.len - 1] = '\0'; /* without its quotes */
	return set_auth(r, "Basic", text.data + 1, e);
}

int registry_authorize(struct registry *r, const struct challenge *c, struct err *e)
{
	if (c->scheme == CHALLENGE_BEARER) {
		if (!registry_url_ok(r, c->realm))
			return err_say(
				e, -EACCES,
				"the registry wants tokens from '%.100s', which is not https",
				c->realm);
		return fetch_token(r, c, e);
	}
	if (c->scheme == CHALLENGE_BASIC && r->creds.user[0])
		return show_basic(r, e);
	return err_say(
		e, -EACCES,
		c->scheme == CHALLENGE_NONE ?
			"the registry refuses, and says no way to log in" :
			"the registry wants a user and a password: log in with 'docker login' or "
			"'podman login', or name a file with --authfile");
}
