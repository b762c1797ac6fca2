/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - Command line options and their variables, described by a table.
 *
 * Each program has one table of rows and one struct that the rows fill. The parser, the error
 * messages and --help all read the table. A value comes from four places; each overrides the ones
 * before it: the default of the row, the variable of an older service (the caller passes it to
 * options_set()), the variable CAISSON_NAME of the environment, the command line.
 *
 * The command line: `--name VALUE`, `--name=VALUE`, `-n VALUE`; "--" ends the options. An option
 * that is given twice has its last value; a list gets both. A list from the command line replaces
 * a list from the environment. A variable that is empty counts as not set.
 *
 * The functions write nothing and read no environment except the one that the caller passes in.
 * Functions that fail return -EINVAL or -ENOMEM with a message that names the option (or variable)
 * and the remedy in one line.
 */
#ifndef CAISSON_BASE_OPTIONS_H
#define CAISSON_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct err;

#define OPTIONS_ROWS_MAX 128

/* The form of a value, and the type of the member that it is stored in. */
enum option_kind {
	OPTION_FLAG,     /* bool: takes no value; the variable turns it on unless it is "0" */
	OPTION_SWITCH,   /* bool: yes; with a value, as in --name=no, yes or no */
	OPTION_STRING,   /* const char *: any text, borrowed */
	OPTION_TEXT,     /* const char *: the same, not empty */
	OPTION_PATH,     /* const char *: an absolute path */
	OPTION_NUMBER,   /* uint64_t */
	OPTION_SIZE,     /* uint64_t: bytes */
	OPTION_DURATION, /* uint64_t: milliseconds */
	OPTION_CPUS,     /* uint32_t: thousandths of a processor */
	OPTION_LIST,     /* const char *[max + 1], ends with NULL: one item per option, borrowed */
	OPTION_PAIRS,    /* the same; each item is KEY=VALUE */
	OPTION_COMMAS,   /* the same; items separated by commas, owned by struct options */
	OPTION_CUSTOM,   /* @set stores it */
};

/* Rows name the first five members in this order and the others by name. */
struct option_row {
	const char *name;  /* "--memory" */
	const char *alias; /* "-m"; NULL: none */
	const char *value; /* the name of the value in --help; NULL: the option takes none */
	enum option_kind kind;
	size_t offset;        /* of the member in the caller's struct */
	unsigned int verbs;   /* a mask of the caller's verbs that have it; 0: all */
	unsigned int section; /* of --help */
	bool env;             /* --max-body is also the variable CAISSON_MAX_BODY */
	uint64_t min, max;    /* numbers: both included, max 0: no limit; lists: most items */
	const char *initial;  /* default, written like a value; NULL: the member stays as it is */
	const char *help;     /* one line */
	int (*check)(const char *value, struct err *e); /* a text or an item; NULL: none */
	int (*set)(void *target, const char *value, struct err *e); /* OPTION_CUSTOM */
};

enum option_source {
	OPTION_BY_DEFAULT,
	OPTION_BY_OLD_NAME,
	OPTION_BY_VARIABLE,
	OPTION_BY_ARGUMENT
};

struct options {
	/* The caller sets these. */
	const struct option_row *rows;
	size_t n_rows;       /* at most OPTIONS_ROWS_MAX */
	unsigned int verb;   /* the verb's bit */
	const char *command; /* "caisson run", whose --help lists the options; NULL: has none */
	void *target;        /* the struct that rows fill */
	char **env;          /* like environ; NULL: none */
	bool all_variables;  /* every row has a variable, whatever its @env */
	bool stop;           /* options end at the first other argument */
	char **rest;         /* room for argc + 1 pointers; NULL: see options_arguments() */
	/* Every value of the command line is checked by this first; NULL: none. */
	int (*check)(const struct option_row *row, const char *value, struct err *e);
	unsigned int other_verbs; /* an option of these verbs is refused with @other_remedy */
	const char *other_remedy;
	/* The parser sets these. */
	int end;                        /* index in argv after the last option (and the "--") */
	int n_rest;                     /* length of @rest */
	int n_before;                   /* how many of them stood before the "--" */
	bool dashes;                    /* there was a "--" */
	void *owned;                    /* strings, see options_free() */
	uint8_t from[OPTIONS_ROWS_MAX]; /* enum option_source of each row */
};

/*
 * options_parse() - Defaults, then the environment, then the arguments from argv[1] on.
 * Return: 0; 1 when --help or -h is among the options, before anything is parsed; or an error.
 * options_free() in every case.
 */
int options_parse(struct options *p, int argc, char **argv, struct err *e);

/* The steps of options_parse(), for a caller that has others between them. */
int options_defaults(struct options *p, struct err *e);
int options_environment(struct options *p, struct err *e);
/*
 * options_arguments() - Other arguments go to @rest, in order, with a NULL at the end. Without
 * @rest they are left to the caller if @stop is set, and refused otherwise.
 */
int options_arguments(struct options *p, int argc, char **argv, struct err *e);

/* options_set() - Store a value of @name, a row of the table. @label: its name in a message. */
int options_set(struct options *p, const char *name, enum option_source by, const char *label,
		const char *value, struct err *e);

/* options_given() - Whether someone gave the option @name; false where the verb has none. */
bool options_given(const struct options *p, const char *name);

/* options_has() - Whether @name ("--help", "-h", "--name") is among the options, read as such. */
bool options_has(const struct options *p, int argc, char **argv, const char *name);

/* options_has_word() - Whether argv has @word before "--", for the form of error messages. */
bool options_has_word(int argc, char **argv, const char *word);

/* options_own() - A copy of @len bytes that lives until options_free(); NULL: no memory. */
char *options_own(struct options *p, const char *text, size_t len);
void options_free(struct options *p);

/* options_count() - The length of a list. */
size_t options_count(const char *const *list);

/* options_help() - One line per option of the verb in this section. */
void options_help(const struct options *p, unsigned int section, FILE *out);

/* ---- without a table: programs that prepare the arguments of another one ------------------- */

/*
 * options_find() - Where argv (it ends with NULL) has the last value of @name; NULL: nowhere.
 * @ret_joined: the argument is "--name=value"; may be NULL.
 */
char **options_find(char **argv, const char *name, bool *ret_joined);

/* options_peek() - The last value of @name, else its variable in @env; NULL: neither is set. */
const char *options_peek(char **argv, char **env, const char *name);

/* options_lookup() - The value of a variable in @env; NULL: not set, or empty. */
const char *options_lookup(char **env, const char *variable);

/* ---- one value, for options.c: option_value.c ----------------------------------------------- */

/*
 * option_store() - Parse @value as the kind of @row and store it in the target.
 * Return: 0, or a negative errno with a message that does not name the option.
 */
int option_store(struct options *p, const struct option_row *row, const char *value, struct err *e);

/* option_clear() - Empty the list of @row. Other kinds stay as they are. */
void option_clear(const struct options *p, const struct option_row *row);

#endif
