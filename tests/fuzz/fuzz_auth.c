/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_auth.c - Values of Host, Origin, Sec-Fetch-Site, Authorization and the query from strangers,
 * one per line; and, after a first byte of 't', the text of a token file.
 *
 * No request over TCP is admitted with a Host that is not spelt like one of ours, or with an Origin
 * of another host; no request gets the owner of a token without its 32 characters.
 */
#include <strings.h>

#include "base/err.h"
#include "front/http/auth.h"
#include "front/http/request.h"
#include "front/http/token.h"
#include "front/support/origin.h"
#include "fuzz.h"
#include "net/conn.h"

/* Whether @text begins with a spelling of a host of ours, and goes on with a port or not at all. */
static bool starts_like_ours(const char *text)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "box.example" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (strncasecmp(text, names[i], n) == 0 && strchr(":.", text[n]))
			return true;
	}
	return text[0] == '['; /* [::1] has many spellings; the parser's word is compared below */
}

static void check_host(const char *text)
{
	struct origin o, again;
	char back[ORIGIN_HOST_MAX + 16];

	if (!origin_parse_host(text, &o))
		return;
	require(o.host[0] && strlen(o.host) < sizeof(o.host) && o.port <= 65535);
	for (const char *s = o.host; *s; s++)
		require(*s > ' ' && *s < 0x7f && !(*s >= 'A' && *s <= 'Z'));
	/* Written out and read again it is the same host. */
	(void)snprintf(back, sizeof(back), strchr(o.host, ':') ? "[%s]" : "%s", o.host);
	require(origin_parse_host(back, &again) && origin_same_host(&o, &again));
	require(o.is_address == again.is_address && o.is_any == again.is_any);
}

static void try_request(char *text)
{
	static const struct peer peer = { .host = "127.0.0.1", .is_loopback = true };
	static struct auth *auth;
	struct config c = { .listen = "127.0.0.1:8001", .allow_hosts = { "box.example" } };
	struct auth_facts f = { .peer = &peer, .method = "POST", .query = "", .own = true };
	const char **places[] = { &f.host, &f.origin, &f.fetch_site, &f.authorization, &f.query };
	struct auth_verdict v;
	struct origin host, origin;

	if (!auth)
		require(auth_load(&c, &auth, NULL) == 0);
	for (size_t i = 0; text && i < sizeof(places) / sizeof(places[0]); i++) {
		char *line = strsep(&text, "\n");

		if (*line)
			*places[i] = line;
	}
	if (f.host)
		check_host(f.host);
	auth_decide(auth, &f, 1, &v);
	/* 401: a token, which this daemon does not have. */
	require(v.status == 0 || v.status == 400 || v.status == 401 || v.status == 403 ||
		v.status == 421);
	require((v.status == 0) == (strcmp(v.owner, "local") == 0));
	if (v.status == 0 || v.status == 400 || v.status == 401 || v.status == 403)
		require(f.host && starts_like_ours(f.host) && origin_parse_host(f.host, &host));
	if (v.status == 0 && f.origin)
		require(origin_parse(f.origin, &origin) && origin_same_host(&origin, &host));
	if (v.status == 0) { /* the same request, sent by another user of the machine */
		f.own = false;
		auth_decide(auth, &f, 1, &v);
		require(v.status == 401 && !v.owner[0]);
	}

	char name[QUERY_NAME_MAX];
	const char *at = f.query;

	for (size_t n = 0; query_name_next(&at, name); n++)
		require(n <= strlen(f.query) && strlen(name) < sizeof(name));
}

static void try_tokens(const char *text, size_t len)
{
	struct token_set set = { 0 };
	struct err e = { 0 };
	int r = token_parse(text, len, &set, &e);

	require((r == 0) == (e.code == 0) && set.n <= TOKENS_MAX);
	require(r == 0 || (set.n == 0 && !set.list && strncmp(e.msg, "line ", 5) == 0));
	for (size_t i = 0; i < set.n; i++)
		require(set.list[i].owner[0] && strcmp(set.list[i].owner, "local") != 0);
	/* The last token of the text, presented as a caller would, has an owner. */
	size_t end = len, begin;
	const char *owner;

	while (end > 0 && strchr(" \t\r\n", text[end - 1]) && text[end - 1])
		end--;
	for (begin = end; begin > 0 && !strchr(": \t\n", text[begin - 1]);)
		begin--;
	if (r == 0 && set.n > 0 && end - begin >= TOKEN_MIN && !memchr(text, '#', len))
		require(token_owner(&set, text + begin, end - begin, &owner) == 0 && owner &&
			token_within(&set, text, len) == 1);
	require(token_owner(&set, text, len < TOKEN_MIN ? len : TOKEN_MIN - 1, &owner) == 0 &&
		!owner);
	token_free(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	if (text[0] == 't')
		try_tokens(text + 1, size - 1);
	else
		try_request(text);
	free(text);
	return 0;
}
