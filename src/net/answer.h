/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - Parse the answer of a server that is not trusted: the client's side of HTTP/1.x.
 *
 * For a relay, which frames the answer anew: the parser yields a status, headers and bytes, and
 * decides alone where the message ends. Parsing is llhttp's in strict mode. Also refused are a head
 * over ANSWER_HEAD_MAX bytes (1xx answers before it count) or with more than ANSWER_HEADERS_MAX
 * headers, control bytes in a value, a transfer coding other than `chunked`, a status out of 200 to
 * 599, and a 101 that was not requested or names no protocol. 1xx answers and trailers are dropped.
 *
 * Pure and bounded: it holds one head, and no body.
 */
#ifndef CAISSON_NET_ANSWER_H
#define CAISSON_NET_ANSWER_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ANSWER_HEAD_MAX (32u << 10)
#define ANSWER_HEADERS_MAX 100u

struct answer;

struct answer_ops {
	/* The head is complete: status, headers, length. Also of a 101, which has no body. */
	void (*head)(struct answer *a);
	void (*body)(struct answer *a, const char *data, size_t len); /* not empty */
};

struct answer {
	const struct answer_ops *ops;
	void *arg;
	int status;      /* valid from head on */
	bool has_length; /* the head announces the length of the body: */
	uint64_t length;
	const char *why; /* why it was refused; static */

	bool to_head, may_switch; /* see answer_init() */
	bool headed, over;
	llhttp_t parser;
	size_t seen;     /* bytes of heads */
	struct buf text; /* names and values, NUL after each */
	struct {
		uint32_t name, value; /* in text */
	} at[ANSWER_HEADERS_MAX];
	size_t n;
};

/*
 * answer_init() - @to_head: of a HEAD request, so there is no body. @may_switch: 101 was requested.
 * answer_free() in every case.
 */
void answer_init(struct answer *a, bool to_head, bool may_switch, const struct answer_ops *ops,
		 void *arg);
void answer_free(struct answer *a);

/*
 * answer_feed() - Parse more bytes. @ret_used: with 1, how many of them belong to the answer.
 * Return: 0 go on; 1 the answer is complete; -EPROTO it is invalid (why); -ENOMEM.
 */
int answer_feed(struct answer *a, const char *data, size_t len, size_t *ret_used);
/* answer_eof() - The server closed. 1: the answer is complete; -EPROTO: it is not. */
int answer_eof(struct answer *a);

/* From head on. Names are in lower case, in the order of the head, and may repeat. */
const char *answer_name(const struct answer *a, size_t i);
const char *answer_value(const struct answer *a, size_t i);
/* answer_header() - The first of that name, or NULL. */
const char *answer_header(const struct answer *a, const char *lower_name);

#endif
