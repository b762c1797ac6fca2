/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.h - One line of the ledger: written, taken apart, and tied to the line before.
 *
 *   {"seq":7,"time":"2026-11-16T03:25:16.123Z","event":"execution.end","owner":"ann",
 *    "sandbox":"job",...members of the event...,"prev":"<64 hex>","hash":"<64 hex>"}\n
 *
 * without the line break shown here. `hash` is the SHA-256 of the line as it is in the file without
 * `,"hash":"..."` and without its newline; `prev` is the hash of the line before, 64 zeros in
 * line 1. docs/protocol/ledger.md has the exact definition, for checks by other programs.
 *
 * Values that come from clients or guests are escaped, made valid UTF-8 and cut at CHAIN_VALUE_MAX
 * bytes (paths: CHAIN_PATH_MAX) with a mark. A member that does not fit in the line any more is
 * left out, and "cut":true stands at the end instead. No secret, no code and no output is ever
 * passed here: code is hashed.
 *
 * Nothing here touches a file. All memory is taken in chain_open().
 */
#ifndef CAISSON_LEDGER_CHAIN_H
#define CAISSON_LEDGER_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "hash/hash.h"

struct err;

#define CHAIN_LINE_MAX 16384 /* bytes, with the newline */
#define CHAIN_VALUE_MAX 256  /* bytes of a string before it is escaped */
#define CHAIN_PATH_MAX 4096  /* of a path: a long one must not hide what it leads to */
#define CHAIN_HEX 64         /* digits of a SHA-256 */

enum ledger_kind {
	LEDGER_STR,
	LEDGER_STRN,
	LEDGER_PATH,
	LEDGER_INT,
	LEDGER_UINT,
	LEDGER_BOOL,
	LEDGER_SHA256, /* the hash of v.s, len, as 64 hex digits */
	LEDGER_OBJECT, /* the fields up to LEDGER_END are members of this one; not nested further */
	LEDGER_END,
};

/* Keys are the program's own: lower case, digits and '_'. */
struct ledger_field {
	const char *key;
	enum ledger_kind kind;
	union {
		const char *s; /* NULL is written as null */
		int64_t i;
		uint64_t u;
		bool b;
	} v;
	size_t len; /* LEDGER_STRN, LEDGER_SHA256 */
};

#define L_STR(k, x) ((struct ledger_field){ .key = (k), .kind = LEDGER_STR, .v.s = (x) })
#define L_STRN(k, x, n)                                                                            \
	((struct ledger_field){ .key = (k), .kind = LEDGER_STRN, .v.s = (x), .len = (n) })
#define L_PATH(k, x) ((struct ledger_field){ .key = (k), .kind = LEDGER_PATH, .v.s = (x) })
#define L_INT(k, x) ((struct ledger_field){ .key = (k), .kind = LEDGER_INT, .v.i = (x) })
#define L_UINT(k, x) ((struct ledger_field){ .key = (k), .kind = LEDGER_UINT, .v.u = (x) })
#define L_BOOL(k, x) ((struct ledger_field){ .key = (k), .kind = LEDGER_BOOL, .v.b = (x) })
#define L_SHA256(k, x, n)                                                                          \
	((struct ledger_field){ .key = (k), .kind = LEDGER_SHA256, .v.s = (x), .len = (n) })
#define L_OBJECT(k) ((struct ledger_field){ .key = (k), .kind = LEDGER_OBJECT })
#define L_END ((struct ledger_field){ .key = "", .kind = LEDGER_END })

struct ledger_event {
	const char *event;   /* the program's own: lower case, digits, '_' and '.' */
	const char *owner;   /* NULL: null */
	const char *sandbox; /* NULL: null */
	const struct ledger_field *fields;
	size_t n;
};

/* Where a chain stands: after the line with this number and hash. */
struct chain_link {
	bool known;   /* false: any line may come next, the one that does sets the place */
	uint64_t seq; /* 0 with known: at the very beginning */
	char hash[CHAIN_HEX + 1];
};

/* A line taken apart; the pointers are into it. */
struct chain_line {
	uint64_t seq;
	const char *prev, *hash; /* CHAIN_HEX digits each */
	size_t body_len;         /* the hash is over these bytes and a '}' */
};

/* The hash function and room to write in. Zero is one that is not open. */
struct chain {
	struct hash hash;
	struct buf item; /* one member, before it is known to fit */
};

/* chain_open() - 0 or -errno. chain_close() in every case. */
int chain_open(struct chain *c, struct err *e);
void chain_close(struct chain *c);
#define _chain_ __attribute__((cleanup(chain_close)))

/* chain_start() - The link that line 1 ties to: number 0, 64 zeros. */
void chain_start(struct chain_link *link);

/*
 * chain_format() - The line after @link, with its newline, into @out, which is cleared first.
 * @time_ns: nanoseconds of CLOCK_REALTIME
 * @next: set to the link after this line; may be @link
 *
 * Return: 0; -EINVAL when a name or an object is not as described above (a mistake of the caller);
 * -EIO when libcrypto fails; out->err.
 */
int chain_format(struct chain *c, struct buf *out, const struct chain_link *link, uint64_t time_ns,
		 const struct ledger_event *event, struct chain_link *next);

/*
 * chain_parse() - Take a line (without its newline) apart. Head and tail are checked byte by byte;
 * the members between are covered by the hash and not looked at.
 * Return: NULL, or what is wrong with it, as words that follow "the line".
 */
const char *chain_parse(const char *line, size_t len, struct chain_line *ret);

/*
 * chain_check() - Whether this line (without its newline) is whole and follows @link, which is
 * moved to it then. Return: 0, or -EBADMSG with the reason in @e, and @link as it was; -EIO.
 */
int chain_check(struct chain *c, const char *line, size_t len, struct chain_link *link,
		struct err *e);

#endif
