/* SPDX-License-Identifier: Apache-2.0 */
/* lang.h - The languages that `caisson run` knows, how their programs are started, and their code.
 */
#ifndef CAISSON_CLI_LANG_H
#define CAISSON_CLI_LANG_H

struct buf;
struct err;

#define LANG_PREFIX_MAX 6
#define LANG_SOURCE_MAX (64u << 20)

struct lang {
	const char *name;
	const char *suffix;
	const char *inline_prefix[LANG_PREFIX_MAX]; /* then the code, then after_code if set, then
						       arguments */
	const char *after_code; /* fills $0 where the interpreter takes it from there */
	const char *file_prefix[LANG_PREFIX_MAX]; /* then the path, then arguments */
};

/* lang_find() - By name; NULL with a message that lists the languages. */
const struct lang *lang_find(const char *name, struct err *e);

/* lang_of_file() - By suffix; NULL when no language claims it. */
const struct lang *lang_of_file(const char *path);

/* The code of one run. */
struct source {
	const struct lang *lang;
	const char *code; /* NULL: read @fd */
	int fd;           /* of a file, the caller's to close, or of standard input; else -1 */
	const char *name; /* of the file; "-": standard input; NULL: code */
};

/*
 * lang_source() - Decide what is to be run: @code, or else what @arg names: standard input ("-"), a
 * file if there is one of that name, otherwise code.
 * @lang: the language; NULL: that of the file's suffix, else python
 * Return: 0 or a negative errno.
 */
int lang_source(const char *lang, const char *code, const char *arg, struct source *ret,
		struct err *e);

/* lang_read() - All bytes of @fd. @b: its maximum is LANG_SOURCE_MAX. @name: for messages. */
int lang_read(int fd, const char *name, struct buf *b, struct err *e);

#endif
