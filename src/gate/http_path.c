/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_path.c - The readings of a path. See http_path.h.
 *
 * The path is decoded once. A reading is a set of further steps; all combinations of the steps that
 * apply to the path are readings of it, and none of them may be ambiguous.
 */
#include "gate/http_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "net/target.h"

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
				return "a character in the path that some servers fold into another";
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

/* The byte that an escape stands for, or -1. */
static int escape(const char *s)
{
	return s[0] == '%' ? target_escape(s, strnlen(s, 3)) : -1;
}

/* In place. NULL, or the problem. */
static const char *decode_again(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++) {
		int byte = escape(from);

		if (byte >= 0 && (byte < 0x20 || strchr("./\\%;?#", byte)))
			return "an escape in an escape in the path";
		if (from[0] == '%' && (from[1] | 0x20) == 'u' && target_hex(from[2]) >= 0)
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
		if (escape(p) >= 0 || (p[1] | 0x20) == 'u')
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

void http_readings_free(struct http_readings *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->paths[i]);
	r->n = 0;
}

int http_path_read(const char *raw, struct http_readings *ret, const char **ret_why)
{
	size_t len = strlen(raw);
	_mem_ char *path = malloc(len + 1);
	unsigned int apply;

	*ret = (struct http_readings){ 0 };
	*ret_why = NULL;
	if (!path)
		return -ENOMEM;
	if (target_decode_path(raw, len, len, path, ret_why) < 0)
		return -EINVAL;
	apply = (has_escape(path) ? TWICE : 0u) | (strpbrk(path, "?#") ? CUT : 0u) |
		(strchr(path, ';') ? STRIP : 0u);
	for (unsigned int steps = 0; steps < HTTP_READINGS_MAX; steps++) {
		if (steps & ~apply)
			continue;
		ret->paths[ret->n] = reading(path, steps, ret_why);
		if (!ret->paths[ret->n]) {
			http_readings_free(ret);
			return *ret_why ? -EINVAL : -ENOMEM;
		}
		ret->n++;
	}
	return 0;
}
