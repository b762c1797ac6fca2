/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gate_request.c - Values of headers in which placeholders are replaced, and requests that
 * rules judge.
 *
 * The input is a header's value; a method, a path and a pattern follow, each after a newline.
 * Replacing in the other direction gives the original value. A path that the rule for /v1/ lets
 * through is still below /v1/ when it is read as the servers do that are known for it: decoded up
 * to three times, with backslashes for slashes, without what follows a semicolon, a question mark
 * or a NUL in it, with empty segments and dots resolved; in any combination.
 */
#include "base/buf.h"
#include "fuzz.h"
#include "gate/bindings.h"
#include "gate/http_rule.h"

static void check_replace(const char *value)
{
	static const struct replacement there = { "caisson-secret-x", "\x01value\x01", NULL };
	static const struct replacement back = { "\x01value\x01", "caisson-secret-x", NULL };
	_buf_ struct buf once = BUF_INIT(1u << 20), twice = BUF_INIT(1u << 20);

	if (strchr(value, '\x01') || strncasecmp(value, "basic", 5) == 0) {
		(void)placeholder_replace(value, &there, 1, NULL, &once);
		return;
	}
	int n = placeholder_replace(value, &there, 1, NULL, &once);

	require(n >= 0 && !strstr(buf_str(&once), there.from));
	require(placeholder_replace(buf_str(&once), &back, 1, NULL, &twice) == n);
	require(strcmp(buf_str(&twice), value) == 0);
}

static int digit(char c)
{
	const char *all = "0123456789abcdef", *at = c ? strchr(all, c | 0x20) : NULL;

	return at ? (int)(at - all) : -1;
}

static void decode(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '%' && digit(s[1]) >= 0 && digit(s[2]) >= 0) {
			*to++ = (char)(digit(s[1]) << 4 | digit(s[2]));
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0'; /* and what follows a NUL is gone */
}

/* Without what follows one of @marks, up to the next of @until. */
static void drop(char *s, const char *marks, const char *until)
{
	char *to = s;

	for (; *s; s++) {
		if (strchr(marks, *s))
			s += strcspn(s, until);
		if (!*s)
			break;
		*to++ = *s;
	}
	*to = '\0';
}

/* Segments that are empty or dots, resolved; @s begins with a slash. */
static void resolve(char *s)
{
	char *to = s, *top = s, *segment;

	while ((segment = strsep(&s, "/"))) {
		size_t n = strlen(segment);

		while (n > 0 && segment[n - 1] == ' ')
			n--;
		if (n == 0 || (n == 1 && segment[0] == '.'))
			continue;
		if (n == 2 && memcmp(segment, "..", 2) == 0) {
			while (to > top && *--to != '/')
				;
			continue;
		}
		*to++ = '/';
		memmove(to, segment, n);
		to += n;
	}
	*to = '\0';
}

static void require_below(const char *path)
{
	for (unsigned int how = 0; how < 64; how++) {
		char *s = calloc(1, strlen(path) + 2);

		require(s);
		memcpy(s, path, strlen(path));
		for (unsigned int times = 0; times <= (how & 3); times++) {
			if (how & 4)
				drop(s, ";", "/");
			decode(s);
		}
		for (char *c = s; how & 8 && *c; c++)
			*c = *c == '\\' ? '/' : *c;
		if (how & 16)
			drop(s, "?#", "");
		if (how & 32)
			drop(s, ";", "/");
		require(s[0] == '/');
		resolve(s);
		require(strcmp(s, "/v1") == 0 || strncmp(s, "/v1/", 4) == 0);
		free(s);
	}
}

static void check_rule(const char *method, const char *path, const char *pattern)
{
	struct gate_rule r = { .host = "a.test", .port = 443 };
	_buf_ struct buf why = BUF_INIT(1u << 20);

	if (strlen(pattern) >= sizeof(r.path))
		return;
	memcpy(r.path, pattern, strlen(pattern) + 1);
	if (http_rule_good(&r))
		(void)http_judge(&r, 1, "a.test", 443, method, path, &why);
	memcpy(r.path, "/v1/*", 6);
	if (http_judge(&r, 1, "a.test", 443, method, path, &why) == 0)
		require_below(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = size < 65536 ? calloc(1, size + 1) : NULL;
	char *parts[4] = { NULL };
	char *rest = text;

	if (!text)
		return 0;
	memcpy(text, data, size);
	for (size_t i = 0; i < 4; i++)
		parts[i] = rest ? strsep(&rest, "\n") : NULL;
	check_replace(parts[0]);
	if (parts[3])
		check_rule(parts[1], parts[2], parts[3]);
	free(text);
	return 0;
}
