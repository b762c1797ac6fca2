/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.c - Walk over JSON text once.
 *
 * One loop, no recursion: what is open is a stack of bits, objects and arrays. Strings are the bulk
 * of what is large, so they are passed over byte by byte with one table of what ends a run; UTF-8
 * is checked at the end over all of it.
 */
#include "mcp/slice.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"

struct scan {
	const char *at, *end;
	unsigned int depth;
	bool object[SLICE_DEPTH_MAX]; /* what each level is */
};

static void skip_space(struct scan *s)
{
	while (s->at < s->end &&
	       (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
}

static bool escape(struct scan *s)
{
	if (s->at == s->end || !*s->at || !strchr("\"\\/bfnrtu", *s->at))
		return false;
	if (*s->at++ != 'u')
		return true;
	for (int i = 0; i < 4; i++, s->at++)
		if (s->at == s->end || hex_digit(*s->at) < 0)
			return false;
	return true;
}

/* From behind the quote that begins it to behind the one that ends it. */
static bool string(struct scan *s)
{
	while (s->at < s->end) {
		unsigned char c = (unsigned char)*s->at++;

		if (c == '"')
			return true;
		if (c < 0x20 || (c == '\\' && !escape(s)))
			return false;
	}
	return false;
}

static bool digits(struct scan *s)
{
	const char *begin = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > begin;
}

static bool number(struct scan *s)
{
	if (*s->at == '-')
		s->at++;
	if (s->at < s->end && *s->at == '0')
		s->at++;
	else if (!digits(s))
		return false;
	if (s->at < s->end && *s->at == '.') {
		s->at++;
		if (!digits(s))
			return false;
	}
	if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
		s->at++;
		if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
			s->at++;
		return digits(s);
	}
	return true;
}

static bool word(struct scan *s, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0)
		return false;
	s->at += n;
	return true;
}

/* A key, the colon and the blanks around it. */
static bool key(struct scan *s, struct slice *ret)
{
	skip_space(s);
	if (s->at == s->end || *s->at++ != '"')
		return false;
	ret->at = s->at;
	if (!string(s))
		return false;
	ret->len = (size_t)(s->at - ret->at) - 1;
	skip_space(s);
	if (s->at == s->end || *s->at++ != ':')
		return false;
	skip_space(s);
	return true;
}

static int open_level(struct scan *s, bool object)
{
	if (s->depth == SLICE_DEPTH_MAX)
		return -ELOOP;
	s->object[s->depth++] = object;
	s->at++;
	skip_space(s);
	return 0;
}

/* The beginning of a value: all of a simple one, the bracket of another. */
static int begin(struct scan *s)
{
	if (s->at == s->end)
		return -EINVAL;
	switch (*s->at) {
	case '{':
	case '[':
		return open_level(s, *s->at == '{');
	case '"':
		s->at++;
		return string(s) ? 0 : -EINVAL;
	case 't':
		return word(s, "true") ? 0 : -EINVAL;
	case 'f':
		return word(s, "false") ? 0 : -EINVAL;
	case 'n':
		return word(s, "null") ? 0 : -EINVAL;
	default:
		return *s->at == '-' || (*s->at >= '0' && *s->at <= '9') ?
			       (number(s) ? 0 : -EINVAL) :
			       -EINVAL;
	}
}

/*
 * From the end of a value to the beginning of the next one, or to the end of the level @until.
 * Return: 1: a value begins, 0: the level is closed, or -EINVAL.
 */
static int next(struct scan *s, unsigned int until, bool fresh)
{
	struct slice ignored;

	for (;;) {
		skip_space(s);
		if (s->at == s->end)
			return -EINVAL;
		bool object = s->object[s->depth - 1];

		if (*s->at == (object ? '}' : ']')) {
			s->at++;
			if (--s->depth == until)
				return 0;
			fresh = false;
			continue;
		}
		if (!fresh && *s->at++ != ',')
			return -EINVAL;
		skip_space(s);
		if (object && !key(s, &ignored))
			return -EINVAL;
		return 1;
	}
}

/* All of one value. */
static int value(struct scan *s)
{
	unsigned int level = s->depth, before;
	int r;

	do {
		before = s->depth;
		r = begin(s);
		if (r < 0)
			return r;
		if (s->depth == level)
			return 0;
		r = next(s, level, s->depth > before);
	} while (r == 1);
	return r;
}

static int remember(const struct slice *name, const struct slice *v, const char *const *keys,
		    size_t n, struct slice *ret)
{
	for (size_t i = 0; i < n; i++)
		if (slice_is(name, keys[i])) {
			if (ret[i].at)
				return -EINVAL;
			ret[i] = *v;
			return 0;
		}
	return 0;
}

static int members(struct scan *s, const char *const *keys, size_t n, struct slice *ret)
{
	bool fresh = true;

	for (;;) {
		struct slice name, v;

		skip_space(s);
		if (s->at < s->end && *s->at == '}') {
			s->at++;
			return 0;
		}
		if (!fresh && (s->at == s->end || *s->at++ != ','))
			return -EINVAL;
		fresh = false;
		if (!key(s, &name))
			return -EINVAL;
		v.at = s->at;
		int r = value(s);

		v.len = (size_t)(s->at - v.at);
		if (r == 0)
			r = remember(&name, &v, keys, n, ret);
		if (r < 0)
			return r;
	}
}

int slice_members(const char *text, size_t len, const char *const *keys, size_t n,
		  struct slice *ret)
{
	struct scan s = { .at = text, .end = text + len };
	int r;

	for (size_t i = 0; i < n; i++)
		ret[i] = (struct slice){ 0 };
	skip_space(&s);
	if (s.at == s.end || *s.at != '{')
		return -EINVAL;
	r = open_level(&s, true);
	if (r == 0)
		r = members(&s, keys, n, ret);
	if (r < 0)
		return r;
	skip_space(&s);
	return s.at == s.end && utf8_valid(text, len) ? 0 : -EINVAL;
}

bool slice_is(const struct slice *s, const char *text)
{
	size_t n = strlen(text);

	return s->at && s->len == n && memcmp(s->at, text, n) == 0;
}

uint64_t slice_id(const struct slice *s)
{
	uint64_t id = 0;

	if (!s->at || s->len > 16 || !num_digits(s->at, s->len, &id) || s->at[0] == '0')
		return 0;
	return id <= UINT64_C(1) << 53 ? id : 0;
}

void slice_one_line(char *text, size_t len)
{
	for (char *p = text, *end = text + len;
	     p < end && (p = memchr(p, '\n', (size_t)(end - p)));)
		*p++ = ' ';
	for (char *p = text, *end = text + len;
	     p < end && (p = memchr(p, '\r', (size_t)(end - p)));)
		*p++ = ' ';
}
