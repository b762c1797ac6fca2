/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml.h - The part of TOML 1.0 that a policy is written in, with the place of everything.
 *
 * Comments, `[table]` and `[table."quoted part"]`, `key = value`; a value is a whole number, a
 * decimal number, true or false, a string in one line ("..." with \" and \\ as its only escapes, or
 * '...'), or a list of strings, which may go over several lines and end with a comma. A text that
 * is accepted here means the same to any TOML parser. Other features of TOML (dates, inline tables,
 * dotted keys, long strings) are refused by name.
 *
 * Pure: no file, no global. Libraries for TOML give the line of a syntax error only; here every
 * value has its place, so that an error in a value can name it.
 */
#ifndef CAISSON_FRONT_POLICY_TOML_H
#define CAISSON_FRONT_POLICY_TOML_H

#include <stddef.h>

#define TOML_PARTS_MAX 4   /* of a table's name */
#define TOML_WORDS_MAX 512 /* of a list */
#define TOML_WORD_MAX 255  /* bytes of a key, a string or a number */

/* From 1; columns count characters. */
struct toml_at {
	unsigned int line, column;
};

struct toml_word {
	struct toml_at at;
	const char *text; /* UTF-8 without control characters; valid during the call */
};

enum toml_kind { TOML_INTEGER, TOML_DECIMAL, TOML_BOOLEAN, TOML_STRING, TOML_LIST };

struct toml_value {
	enum toml_kind kind;
	struct toml_at at;
	const char *text; /* as it is written, a string without its quotes; NULL for a list */
	const struct toml_word *words;
	size_t n; /* of a list */
};

/* All are called in the order of the text. After fail nothing more is read. */
struct toml_reader {
	void (*table)(void *arg, struct toml_at at, const struct toml_word *parts, size_t n);
	void (*pair)(void *arg, const struct toml_word *key, const struct toml_value *v);
	void (*fail)(void *arg, struct toml_at at, const char *why);
	void *arg;
};

void toml_read(const char *text, size_t len, const struct toml_reader *r);

#endif
