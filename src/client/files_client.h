/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_client.h - The client of file calls (wire/files.h): a request, and a parser of the answer.
 *
 * The parser is pure and takes bytes in pieces of any size. Content is passed to the caller as it
 * comes and not kept; everything else is kept until it is whole, in at most FILES_TEXT_MAX bytes.
 * An answer is data of a sandbox: lengths must add up, kinds must be known, nothing follows the
 * end.
 */
#ifndef CAISSON_CLIENT_FILES_CLIENT_H
#define CAISSON_CLIENT_FILES_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/files.h"

struct err;

struct files_request {
	uint32_t id;
	uint32_t op, flags, mode, depth;
	uint64_t offset, length, limit;
	const char *path, *to; /* to: NULL but for a move */
	uint32_t uid, gid;
};

/* files_ask() - Send a file call. The answer comes as INIT_STARTED or INIT_FAILED with its id. */
int files_ask(int channel, const struct files_request *q, struct err *e);

/* Bytes that are not NUL-terminated. */
struct files_text {
	const char *data;
	size_t len;
};

/* files_text_copy() - As a string, for free(); NULL without memory. */
char *files_text_copy(struct files_text t);

/* The parts of an answer. A negative result ends the parsing, and files_feed() returns it. Without
 * stat() or event() such a frame is malformed. */
struct files_sink {
	int (*stat)(void *arg, const struct files_stat *st, struct files_text name,
		    struct files_text target);
	int (*data)(void *arg, const char *data, size_t len);
	int (*event)(void *arg, const struct files_event *ev, struct files_text name,
		     struct files_text from);
	int (*end)(void *arg, const struct files_end *end, struct files_text where);
};

struct files_parser {
	struct files_frame head;
	size_t have; /* of the head, then of the payload */
	bool in_payload, ended;
	char *text; /* the payload of a frame that has to be whole; allocated when first needed */
};

void files_parser_free(struct files_parser *p);

/* files_feed() - 0; -EPROTO for bytes that no worker sends; -ENOMEM; or the sink's result. */
int files_feed(struct files_parser *p, const struct files_sink *sink, void *arg, const void *data,
	       size_t len);

/* files_head() - The head of a frame to the worker: content, or its end with @len 0. */
struct files_frame files_head(size_t len);

#endif
