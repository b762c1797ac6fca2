/* SPDX-License-Identifier: Apache-2.0 */
/* test_token.c - Token files, the owners of tokens, and the delay of guesses. */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/http/limiter.h"
#include "front/http/token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"         /* 32 */
#define B "0123456789-._~+/ABCDEFabcdef0123456789==" /* every kind of character */
#define S CLOCK_NS_PER_S

static struct err err;

static int parse(const char *text, struct token_set *s)
{
	err = (struct err){ 0 };
	return token_parse(text, strlen(text), s, &err);
}

static const char *owner_of(const struct token_set *s, const char *token, size_t len)
{
	const char *owner = "nobody said";

	assert_int_equal(token_owner(s, token, len, &owner), 0);
	return owner;
}

TEST(parse)
{
	struct token_set s;

	assert_int_equal(
		parse("# who may\n\nalice:" A "\r\n  " B "  \nalice:" B "x\n\tbob.x-1:" A A, &s),
		-EINVAL);
	assert_int_equal(
		parse("# who may\n\nalice:" A "\r\n  " B "  \nalice:x" B "\n\tbob.x-1:" A A, &s),
		0);
	assert_int_equal(s.n, 4);
	assert_string_equal(owner_of(&s, A, strlen(A)), "alice");
	assert_string_equal(owner_of(&s, B, strlen(B)), "token-2");
	assert_string_equal(owner_of(&s, "x" B, strlen(B) + 1), "alice");
	assert_string_equal(owner_of(&s, A A, strlen(A A)), "bob.x-1");
	assert_null(owner_of(&s, A, strlen(A) - 1));
	assert_null(owner_of(&s, A "a", strlen(A) + 1));
	assert_null(owner_of(&s, "", 0));
	assert_null(owner_of(&s, "alice:" A, strlen(A) + 6));
	/* Only hashes are kept. */
	assert_null(memmem(s.list, s.n * sizeof(*s.list), A, 16));
	token_free(&s);
	assert_null(owner_of(&s, A, strlen(A)));
	assert_int_equal(parse("", &s), 0);
	assert_int_equal(s.n, 0);
	token_free(&s);
}

TEST(parse_refuses)
{
	static const struct {
		const char *text, *line;
	} rows[] = {
		{ "short", "line 1:" },
		{ "ok:" A "\nme:" A " x", "line 2:" },
		{ "ok:" A "\n\n:" A, "line 3:" },
		{ "local:" A, "line 1:" },
		{ "anonymous:" A, "line 1:" },
		{ "a b:" A, "line 1:" },
		{ "-a:" A, "line 1:" },
		{ "a:b:" A, "line 1:" },
		{ A "\xc3\xa4", "line 1:" },
		{ "==================================", "line 1:" },
		{ "0123456789012345678901234567890123456789012345678901234567890123:" A,
		  "line 1:" },
	};
	struct token_set s;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(parse(rows[i].text, &s), -EINVAL);
		assert_memory_equal(err.msg, rows[i].line, strlen(rows[i].line));
		/* No message shows a token. */
		assert_null(strstr(err.msg, "aaaa"));
		assert_int_equal(s.n, 0);
		assert_null(s.list);
	}
	char *many = malloc(1100 * 40);
	size_t len = 0;

	assert_non_null(many);
	for (int i = 0; i < TOKENS_MAX + 1; i++)
		len += (size_t)snprintf(many + len, 40, "%032d\n", i);
	assert_int_equal(token_parse(many, len, &s, &err), -E2BIG);
	assert_int_equal(token_parse(many, len - 33, &s, &err), 0);
	assert_string_equal(owner_of(&s, "00000000000000000000000000001023", 32), "token-1024");
	token_free(&s);
	free(many);
}

#define BASIC "eDowMTIzNDU2Nzg5LS5ffisvQUJDREVGYWJjZGVmMDEyMzQ1Njc4OT09" /* x:B */

TEST(within)
{
	static const struct {
		const char *text;
		int is;
	} rows[] = {
		{ A, 1 },
		{ "Bearer " A, 1 },
		{ "Basic eA==, Bearer " B, 1 },
		{ "x=1&token=" B "&y", 1 },
		{ "bearer." A ".end", 1 },
		{ "\"" B "\"", 1 },
		{ "aaaa" A, 1 },
		{ "token=%61"
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%61",
		  1 },
		{ "0123456789-._~%2B%2fABCDEFabcdef0123456789%3D%3d", 1 },
		{ "Basic " BASIC, 1 },
		{ "auth=Basic%20" BASIC, 1 },
		{ "key%3D" BASIC, 1 },
		{ "/b/" BASIC, 1 },
		{ "/login/" BASIC, 1 },
		{ "Basic  " BASIC "==, x", 1 },
		{ "base64url.bearer.YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE", 1 },
		{ "", 0 },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0 },
		{ "aaaaaaaaaaaaaaaa aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0 },
		{ "0123456789-._~+/ABCDEFabcdef0123456789=", 0 },
		{ "0123456789-._~+/ABCDEFABCDEF0123456789==", 0 },
		{ "%61%6", 0 },
		{ "Basic eDowMTIzNDU2Nzg5LS5ffisvQUJDREVGYWJjZGVmMDEyMzQ1Njc4OT0", 0 },
	};
	struct token_set s, none = { 0 };

	assert_int_equal(parse(A "\n" B, &s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (token_within(&s, rows[i].text, strlen(rows[i].text)) != rows[i].is)
			fail_msg("%s", rows[i].text);
		assert_int_equal(token_within(&none, rows[i].text, strlen(rows[i].text)), 0);
	}
	token_free(&s);
}

TEST(load)
{
	char path[] = "/tmp/caisson-token-XXXXXX";
	_fd_ int fd = mkstemp(path);
	struct token_set s = { 0 };

	assert_return_code(fd, errno);
	assert_int_equal(token_load(path, &s, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "openssl rand -hex 32"));
	assert_int_equal(fd_write_all(fd, "me:" A "\n", strlen("me:" A "\n")), 0);
	assert_int_equal(token_load(path, &s, &err), 0);
	assert_string_equal(owner_of(&s, A, strlen(A)), "me");
	token_free(&s);
	for (mode_t bit = 1; bit < 0100; bit <<= 1) {
		assert_return_code(fchmod(fd, 0600 | bit), errno);
		assert_int_equal(token_load(path, &s, &err), -EPERM);
		assert_non_null(strstr(err.msg, "chmod 600"));
	}
	assert_return_code(fchmod(fd, 0600), errno);
	if (geteuid() == 0) {
		assert_return_code(fchown(fd, 12345, 0), errno);
		assert_int_equal(token_load(path, &s, &err), -EPERM);
	}
	assert_return_code(ftruncate(fd, (1 << 20) + 1), errno);
	if (geteuid() == 0)
		assert_return_code(fchown(fd, 0, 0), errno);
	assert_int_equal(token_load(path, &s, &err), -E2BIG);
	assert_return_code(unlink(path), errno);
	assert_int_equal(token_load(path, &s, &err), -ENOENT);
	assert_int_equal(token_load("/tmp", &s, &err), -EINVAL);
	assert_int_equal(token_load("/dev/null", &s, &err), -EINVAL);
}

TEST(limiter)
{
	struct limiter *l = malloc(sizeof(*l));
	uint64_t now = 1000 * S;

	assert_non_null(l);
	limiter_init(l);
	for (int i = 0; i < 9; i++)
		assert_false(limiter_fail(l, "10.0.0.1", now));
	assert_int_equal(limiter_blocked(l, "10.0.0.1", now), 0);
	assert_true(limiter_fail(l, "10.0.0.1", now));
	assert_int_equal(limiter_blocked(l, "10.0.0.1", now), S);
	assert_int_equal(limiter_blocked(l, "10.0.0.2", now), 0);
	/* Each further guess doubles the delay, and is not logged again. */
	for (uint64_t penalty = 2; penalty < 300; penalty *= 2) {
		now += limiter_blocked(l, "10.0.0.1", now);
		assert_int_equal(limiter_blocked(l, "10.0.0.1", now), 0);
		assert_false(limiter_fail(l, "10.0.0.1", now));
		assert_int_equal(limiter_blocked(l, "10.0.0.1", now),
				 (penalty > 60 ? 60 : penalty) * S);
	}
	/* A minute of quiet after the block, and it begins anew. */
	now += 60 * S + 60 * S + 1;
	for (int i = 0; i < 9; i++)
		assert_false(limiter_fail(l, "10.0.0.1", now));
	assert_int_equal(limiter_blocked(l, "10.0.0.1", now), 0);
	/* Slow ones are never blocked. */
	for (int i = 0; i < 100; i++)
		assert_false(limiter_fail(l, "10.0.0.3", now += 2 * S));
	free(l);
}

TEST(limiter_table)
{
	struct limiter *l = malloc(sizeof(*l));
	uint64_t now = 1000 * S;
	char host[48];

	assert_non_null(l);
	limiter_init(l);
	/* Ten thousand addresses take no more room, and a new one still counts. */
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(host, sizeof(host), "10.%d.%d.%d", i / 65536, i / 256 % 256,
			       i % 256);
		(void)limiter_fail(l, host, now + (uint64_t)i);
	}
	now += 20000;
	for (int i = 0; i < 10; i++)
		assert_int_equal(limiter_fail(l, "192.0.2.1", now), i == 9);
	assert_true(limiter_blocked(l, "192.0.2.1", now) > 0);
	free(l);
}
