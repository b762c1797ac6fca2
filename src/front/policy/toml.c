/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml.c - Read the text of a policy, character by character, with the place of everything.
 *
 * One cursor moves forward only. A function returns false after an error: it has then called fail,
 * once, and all callers return. Words are copied into one buffer of a fixed size, which bounds the
 * memory that a text can cost.
 */
#include "front/policy/toml.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

struct cursor {
	const char *p, *end;
	struct toml_at at;
	const struct toml_reader *r;
	char *store; /* of words of the table or pair that is being read */
	size_t used;
	struct toml_word *words;
};

#define STORE_BYTES ((size_t)(TOML_WORDS_MAX + TOML_PARTS_MAX + 1) * (TOML_WORD_MAX + 1))

static bool fail_at(struct cursor *c, struct toml_at at, const char *why)
{
	c->r->fail(c->r->arg, at, why);
	c->end = c->p; /* nothing more is read */
	return false;
}

static bool fail(struct cursor *c, const char *why)
{
	return fail_at(c, c->at, why);
}

/* '\0' at the end; a real one is refused before anything is read. */
static char peek(const struct cursor *c)
{
	return c->p < c->end ? *c->p : '\0';
}

static void step(struct cursor *c)
{
	char was = *c->p++;

	if (was == '\n') {
		c->at.line++;
		c->at.column = 1;
	} else if (c->p == c->end || ((unsigned char)*c->p & 0xc0) != 0x80) {
		c->at.column++; /* the next byte begins a character */
	}
}

static void blanks(struct cursor *c)
{
	while (peek(c) == ' ' || peek(c) == '\t')
		step(c);
}

static void comment(struct cursor *c)
{
	if (peek(c) == '#')
		while (c->p < c->end && peek(c) != '\n')
			step(c);
}

/* To the end of the line, where nothing but a comment may be left. */
static bool line_end(struct cursor *c)
{
	blanks(c);
	comment(c);
	if (peek(c) == '\r')
		step(c);
	if (c->p == c->end)
		return true;
	if (peek(c) != '\n')
		return fail(c, "the line should end here; a comment begins with '#'");
	step(c);
	return true;
}

/* Over empty lines and comments, which may stand between the members of a list. */
static void gap(struct cursor *c)
{
	for (;;) {
		blanks(c);
		comment(c);
		if (peek(c) != '\n' && peek(c) != '\r')
			return;
		step(c);
	}
}

/* ---- words --------------------------------------------------------------------------------- */

static bool is_bare(char b)
{
	return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') ||
	       b == '_' || b == '-';
}

static bool put(struct cursor *c, size_t from, char b)
{
	if (c->used - from >= TOML_WORD_MAX)
		return fail(c, "this is too long: a word has at most 255 bytes");
	c->store[c->used++] = b;
	return true;
}

static const char *finish(struct cursor *c, size_t from)
{
	c->store[c->used++] = '\0';
	return c->store + from;
}

/* A string in quotes, on this line. */
static bool quoted(struct cursor *c, struct toml_word *ret)
{
	char quote = peek(c);
	size_t from = c->used;

	ret->at = c->at;
	step(c);
	while (peek(c) != quote) {
		if (c->p == c->end || peek(c) == '\n' || peek(c) == '\r')
			return fail_at(c, ret->at, "this string has no end on its line");
		if (quote == '"' && peek(c) == '\\') {
			step(c);
			if (peek(c) != '"' && peek(c) != '\\')
				return fail(c,
					    "the only escapes are \\\" and \\\\; '...' has none");
		}
		if (!put(c, from, peek(c)))
			return false;
		step(c);
	}
	step(c);
	if (c->used == from && peek(c) == quote)
		return fail_at(c, ret->at, "strings of several lines are not supported");
	ret->text = finish(c, from);
	return true;
}

static bool bare(struct cursor *c, struct toml_word *ret)
{
	size_t from = c->used;

	ret->at = c->at;
	while (is_bare(peek(c))) {
		if (!put(c, from, peek(c)))
			return false;
		step(c);
	}
	ret->text = finish(c, from);
	return true;
}

static bool key_part(struct cursor *c, struct toml_word *ret)
{
	if (peek(c) == '"' || peek(c) == '\'')
		return quoted(c, ret);
	if (!is_bare(peek(c)))
		return fail(c, "a name should be here: letters, digits, '_' and '-', or in quotes");
	return bare(c, ret);
}

/* ---- values -------------------------------------------------------------------------------- */

static bool is_digit(char b)
{
	return b >= '0' && b <= '9';
}

/* Number, true or false. TOML has more forms of numbers; none is needed. */
static bool plain(struct cursor *c, struct toml_value *ret)
{
	size_t from = c->used;
	bool digits = true;
	unsigned int dots = 0;

	ret->at = c->at;
	while (is_bare(peek(c)) || peek(c) == '.' || peek(c) == '+' || peek(c) == ':') {
		digits &= is_digit(peek(c)) || peek(c) == '.' ||
			  (peek(c) == '-' && c->used == from);
		dots += peek(c) == '.';
		if (!put(c, from, peek(c)))
			return false;
		step(c);
	}
	size_t len = c->used - from;

	ret->text = finish(c, from);
	const char *s = ret->text + (ret->text[0] == '-');

	ret->kind = dots ? TOML_DECIMAL : TOML_INTEGER;
	if (strcmp(ret->text, "true") == 0 || strcmp(ret->text, "false") == 0)
		ret->kind = TOML_BOOLEAN;
	else if (len == 0)
		return fail_at(c, ret->at,
			       "a value should be here: a number, a string in quotes, or a list");
	else if (!digits || dots > 1 || !is_digit(*s) || !is_digit(s[strlen(s) - 1]))
		return fail_at(
			c, ret->at,
			"invalid value: write strings in quotes, and numbers as in 2048 or 0.5");
	else if (s[0] == '0' && is_digit(s[1]))
		return fail_at(c, ret->at, "a number does not begin with a zero");
	return true;
}

static bool list(struct cursor *c, struct toml_value *ret)
{
	ret->kind = TOML_LIST;
	ret->at = c->at;
	ret->words = c->words;
	step(c);
	for (;;) {
		gap(c);
		if (peek(c) == ']')
			break;
		if (c->p == c->end)
			return fail_at(c, ret->at, "this list has no end: ']' is missing");
		if (peek(c) != '"' && peek(c) != '\'')
			return fail(c, "a string in quotes should be here, or the list's ']'");
		if (ret->n == TOML_WORDS_MAX)
			return fail(c, "this list is too long: it has more than 512 words");
		if (!quoted(c, &c->words[ret->n]))
			return false;
		ret->n++;
		gap(c);
		if (peek(c) == ',')
			step(c);
		else if (c->p < c->end && peek(c) != ']')
			return fail(c, "a comma should be here, or the list's ']'");
	}
	step(c);
	return true;
}

static bool value(struct cursor *c, struct toml_value *ret)
{
	struct toml_word w;

	*ret = (struct toml_value){ 0 };
	if (peek(c) == '[')
		return list(c, ret);
	if (peek(c) == '{')
		return fail(c, "inline tables are not supported: use [owners.NAME]");
	if (peek(c) != '"' && peek(c) != '\'')
		return plain(c, ret);
	if (!quoted(c, &w))
		return false;
	*ret = (struct toml_value){ .kind = TOML_STRING, .at = w.at, .text = w.text };
	return true;
}

/* ---- lines --------------------------------------------------------------------------------- */

static bool table(struct cursor *c)
{
	struct toml_word parts[TOML_PARTS_MAX];
	struct toml_at at = c->at;
	size_t n = 0;

	step(c);
	if (peek(c) == '[')
		return fail(c, "arrays of tables are not supported: write one [");
	for (;;) {
		blanks(c);
		if (n == TOML_PARTS_MAX)
			return fail(c, "this name has too many parts");
		if (!key_part(c, &parts[n]))
			return false;
		n++;
		blanks(c);
		if (peek(c) != '.')
			break;
		step(c);
	}
	if (peek(c) != ']')
		return fail(c, "a ']' should be here");
	step(c);
	if (!line_end(c))
		return false;
	c->r->table(c->r->arg, at, parts, n);
	return true;
}

static bool pair(struct cursor *c)
{
	struct toml_word key;
	struct toml_value v;

	if (!key_part(c, &key))
		return false;
	blanks(c);
	if (peek(c) == '.')
		return fail(c, "dotted keys are not supported: use [owners.NAME]");
	if (peek(c) != '=')
		return fail(c, "a '=' should be here");
	step(c);
	blanks(c);
	if (!value(c, &v) || !line_end(c))
		return false;
	c->r->pair(c->r->arg, &key, &v);
	return true;
}

/* Valid UTF-8 without control characters. The error has the place of the first other byte. */
static bool check_text(struct cursor *c)
{
	struct cursor look = *c;

	while (look.p < look.end) {
		unsigned char b = (unsigned char)*look.p;
		size_t n = utf8_next(look.p, (size_t)(look.end - look.p));

		if (n == 0)
			return fail_at(c, look.at, "this is not UTF-8");
		if (b == 0x7f || (b < 0x20 && b != '\t' && b != '\n' &&
				  !(b == '\r' && look.p + 1 < look.end && look.p[1] == '\n')))
			return fail_at(c, look.at, "a policy has no control characters");
		while (n-- > 0)
			step(&look);
	}
	return true;
}

void toml_read(const char *text, size_t len, const struct toml_reader *r)
{
	struct cursor c = { .p = text, .end = text + len, .at = { 1, 1 }, .r = r };
	bool good;

	c.store = malloc(STORE_BYTES);
	c.words = calloc(TOML_WORDS_MAX, sizeof(*c.words));
	good = c.store && c.words ? check_text(&c) : fail(&c, "out of memory");
	while (good && c.p < c.end) {
		c.used = 0;
		gap(&c);
		if (c.p == c.end)
			break;
		good = peek(&c) == '[' ? table(&c) : pair(&c);
	}
	free(c.store);
	free(c.words);
}
