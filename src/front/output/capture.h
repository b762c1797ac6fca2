/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - What a stream of a guest said: the beginning kept, all of it counted.
 */
#ifndef CAISSON_FRONT_CAPTURE_H
#define CAISSON_FRONT_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json;

struct capture {
	struct buf kept;
	uint64_t bytes;
	char tail[4]; /* of a character that the last chunk cut, for capture_data() */
	size_t n_tail;
};

/* capture_init() - Keep at most what @chars characters can take. */
void capture_init(struct capture *c, uint64_t chars);
void capture_add(struct capture *c, const char *data, size_t len);
void capture_free(struct capture *c);

/*
 * capture_data() - The next part of a live stream as members: `data`, in which a character that
 * ends in a later chunk waits for it and other bytes that are not UTF-8 become U+FFFD, and when
 * there are such, `data_base64`. @end: nothing follows.
 */
void capture_data(struct capture *c, const char *data, size_t len, bool end, struct json *j);

/*
 * capture_json() - Members @key (the first @chars characters) and, when bytes were replaced in it,
 * @key_base64. Return: whether something was left out.
 */
bool capture_json(const struct capture *c, struct json *j, const char *key, uint64_t chars);

/* capture_both_json() - Member `output`: stdout and then stderr, as much of each as capture_json()
 * gives. */
void capture_both_json(const struct capture *out, const struct capture *err, struct json *j,
		       uint64_t chars);

#endif
