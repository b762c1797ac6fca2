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

/* output_reserve() - The most bytes that the first @chars characters of a stream can take. */
uint64_t output_reserve(uint64_t chars);

/*
 * output_head() - The first @chars characters of the bytes in memory. Return: the text, borrowed
 * from the spool, of *@ret_len bytes.
 */
const char *output_head(const struct spool *s, uint64_t chars, size_t *ret_len);

/*
 * output_json() - Write the members @key (the first @chars characters) and, if bytes were replaced
 * in it, @key_base64. Return: whether a part of the stream was left out.
 */
bool output_json(const struct spool *s, struct json *j, const char *key, uint64_t chars);

/*
 * output_both_json() - Write the member `output`: stdout and then stderr, as much of each as
 * output_json() writes.
 */
void output_both_json(const struct spool *out, const struct spool *err, struct json *j,
		      uint64_t chars);

/*
 * The state between chunks of a live stream, each of which is to end after a whole character. All
 * zero: the beginning.
 */
struct text_joiner {
	char tail[4]; /* the incomplete character at the end of the last chunk */
	size_t n_tail;
};

/*
 * text_join() - The text that can be shown now: the bytes that waited, and then @data, without an
 * incomplete character at the end, which waits for a later chunk. @end: no chunk follows, so
 * nothing waits. @room: memory for the joined text, if bytes waited; its err is set if there is no
 * memory. Return: the text, of *@ret_len bytes, in @data or @room.
 */
const char *text_join(struct text_joiner *t, const char *data, size_t len, bool end,
		      struct buf *room, size_t *ret_len);

#endif
