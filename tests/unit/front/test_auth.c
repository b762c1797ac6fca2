/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_auth.c - Access: a matrix of peers, hosts, origins and tokens, each with the refusal
 * that it must get before any work is done.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/http/auth.h"
#include "net/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define S CLOCK_NS_PER_S

static const struct peer local = {
	.text = "127.0.0.1:5", .host = "127.0.0.1", .net = "127.0.0.1", .is_loopback = true
};
static const struct peer far = { .text = "203.0.113.9:5",
				 .host = "203.0.113.9",
				 .net = "203.0.113.9" };
static const struct peer unix_peer = {
	.text = "unix", .host = "unix", .net = "unix", .is_unix = true
};

static struct err err;
static char token_path[64];

static int write_tokens(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(token_path, sizeof(token_path), "/tmp/caisson-auth-XXXXXX");
	fd = mkstemp(token_path);
	if (fd < 0 || fd_write_all(fd, "me:" TOKEN "\n", strlen("me:" TOKEN "\n")) < 0)
		return -1;
	(void)fd_close(fd);
	return 0;
}

static int remove_tokens(void **state)
{
	(void)state;
	return unlink(token_path);
}

struct unit_fixture unit_group = { write_tokens, remove_tokens };

static struct auth *load(const char *listen, bool tokens)
{
	struct config c = { .listen = listen,
			    .token_file = tokens ? token_path : NULL,
			    .allow_hosts = { "box.example" },
			    .allow_origins = { "https://app.example", "http://localhost:3000" } };
	struct auth *a = NULL;

	if (auth_load(&c, &a, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(auth_has_tokens(a), tokens);
	return a;
}

static struct auth_verdict decide(struct auth *a, struct auth_facts f)
{
	struct auth_verdict v;

	f.peer = f.peer ? f.peer : &local;
	f.method = f.method ? f.method : "POST";
	f.query = f.query ? f.query : "";
	f.host = f.host ? f.host : "localhost:8001";
	auth_decide(a, &f, 1000 * S, &v);
	/* A refusal is complete, a welcome has an owner. */
	if (v.status) {
		assert_non_null(v.code);
		assert_non_null(v.message);
		assert_non_null(v.hint);
		assert_string_equal(v.owner, "");
		assert_null(strstr(v.message, TOKEN));
	} else {
		assert_null(v.code);
		assert_true(v.owner[0] != '\0');
	}
	return v;
}
#define DECIDE(a, ...) decide(a, (struct auth_facts){ __VA_ARGS__ })

#define assert_verdict(v, status_, code_)                                                          \
	do {                                                                                       \
		struct auth_verdict got_ = v;                                                      \
		assert_int_equal(got_.status, status_);                                            \
		assert_string_equal(got_.code ? got_.code : "", code_);                            \
	} while (0)

TEST(load)
{
	struct auth *a = NULL;

	for (size_t i = 0; i < 2; i++) {
		struct config c = { .listen = i ? "0.0.0.0:8001" : "[::]:8001" };

		assert_int_equal(auth_load(&c, &a, &err), -EPERM);
		assert_non_null(strstr(err.msg, "--token-file"));
		assert_null(a);
	}
	struct config missing = { .listen = "127.0.0.1:8001", .token_file = "/nonexistent" };

	assert_int_equal(auth_load(&missing, &a, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "--token-file"));
	auth_free(load("127.0.0.1:0", false));
	auth_free(load("[::1]:8001", false));
	auth_free(load("none", false));
	auth_free(load("0.0.0.0:8001", true));
	auth_free(NULL);
}

TEST(hosts)
{
	static const struct {
		const char *listen, *host;
		bool good;
	} rows[] = {
		{ "127.0.0.1:8001", "localhost", true },
		{ "127.0.0.1:8001", "LOCALHOST:1", true },
		{ "127.0.0.1:8001", "127.0.0.1:8001", true },
		{ "127.0.0.1:8001", "[::1]:8001", true },
		{ "127.0.0.1:8001", "box.example", true },
		{ "127.0.0.1:8001", "Box.Example.:99", true },
		{ "127.0.0.2:8001", "127.0.0.2", true },
		{ "127.0.0.1:8001", "127.0.0.2", false },
		{ "127.0.0.1:8001", "evil.com", false },
		{ "127.0.0.1:8001", "localhost.evil.com", false },
		{ "127.0.0.1:8001", "evil.localhost", false },
		{ "127.0.0.1:8001", "0.0.0.0:8001", false },
		{ "127.0.0.1:8001", "127.1", false },
		{ "127.0.0.1:8001", "a@localhost", false },
		{ "127.0.0.1:8001", "localhost:8001, evil.com", false },
		{ "127.0.0.1:8001", "[::ffff:127.0.0.1]", false },
		{ "none", "127.0.0.1", true },
		/* On all addresses any literal one may be ours; a name is not, nor is "any".
		 */
		{ "0.0.0.0:8001", "192.0.2.7", true },
		{ "0.0.0.0:8001", "[2001:db8::1]:8001", true },
		{ "0.0.0.0:8001", "0.0.0.0", false },
		{ "[::]:8001", "[::]:8001", false },
		{ "0.0.0.0:8001", "evil.com", false },
		{ "192.0.2.7:8001", "192.0.2.7", true },
		{ "192.0.2.7:8001", "192.0.2.8", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct auth *a = load(rows[i].listen, true);
		struct auth_verdict v = DECIDE(a, .host = rows[i].host, .api_key = TOKEN);

		if (v.status != (rows[i].good ? 0 : 421))
			fail_msg("%s on %s: %d", rows[i].host, rows[i].listen, v.status);
		/* Health too; but no page of a browser reaches the unix socket. */
		v = DECIDE(a, .host = rows[i].host, .open = true);
		assert_int_equal(v.status, rows[i].good ? 0 : 421);
		v = DECIDE(a, .host = rows[i].host, .peer = &unix_peer);
		assert_int_equal(v.status, 0);
		auth_free(a);
	}
	struct auth *a = load("127.0.0.1:8001", false);
	struct auth_facts none = { .peer = &local, .method = "GET", .query = "" };
	struct auth_verdict v;

	auth_decide(a, &none, S, &v);
	assert_int_equal(v.status, 421);
	auth_free(a);
}

TEST(browsers)
{
	struct auth *a = load("127.0.0.1:8001", false);

	static const struct {
		const char *origin, *site;
		bool good;
	} rows[] = {
		{ NULL, NULL, true }, /* curl */
		{ "http://localhost:8001", "same-origin", true },
		{ "https://localhost:8001", NULL, true },
		{ "http://localhost:3000", "same-site", true }, /* listed */
		{ "https://app.example", "cross-site", true },  /* listed */
		{ "https://app.example:443", NULL, true },
		{ "http://app.example", NULL, false },
		{ "https://app.example.evil.com", NULL, false },
		{ "https://evil.com", "cross-site", false },
		{ "https://evil.com", NULL, false },
		{ "http://127.0.0.1:8001", NULL, false }, /* another origin than localhost */
		{ "http://localhost:8002", "same-site", false },
		{ "null", NULL, false },
		{ "", NULL, false },
		{ NULL, "cross-site", false },
		{ NULL, "none", true },
		{ NULL, "same-origin", true },
		{ NULL, "", false },
		{ "http://localhost:8001", "cross-site", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct peer *peers[] = { &local, &unix_peer };

		for (size_t k = 0; k < ARRAY_SIZE(peers); k++) {
			struct auth_verdict v = DECIDE(a, .origin = rows[i].origin,
						       .fetch_site = rows[i].site, .peer = peers[k],
						       .own = true);

			if (v.status != (rows[i].good ? 0 : 403))
				fail_msg("%s %s: %d", rows[i].origin, rows[i].site, v.status);
			if (v.status)
				assert_string_equal(v.code, "forbidden_origin");
		}
	}
	/* A link to the documentation may be followed; nothing else crosses sites. */
	assert_verdict(DECIDE(a, .method = "GET", .open = true, .fetch_site = "cross-site",
			      .fetch_mode = "navigate", .fetch_dest = "document"),
		       0, "");
	assert_verdict(DECIDE(a, .method = "GET", .open = true, .fetch_site = "cross-site",
			      .fetch_mode = "navigate", .fetch_dest = "iframe"),
		       403, "forbidden_origin");
	assert_verdict(DECIDE(a, .method = "GET", .open = true, .fetch_site = "cross-site",
			      .fetch_mode = "no-cors", .fetch_dest = "script"),
		       403, "forbidden_origin");
	assert_verdict(DECIDE(a, .method = "GET", .fetch_site = "cross-site",
			      .fetch_mode = "navigate", .fetch_dest = "document"),
		       403, "forbidden_origin");
	assert_verdict(DECIDE(a, .method = "POST", .open = true, .fetch_site = "cross-site",
			      .fetch_mode = "navigate", .fetch_dest = "document"),
		       403, "forbidden_origin");
	auth_free(a);
}

TEST(token_in_url)
{
	static const char *const bad[] = { "token=x",   "a=1&token",   "TOKEN=x",
					   "api_key=x", "apikey=",     "access_token=x",
					   "t%6Fken=x", "%41pi_key=x", "X-API-Key=1" };
	struct auth *a = load("127.0.0.1:8001", true);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_verdict(DECIDE(a, .query = bad[i], .api_key = TOKEN), 400, "token_in_url");
		assert_verdict(DECIDE(a, .query = bad[i], .open = true), 400, "token_in_url");
	}
	assert_verdict(DECIDE(a, .query = "tokens=1&mytoken=2", .api_key = TOKEN), 0, "");
	auth_free(a);
}

TEST(tokens)
{
	struct auth *a = load("0.0.0.0:8001", true);

	struct auth_verdict v = DECIDE(a, .authorization = "Bearer " TOKEN);

	assert_int_equal(v.status, 0);
	assert_string_equal(v.owner, "me");
	assert_verdict(DECIDE(a, .authorization = "bEaReR   " TOKEN), 0, "");
	assert_verdict(DECIDE(a, .api_key = TOKEN), 0, "");
	assert_verdict(DECIDE(a, .api_key = TOKEN, .peer = &far, .host = "192.0.2.1"), 0, "");
	/* Missing, on loopback too; wrong in every way. */
	assert_verdict(DECIDE(a), 401, "unauthorized");
	assert_verdict(DECIDE(a, .authorization = "Bearer"), 401, "unauthorized");
	assert_verdict(DECIDE(a, .authorization = TOKEN), 401, "unauthorized");
	assert_verdict(DECIDE(a, .authorization = "Basic " TOKEN, .api_key = TOKEN), 401,
		       "unauthorized");
	assert_verdict(DECIDE(a, .authorization = "Bearer " TOKEN "0"), 401, "unauthorized");
	assert_verdict(DECIDE(a, .authorization = "Bearer " TOKEN ", Bearer " TOKEN), 401,
		       "unauthorized");
	assert_verdict(DECIDE(a, .api_key = "me:" TOKEN), 401, "unauthorized");
	/* Open routes do not look at it. */
	v = DECIDE(a, .open = true, .api_key = "wrong");
	assert_int_equal(v.status, 0);
	assert_string_equal(v.owner, "anonymous");
	/* The unix socket: local, unless a token names another owner. */
	v = DECIDE(a, .peer = &unix_peer);
	assert_string_equal(v.owner, "local");
	v = DECIDE(a, .peer = &unix_peer, .api_key = TOKEN);
	assert_string_equal(v.owner, "me");
	for (int i = 0; i < 30; i++)
		assert_verdict(DECIDE(a, .peer = &unix_peer, .api_key = "wrong"), 401,
			       "unauthorized");
	auth_free(a);

	/* With tokens every caller over TCP needs one. */
	a = load("127.0.0.1:8001", true);
	assert_verdict(DECIDE(a, .own = true), 401, "unauthorized");
	auth_free(a);
}

/* No tokens: the user who started the daemon is local, and no other user is admitted. */
TEST(users)
{
	struct auth *a = load("127.0.0.1:8001", false);
	struct auth_verdict v = DECIDE(a, .own = true);

	assert_string_equal(v.owner, "local");
	/* A token is wrong where the daemon has no tokens; an empty one does not count. */
	assert_verdict(DECIDE(a, .own = true, .api_key = "whatever"), 401, "unauthorized");
	assert_verdict(DECIDE(a, .peer = &unix_peer, .authorization = "Bearer x"), 401,
		       "unauthorized");
	v = DECIDE(a, .own = true, .authorization = "token ");
	assert_string_equal(v.owner, "local");
	v = DECIDE(a, .peer = &unix_peer);
	assert_string_equal(v.owner, "local");
	v = DECIDE(a);
	assert_verdict(v, 401, "unauthorized");
	assert_non_null(strstr(v.hint, "--token-file"));
	assert_verdict(DECIDE(a, .api_key = TOKEN), 401, "unauthorized");
	assert_verdict(DECIDE(a, .peer = &far), 401, "unauthorized");
	v = DECIDE(a, .open = true);
	assert_string_equal(v.owner, "anonymous");
	/* The kernel could not be asked: not admitted, and not for ever. */
	v = DECIDE(a, .unanswered = true);
	assert_verdict(v, 503, "out_of_memory");
	assert_int_equal(v.retry_after_s, 1);
	auth_free(a);
}

/* By choice nobody needs one. A page of another site still may not call. */
TEST(everyone)
{
	struct config c = { .listen = "0.0.0.0:8001", .no_token = true };
	struct auth *a = NULL;

	assert_int_equal(auth_load(&c, &a, &err), 0);
	assert_int_equal(auth_open_tcp(a, -1, &err), 0);
	struct auth_verdict v = DECIDE(a, .peer = &far, .host = "192.0.2.1:8001");

	assert_string_equal(v.owner, "local");
	assert_verdict(DECIDE(a, .peer = &far, .host = "evil.example"), 421, "forbidden_host");
	assert_verdict(DECIDE(a, .origin = "https://evil.example"), 403, "forbidden_origin");
	auth_free(a);
}

TEST(guessing)
{
	struct auth *a = load("0.0.0.0:8001", true);

	/* Without a token nothing is counted. */
	for (int i = 0; i < 100; i++)
		assert_verdict(DECIDE(a, .peer = &far, .host = "192.0.2.1"), 401, "unauthorized");
	for (int i = 0; i < 10; i++)
		assert_verdict(DECIDE(a, .peer = &far, .host = "192.0.2.1", .api_key = "wrong"),
			       401, "unauthorized");
	struct auth_verdict v = DECIDE(a, .peer = &far, .host = "192.0.2.1", .api_key = "wrong");

	assert_int_equal(v.status, 429);
	assert_string_equal(v.code, "rate_limited");
	assert_int_equal(v.retry_after_s, 1);
	/* A right one passes all the same, others are served, and open routes too. */
	assert_verdict(DECIDE(a, .peer = &far, .host = "192.0.2.1", .api_key = TOKEN), 0, "");
	assert_verdict(DECIDE(a, .peer = &far, .host = "192.0.2.1"), 401, "unauthorized");
	assert_verdict(DECIDE(a, .api_key = TOKEN), 0, "");
	assert_verdict(DECIDE(a, .peer = &far, .host = "192.0.2.1", .open = true), 0, "");
	auth_free(a);
}
