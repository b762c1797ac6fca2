/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c - Wildcards over the parts of a path, each part matched by base/wild.h.
 *
 * Both are the same loop: skip equal parts, remember the last star, and go back to it at a
 * difference. One star is enough to remember, so the time is bounded by the product of both
 * lengths.
 */
#include "workspace_store/pattern.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/wild.h"

bool pattern_ok(const char *text, size_t len)
{
	if (len == 0 || len >= PATTERN_MAX || (len == 1 && text[0] == '/'))
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	for (size_t i = 0; i < len;) {
		size_t n = 0;

		while (i + n < len && text[i + n] != '/')
			n++;
		if ((n == 1 && text[i] == '.') || (n == 2 && text[i] == '.' && text[i + 1] == '.'))
			return false;
		i += n + 1;
	}
	return true;
}

static bool is_stars(const char *p)
{
	return p[0] == '*' && p[1] == '*' && (p[2] == '/' || p[2] == '\0');
}

static const char *next_part(const char *s)
{
	s += strcspn(s, "/");
	return *s ? s + 1 : s;
}

/* Parts of @p against the first parts of @s: what is left of @s is below what matched. */
static bool match_parts(const char *p, const char *s)
{
	const char *star = NULL, *from = NULL;

	while (*p) {
		if (is_stars(p)) {
			star = p = next_part(p);
			from = s;
			if (!*p) /* everything, but not the directory itself */
				return *s != '\0';
		} else if (*s && wild_match_len(p, strcspn(p, "/"), s, strcspn(s, "/"))) {
			p = next_part(p);
			s = next_part(s);
		} else if (star && *from) {
			p = star;
			s = from = next_part(from);
		} else {
			return false;
		}
	}
	return true;
}

bool pattern_match(const char *pattern, const char *path)
{
	char text[PATTERN_MAX];
	size_t len = strnlen(pattern, sizeof(text) - 1);

	memcpy(text, pattern, len);
	while (len > 0 && text[len - 1] == '/')
		len--;
	text[len] = '\0';
	if (strchr(text, '/') || is_stars(text))
		return match_parts(text + (text[0] == '/'), path);
	for (const char *s = path; *s; s = next_part(s))
		if (wild_match_len(text, len, s, strcspn(s, "/")))
			return true;
	return false;
}

int pattern_parse(const char *text, size_t len, struct pattern_rules *ret, struct err *e)
{
	ret->n = 0;
	ret->has_allow = false;
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		struct pattern_rule *r = &ret->rule[ret->n];

		if (ret->n == PATTERN_RULES_MAX || n < 2 || (text[0] != '+' && text[0] != '-') ||
		    !pattern_ok(text + 1, n - 1))
			return err_say(e, -EINVAL, "rule %zu of the view is not valid", ret->n + 1);
		r->allow = text[0] == '+';
		memcpy(r->text, text + 1, n - 1);
		r->text[n - 1] = '\0';
		ret->has_allow |= r->allow;
		ret->n++;
		len -= n + (end != NULL);
		text += n + (end != NULL);
	}
	return 0;
}

bool pattern_visible(const struct pattern_rules *r, const char *path)
{
	bool allowed = !r->has_allow;

	for (size_t i = 0; i < r->n; i++) {
		if (r->rule[i].allow && allowed)
			continue;
		if (!pattern_match(r->rule[i].text, path))
			continue;
		if (!r->rule[i].allow)
			return false;
		allowed = true;
	}
	return allowed;
}
