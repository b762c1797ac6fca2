/* SPDX-License-Identifier: Apache-2.0 */
/* search_words.h - Text as words, and how near two words are. For search.c; pure. */
#ifndef CAISSON_MCP_SEARCH_WORDS_H
#define CAISSON_MCP_SEARCH_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#define WORD_MAX 32u /* bytes that are looked at */

struct word {
	char text[WORD_MAX]; /* lower case; not terminated */
	uint8_t len, stem;   /* stem: set by word_stem() */
	uint32_t letters;    /* a bit for each kind of letter that is in it */
};

/*
 * word_next() - The next word of a text: letters and digits; getWeather, get_weather and
 * get-weather are two words. Whatever is not ASCII is a letter. Return: false at the end; otherwise
 * *@at is behind it.
 */
bool word_next(const char **at, const char *end, struct word *ret);

/* word_stem() - Find what is left without the ending of a plural or a verb's form. Before
 * word_near(). */
void word_stem(struct word *w);

/*
 * word_near() - How well @word fits a search for @asked: 0 not at all, 100 it is the same.
 * In between: another form of it, one that begins with it, one that contains it, one with a letter
 * or two wrong.
 */
unsigned int word_near(const struct word *asked, const struct word *word);

/*
 * word_distance() - Letters that are wrong, missing, too many, or two that changed places, between
 * the first @a_len and @b_len letters. Exact up to @most; a larger one is only larger than @most.
 */
unsigned int word_distance(const struct word *a, unsigned int a_len, const struct word *b,
			   unsigned int b_len, unsigned int most);

/* word_common() - One that stands in every sentence. */
bool word_common(const struct word *w);

#endif
