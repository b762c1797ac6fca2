/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_exchange.h - A request and the file call that serves it. For handle_files*.c.
 *
 * The two know each other until one of them is over: a client that goes away ends the call, a call
 * that is done answers the request. The struct is freed at the end of the round in which both are.
 */
#ifndef CAISSON_FRONT_FILE_EXCHANGE_H
#define CAISSON_FRONT_FILE_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "front/files/file_note.h"
#include "front/files/files.h"

struct http_exchange;
struct json;
struct route_params;

/* A name and its line of a listing, in one allocation. */
struct file_entry {
	size_t name_len, json_len;
	char text[]; /* the name, then the object; a NUL */
};

struct file_exchange {
	struct file_call call;
	struct front *f;
	struct sandbox *sandbox; /* until it is run */
	struct http_exchange *x; /* NULL: answered, or the client is gone */
	struct deferred reaper;
	struct file_note note; /* in the ledger */

	bool has_stat, streaming, body_ended, truncated;
	struct files_stat stat;
	char *target; /* of stat, NUL-terminated, or NULL */
	/* GET: a part was asked for. */
	bool ranged, from_end, to_end;
	uint64_t first, last;
	bool sized;    /* a length was promised */
	uint64_t left; /* of it */
	/* Lists. */
	struct file_entry **entries;
	size_t n_entries, cap_entries, entries_bytes;
	size_t page, most_entries; /* asked for; that there may be */
	char *after;               /* the cursor, or NULL */
	bool more;                 /* on another page */
	struct timer alive;        /* of a watch */
	/* Of a handler with more to it: told when the client goes away, in file_exchange_end()'s
	 * place. */
	void *extra;
	void (*dropped)(struct file_exchange *v);
};

/*
 * file_exchange_new() - For a call on a sandbox of the caller's. NULL: answered. The query or the
 * body, which may be NULL, gives the paths: its members @path and @to (NULL: none), checked for
 * their length.
 */
struct file_exchange *file_exchange_new(struct front *f, struct http_exchange *x,
					const struct route_params *p, const json_t *fields,
					const char *path, const char *to);

/* file_exchange_run() - Fill call.q before. */
void file_exchange_run(struct file_exchange *v, enum files_op op, const struct file_call_ops *ops);

/* file_exchange_part() - The exchange, to be answered now: the client is not ours to watch any
 * more. */
struct http_exchange *file_exchange_part(struct file_exchange *v);

/* file_exchange_end() - The call is released, the memory goes. Idempotent. */
void file_exchange_end(struct file_exchange *v);

/* file_exchange_refuse() - Answer with the call's refusal, and end. */
void file_exchange_refuse(struct file_exchange *v);

/* For ops: keep the (last) stat. */
void file_exchange_keep(struct file_call *c, const struct files_stat *st, struct files_text name,
			struct files_text target);

static inline struct file_exchange *file_exchange_of(struct file_call *c)
{
	return c->owner;
}

/* file_json() - Members of an object about a file. Names that are not UTF-8 are also given in
 * base64. */
void file_json(struct json *j, const char *key, struct files_text name, const struct files_stat *st,
	       struct files_text target);
/* file_json_brief() - Name, type, size and time alone. */
void file_json_brief(struct json *j, const char *key, struct files_text name,
		     const struct files_stat *st);
/* file_mode() - "644" to a number. */
uint32_t file_mode(const char *text);

#endif
