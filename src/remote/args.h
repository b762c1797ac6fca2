/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - Options of a verb from a table: parser and --help both read it.
 *
 * `--name VALUE` and `--name=VALUE`; `--` ends them. Options and other arguments may be mixed. An
 * option that is given twice has the last value.
 */
#ifndef CAISSON_REMOTE_ARGS_H
#define CAISSON_REMOTE_ARGS_H

#include <stddef.h>
#include <stdio.h>

struct err;

enum args_kind {
	ARGS_FLAG,  /* bool */
	ARGS_TEXT,  /* const char *, borrowed from argv; never empty */
	ARGS_COUNT, /* uint64_t, 1 to 2^63 - 1 */
};

struct args_row {
	const char *name;  /* "--json" */
	const char *value; /* what --help calls it; NULL for a flag */
	enum args_kind kind;
	unsigned int verbs; /* which of the caller's verbs have it, a mask */
	size_t offset;      /* in the caller's struct */
	const char *help;
};

/*
 * args_parse() - Fill @target from argv[1] on.
 * @verb: bits of the rows' masks
 * @rest: room for argc pointers; other arguments, in order, end with NULL
 *
 * Return: how many of those, or -EINVAL. --help and -h are the caller's to ask for, see below.
 */
int args_parse(const struct args_row *rows, size_t n, unsigned int verb, int argc, char **argv,
	       void *target, char **rest, struct err *e);

/* args_wants_help() - Whether --help or -h is among the options. */
int args_wants_help(int argc, char **argv);

/* args_usage() - One line per option of @verb. */
void args_usage(const struct args_row *rows, size_t n, unsigned int verb, FILE *out);

#endif
