/* SPDX-License-Identifier: Apache-2.0 */
/* ini.h - Files of the form "[section]", "key = value", as pip and npm have them. Pure. */
#ifndef CAISSON_CLI_INI_H
#define CAISSON_CLI_INI_H

#define INI_VALUE_MAX 8192u

struct ini_form {
	const char *delimiters; /* the first of these ends a key */
	int continues;          /* an indented line goes on with the value before it */
};

extern const struct ini_form ini_python; /* configparser of python */
extern const struct ini_form ini_npm;

/*
 * ini_read() - Call @fn for each pair, in their order. @text is taken apart; @section is "" before
 * the first one. Spaces around keys and values are not part of them; lines of a continued value are
 * separated by line feeds. A line that is none of the above, and a value of INI_VALUE_MAX bytes or
 * more, is skipped.
 */
void ini_read(const struct ini_form *form, char *text,
	      void (*fn)(void *arg, const char *section, const char *key, const char *value),
	      void *arg);

#endif
