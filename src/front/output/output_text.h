/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_text.h - Output of a cell as text in JSON: the beginning of a stream for a result, and a
 * live stream chunk by chunk. Bytes that are not UTF-8 become U+FFFD.
 */
#ifndef CAISSON_FRONT_OUTPUT_TEXT_H
#define CAISSON_FRONT_OUTPUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json;
struct spool;

/* output_reserve() - Bytes that the beginning of a stream with @chars characters takes at most. */
uint64_t output_reserve(uint64_t chars);

/* output_head() - The first @chars characters of what is in memory. Return: text of *@ret_len
 * bytes.
 */
const char *output_head(const struct spool *s, uint64_t chars, size_t *ret_len);

/*
 * output_json() - Members @key (the first @chars characters) and, when bytes were replaced in it,
 * @key_base64. Return: whether something was left out.
 */
bool output_json(const struct spool *s, struct json *j, const char *key, uint64_t chars);

/* output_both_json() - Member `output`: stdout and then stderr, as much of each as output_json()
 * gives. */
void output_both_json(const struct spool *out, const struct spool *err, struct json *j,
		      uint64_t chars);

/* Chunks of a live stream, each ended after a whole character. Zero is the beginning. */
struct text_joiner {
	char tail[4]; /* the beginning of a character that the last chunk cut */
	size_t n_tail;
};

/*
 * text_join() - The part of @data that can be shown now, after what waited: a character that ends
 * in a later chunk waits for it. @end: nothing follows. @room: memory for the case that something
 * waited; its err is set when there is none. Return: the text, of *@ret_len bytes.
 */
const char *text_join(struct text_joiner *t, const char *data, size_t len, bool end,
		      struct buf *room, size_t *ret_len);

#endif
