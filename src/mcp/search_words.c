/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_words.c - Cutting text into words, and comparing words.
 *
 * The distance of two words counts what people do wrong when they type: a letter too much, too few,
 * another one, or two in the wrong order. It costs, and is asked only of words that could pass: of
 * nearly the same length and letters.
 */
#include "mcp/search_words.h"

#include <string.h>

#define TYPO_MIN 4u  /* shorter words are too near to too many others */
#define TYPOS_MIN 8u /* from here on two */

static bool is_lower(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || c >= 0x80;
}

static bool is_upper(unsigned char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_letter(unsigned char c)
{
	return is_lower(c) || is_upper(c) || (c >= '0' && c <= '9');
}

/* Whether a new word begins at @at, in the middle of letters: aB, and the B of AABb. */
static bool is_hump(const char *at, const char *end)
{
	unsigned char before = (unsigned char)at[-1], c = (unsigned char)at[0];
	unsigned char after = at + 1 < end ? (unsigned char)at[1] : 0;

	return is_upper(c) && (is_lower(before) || (is_upper(before) && is_lower(after)));
}

void word_stem(struct word *w)
{
	static const char *const endings[] = { "ings", "ing", "ies", "ed", "es", "s", "e", "y" };

	w->stem = w->len;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && w->stem == w->len; i++) {
		size_t n = strlen(endings[i]);

		if (w->len >= n + 3 && memcmp(w->text + w->len - n, endings[i], n) == 0)
			w->stem = (uint8_t)(w->len - n);
	}
}

bool word_next(const char **at, const char *end, struct word *ret)
{
	const char *p = *at;

	while (p < end && !is_letter((unsigned char)*p))
		p++;
	ret->len = ret->stem = 0;
	ret->letters = 0;
	for (const char *begin = p; p < end && is_letter((unsigned char)*p); p++) {
		unsigned char c = (unsigned char)*p;

		if (p > begin && is_hump(p, end))
			break;
		if (is_upper(c))
			c = (unsigned char)(c - 'A' + 'a');
		if (ret->len < WORD_MAX)
			ret->text[ret->len++] = (char)c;
		ret->letters |= 1u << (c % 32);
	}
	*at = p;
	return ret->len > 0;
}

bool word_common(const struct word *w)
{
	static const char *const common[] = {
		"a",     "an",  "and",  "are",  "as",    "at",   "be",   "by", "can",
		"do",    "for", "from", "how",  "i",     "in",   "is",   "it", "me",
		"my",    "of",  "on",   "or",   "that",  "the",  "this", "to", "tool",
		"tools", "use", "want", "what", "which", "with", "you",
	};

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (strlen(common[i]) == w->len && memcmp(common[i], w->text, w->len) == 0)
			return true;
	return false;
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int word_distance(const struct word *a, unsigned int a_len, const struct word *b,
			   unsigned int b_len, unsigned int most)
{
	unsigned int row[3][WORD_MAX + 1];
	unsigned int *before = row[0], *last = row[1], *now = row[2];

	for (unsigned int j = 0; j <= b_len; j++)
		last[j] = j;
	for (unsigned int i = 1; i <= a_len; i++) {
		unsigned int best = now[0] = i;

		for (unsigned int j = 1; j <= b_len; j++) {
			unsigned int other = a->text[i - 1] != b->text[j - 1];

			now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + other);
			if (i > 1 && j > 1 && a->text[i - 1] == b->text[j - 2] &&
			    a->text[i - 2] == b->text[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
			best = least(best, now[j]);
		}
		if (best > most)
			return most + 1;
		unsigned int *spare = before;

		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

/* How near two words of these lengths are that are not the same; 0: not at all. */
static unsigned int typo(const struct word *asked, unsigned int a, const struct word *word,
			 unsigned int w)
{
	unsigned int most = a < TYPO_MIN ? 0 : a < TYPOS_MIN ? 1 : 2;
	unsigned int longer = a > w ? a - w : w - a;

	if (most == 0 || w < TYPO_MIN || longer > most)
		return 0;
	unsigned int n = word_distance(asked, a, word, w, most);

	return n > most ? 0 : 60 - 15 * n;
}

static unsigned int misspelt(const struct word *asked, const struct word *word)
{
	/* One step changes two kinds of letters at most, an ending three. */
	if (__builtin_popcount(asked->letters ^ word->letters) > 7)
		return 0;
	unsigned int near = typo(asked, asked->len, word, word->len);

	if (near == 0 && (asked->stem != asked->len || word->stem != word->len))
		near = typo(asked, asked->stem, word, word->stem);
	return near;
}

unsigned int word_near(const struct word *asked, const struct word *word)
{
	size_t a = asked->len, w = word->len;

	if (a == w && memcmp(asked->text, word->text, a) == 0)
		return 100;
	if (asked->stem == word->stem && memcmp(asked->text, word->text, asked->stem) == 0)
		return 90;
	if (a >= 2 && w > a && memcmp(asked->text, word->text, a) == 0)
		return a >= 4 ? 75 : 60;
	if (w >= 4 && a > w && memcmp(asked->text, word->text, w) == 0)
		return 50;
	if (a >= 4 && w > a && memmem(word->text, w, asked->text, a))
		return 45;
	return misspelt(asked, word);
}
