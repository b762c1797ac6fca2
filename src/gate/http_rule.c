/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_rule.c - Rules matched against hosts, methods and paths, in every way in which servers and
 * proxies are known to read a path.
 *
 * Some servers decode a path twice, some drop the part after a ';' in each segment ("path
 * parameters"), some take a decoded '?' or '#' for the end of the path. A rule allows a request
 * only if it allows all of these readings. Parts that some servers resolve or fold into something
 * else are refused: segments of dots and spaces, empty segments, encoded slashes, backslashes,
 * control bytes, UTF-8 that is not the shortest form, characters that Unicode folds into a dot,
 * slash, backslash, percent sign or semicolon, and an escape that stands for one of these only when
 * it is decoded twice.
 *
 * The path is decoded once. A reading is a set of further steps; all combinations of the steps that
 * apply to the path are readings of it, and none of them may be ambiguous.
 */
#include "gate/http_rule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/utf8.h"
#include "net/target.h"
#include "vault/vault.h"

#define READINGS_MAX 8u

struct readings {
	char *paths[READINGS_MAX]; /* decoded; the first one is the usual reading */
	size_t n;
};

/* Steps of a reading, in this order. */
enum step {
	TWICE = 1u << 0, /* decode it once more */
	CUT = 1u << 1,   /* end it at '?' or '#' */
	STRIP = 1u << 2, /* drop what follows a ';' in each segment */
};

/* ---- ambiguous paths ----------------------------------------------------------------------- */

/* Characters that Unicode's NFKC folds into text with one of . / \ % ; in it, or Windows into a
 * slash; and C1 control codes. */
static const struct {
	uint32_t first, last;
} folded[] = {
	{ 0x80, 0x9f },     { 0x37e, 0x37e },   { 0x2024, 0x2026 }, { 0x2044, 0x2044 },
	{ 0x2100, 0x2101 }, { 0x2105, 0x2106 }, { 0x2215, 0x2216 }, { 0x2488, 0x249b },
	{ 0x29f8, 0x29f9 }, { 0x33c2, 0x33c2 }, { 0x33c7, 0x33c7 }, { 0x33d8, 0x33d8 },
	{ 0xfe14, 0xfe14 }, { 0xfe19, 0xfe19 }, { 0xfe30, 0xfe30 }, { 0xfe52, 0xfe52 },
	{ 0xfe54, 0xfe54 }, { 0xfe68, 0xfe68 }, { 0xfe6a, 0xfe6a }, { 0xff05, 0xff05 },
	{ 0xff0e, 0xff0f }, { 0xff1b, 0xff1b }, { 0xff3c, 0xff3c }, { 0x1f100, 0x1f100 },
};

/* The next character of valid UTF-8. */
static uint32_t next_char(const unsigned char **p)
{
	unsigned char c = *(*p)++;
	uint32_t code = c < 0x80 ? c : c < 0xe0 ? c & 0x1f : c < 0xf0 ? c & 0x0f : c & 0x07;

	for (size_t more = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3; more > 0; more--)
		code = code << 6 | (*(*p)++ & 0x3f);
	return code;
}

/* NULL, or the problem with the bytes of a decoded path. */
static const char *text_problem(const char *path)
{
	const unsigned char *p = (const unsigned char *)path;

	if (!utf8_valid(path, strlen(path)))
		return "the path is not valid UTF-8";
	while (*p) {
		uint32_t c = next_char(&p);

		if (c < 0x20 || c == 0x7f)
			return "a control byte in the path";
		for (size_t i = 0; i < ARRAY_SIZE(folded); i++)
			if (c >= folded[i].first && c <= folded[i].last)
				return "a character in the path that some servers fold into "
				       "another";
	}
	return NULL;
}

/* NULL, or the problem with its segments. */
static const char *segment_problem(const char *path)
{
	for (const char *at = path; *at;) {
		const char *segment = at + 1;
		size_t len = strcspn(segment, "/");

		if (len == 0 && segment[0])
			return "empty segments";
		if (memchr(segment, '.', len) && strspn(segment, ". ") >= len)
			return "a segment of dots in the path";
		at = segment + len;
	}
	return NULL;
}

/* ---- steps --------------------------------------------------------------------------------- */

/* In place. NULL, or the problem. */
static const char *decode_again(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++) {
		int byte = hex_escape(from, strnlen(from, 3));

		if (byte >= 0 && (byte < 0x20 || strchr("./\\%;?#", byte)))
			return "an escape in an escape in the path";
		if (from[0] == '%' && (from[1] | 0x20) == 'u' && hex_digit(from[2]) >= 0)
			return "an escape of the form %uXXXX in the path";
		*to++ = (char)(byte >= 0 ? byte : *from);
		from += byte >= 0 ? 2 : 0;
	}
	*to = '\0';
	return NULL;
}

static void strip(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++) {
		if (*from == ';')
			from += strcspn(from, "/");
		if (!*from)
			break;
		*to++ = *from;
	}
	*to = '\0';
}

static bool has_escape(const char *path)
{
	for (const char *p = strchr(path, '%'); p; p = strchr(p + 1, '%'))
		if (hex_escape(p, strnlen(p, 3)) >= 0 || (p[1] | 0x20) == 'u')
			return true;
	return false;
}

/* A copy of the path after these steps. NULL: no memory, or ambiguous (*ret_why). */
static char *reading(const char *path, unsigned int steps, const char **ret_why)
{
	char *copy = strdup(path);
	const char *why = NULL;

	if (!copy)
		return NULL;
	if (steps & TWICE)
		why = decode_again(copy);
	if (steps & CUT)
		copy[strcspn(copy, "?#")] = '\0';
	if (steps & STRIP)
		strip(copy);
	if (!why)
		why = text_problem(copy);
	if (!why)
		why = segment_problem(copy);
	if (!why)
		return copy;
	*ret_why = why;
	free(copy);
	return NULL;
}

static void free_readings(struct readings *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->paths[i]);
	r->n = 0;
}

/* @raw: as sent, without its query. Return: 0; -EINVAL and *ret_why, a static text; -ENOMEM. On
 * failure there is nothing to free. */
static int read_path(const char *raw, struct readings *ret, const char **ret_why)
{
	size_t len = strlen(raw);
	_mem_ char *path = malloc(len + 1);
	unsigned int apply;

	*ret = (struct readings){ 0 };
	*ret_why = NULL;
	if (!path)
		return -ENOMEM;
	if (target_decode_path(raw, len, len, path, ret_why) < 0)
		return -EINVAL;
	apply = (has_escape(path) ? TWICE : 0u) | (strpbrk(path, "?#") ? CUT : 0u) |
		(strchr(path, ';') ? STRIP : 0u);
	for (unsigned int steps = 0; steps < READINGS_MAX; steps++) {
		if (steps & ~apply)
			continue;
		ret->paths[ret->n] = reading(path, steps, ret_why);
		if (!ret->paths[ret->n]) {
			free_readings(ret);
			return *ret_why ? -EINVAL : -ENOMEM;
		}
		ret->n++;
	}
	return 0;
}

/* ---- rules ---------------------------------------------------------------------------------- */

bool http_rule_good(const struct gate_rule *r)
{
	return memchr(r->host, '\0', sizeof(r->host)) &&
	       memchr(r->methods, '\0', sizeof(r->methods)) &&
	       memchr(r->path, '\0', sizeof(r->path)) && (!r->path[0] || r->path[0] == '/');
}

bool rule_covers(const struct gate_rule *h, const char *host, uint16_t port)
{
	size_t len = strlen(host), want = strlen(h->host);

	if (port != 0 && h->port != port)
		return false;
	if (!(h->flags & GATE_WILD))
		return strcmp(h->host, host) == 0;
	return len > want + 1 && host[len - want - 1] == '.' &&
	       strcmp(host + len - want, h->host) == 0;
}

bool http_ruled(const struct gate_rule *rules, size_t n, const char *host, uint16_t port)
{
	bool ruled = false;

	for (size_t i = 0; i < n; i++) {
		if (!rule_covers(&rules[i], host, port))
			continue;
		if (!rules[i].methods[0] && !rules[i].path[0])
			return false;
		ruled = true;
	}
	return ruled;
}

/* On a mismatch only the last star takes more: longer matches of earlier ones would not help. */
bool http_path_matches(const char *pattern, const char *path)
{
	const char *star = NULL, *taken = NULL;

	while (*path) {
		if (*pattern == '*') {
			if (!pattern[1])
				return true;
			star = pattern++;
			taken = path;
		} else if (*pattern == *path) {
			pattern++;
			path++;
		} else if (star && *taken != '/') {
			path = ++taken;
			pattern = star + 1;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}

static void write_rules(const struct gate_rule *rules, size_t n, const char *host, uint16_t port,
			struct buf *out)
{
	const char *between = "";

	for (size_t i = 0; i < n; i++) {
		const struct gate_rule *h = &rules[i];

		if (!rule_covers(h, host, port))
			continue;
		(void)buf_printf(out, "%s%s%s%s%s%s", between, h->methods, h->methods[0] ? " " : "",
				 h->flags & GATE_WILD ? "*." : "", h->host, h->path);
		between = ", ";
	}
}

static bool allows(const struct gate_rule *rules, size_t n, const char *host, uint16_t port,
		   const char *method, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (rule_covers(&rules[i], host, port) &&
		    (!rules[i].methods[0] || vault_lists(rules[i].methods, method)) &&
		    (!rules[i].path[0] || http_path_matches(rules[i].path, path)))
			return true;
	return false;
}

int http_judge(const struct gate_rule *rules, size_t n, const char *host, uint16_t port,
	       const char *method, const char *raw_path, struct buf *why)
{
	struct readings readings;
	const char *problem = NULL, *bad = NULL;

	buf_clear(why);
	/* The answer would contain the values that the gate put in. */
	if (strcmp(method, "TRACE") == 0 || strcmp(method, "CONNECT") == 0) {
		(void)buf_printf(why, "%s is never allowed to a host whose requests are read",
				 method);
		return 403;
	}
	if (!http_ruled(rules, n, host, port))
		return 0;
	int r = read_path(raw_path, &readings, &problem);

	if (r == -ENOMEM)
		return 503;
	if (r < 0) {
		(void)buf_printf(why, "the path can be read in two ways (%s)", problem);
		return 403;
	}
	for (size_t i = 0; i < readings.n && !bad; i++)
		if (!allows(rules, n, host, port, method, readings.paths[i]))
			bad = readings.paths[i];
	if (bad) {
		(void)buf_printf(why, "%s %.200s is not allowed; allowed: ", method, bad);
		write_rules(rules, n, host, port, why);
	}
	free_readings(&readings);
	return bad ? 403 : 0;
}
