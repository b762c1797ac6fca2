/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_exchange.h - A request and the file call that serves it. For handle_files*.c.
 *
 * A client that goes away ends the call; a call that is done answers the request. The struct is
 * freed at the end of the round of the loop in which both are over.
 */
#ifndef CAISSON_FRONT_FILE_EXCHANGE_H
#define CAISSON_FRONT_FILE_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/files/file_note.h"
#include "front/files/files.h"

struct http_exchange;
struct json;

/* A name and its line of a listing, in one allocation. */
struct file_entry {
	size_t name_len, json_len;
	char text[]; /* the name, then the object; a NUL */
};

struct file_exchange {
	struct file_call call;
	struct services *services;
	struct sandbox *sandbox; /* until it is run */
	struct http_exchange *x; /* NULL: answered, or the client is gone */
	json_t *fields;          /* the query, or the body where the route has one; checked */
	struct deferred reaper;
	struct file_note note; /* in the ledger */

	bool has_stat, streaming, body_ended, truncated;
	struct files_stat stat;
	char *target; /* of stat, NUL-terminated, or NULL */
	/* GET: the client asked for a range of bytes. */
	bool ranged, from_end, to_end;
	uint64_t first, last;
	bool sized;    /* the answer has a Content-Length */
	uint64_t left; /* bytes of it that are still to be sent */
	/* Lists. */
	struct file_entry **entries;
	size_t n_entries, cap_entries, entries_bytes;
	size_t page, most_entries; /* what the client asked for; what this page may have */
	const char *after;         /* the cursor, in fields; or NULL */
	bool more;                 /* on another page */
	/* A handler with state of its own: called instead of file_exchange_end() when the client
	 * goes away. */
	void *extra;
	void (*dropped)(struct file_exchange *v);
};

/*
 * file_exchange_new() - For a call on @s. NULL: answered. @path, @to: the
 * fields of the request that have the paths, or NULL; without a path the call is for ".".
 */
struct file_exchange *file_exchange_new(struct sandbox *s, struct http_exchange *x,
					const char *path, const char *to);

/* file_exchange_flag() - @flag if the field @name of the request is true, otherwise 0. */
uint32_t file_exchange_flag(const struct file_exchange *v, const char *name, uint32_t flag);
/* file_exchange_take_mode() - The field `mode`, "644", into call.q, if the request has it. */
void file_exchange_take_mode(struct file_exchange *v);

/* file_exchange_run() - Fill call.q before. */
void file_exchange_run(struct file_exchange *v, enum files_op op, const struct file_call_ops *ops);

/* file_exchange_part() - The exchange, to be answered now; it does not end the call any more. */
struct http_exchange *file_exchange_part(struct file_exchange *v);

/* file_exchange_done() - For ops->done: the exchange to answer; NULL: the refusal was answered. */
struct http_exchange *file_exchange_done(struct file_exchange *v);

/* file_exchange_end() - Release the call, and free the memory later. Idempotent. */
void file_exchange_end(struct file_exchange *v);

/* file_exchange_refuse() - Answer with the call's refusal, and end. */
void file_exchange_refuse(struct file_exchange *v);

/* file_exchange_stream() - Begin the answer as a stream of this type, of an unknown length. NULL:
 * Server-Sent Events. */
void file_exchange_stream(struct file_exchange *v, const char *content_type);
/* file_exchange_drained() - For http_stream_on_drain(): the worker may go on. */
void file_exchange_drained(struct http_exchange *x);
/* file_exchange_congested() - For ops->congested: the client reads more slowly than the worker
 * writes. */
bool file_exchange_congested(struct file_call *c);
/* file_exchange_keep() - For ops->stat: keep the last one. */
void file_exchange_keep(struct file_call *c, const struct files_stat *st, struct files_text name,
			struct files_text target);

static inline struct file_exchange *file_exchange_of(struct file_call *c)
{
	return c->owner;
}

/* file_json_text() - Member @key; and KEY_base64 if the text is not UTF-8. */
void file_json_text(struct json *j, const char *key, struct files_text t);
/* file_json() - Members of an object about a file, with its name under @key. */
void file_json(struct json *j, const char *key, struct files_text name, const struct files_stat *st,
	       struct files_text target);
/* file_json_brief() - Only name, type, size and time. */
void file_json_brief(struct json *j, const char *key, struct files_text name,
		     const struct files_stat *st);
/* file_text() - A string, or NULL for an empty text. */
struct files_text file_text(const char *s);

#endif
