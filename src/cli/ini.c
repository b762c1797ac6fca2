/* SPDX-License-Identifier: Apache-2.0 */
/* ini.c - See ini.h. */
#include "cli/ini.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const struct ini_form ini_python = { .delimiters = "=:", .continues = 1 };
const struct ini_form ini_npm = { .delimiters = "=" };

static const char blanks[] = " \t\r\f\v";

/* Without spaces at either end; in place. */
static char *trim(char *s)
{
	s += strspn(s, blanks);
	for (size_t n = strlen(s); n > 0 && strchr(blanks, s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

struct pair {
	const char *key; /* NULL: none is open */
	char value[INI_VALUE_MAX];
	bool fits;
};

static void append(struct pair *p, const char *text)
{
	size_t n = strlen(p->value), len = strlen(text);

	if (n + len + 2 > sizeof(p->value)) {
		p->fits = false;
		return;
	}
	(void)snprintf(p->value + n, sizeof(p->value) - n, "%s%s", n ? "\n" : "", text);
}

/* @line: not empty, and no comment. */
static void begin(struct pair *p, const struct ini_form *form, char *line)
{
	char *delimiter = strpbrk(line, form->delimiters);

	p->key = NULL;
	if (!delimiter)
		return;
	*delimiter = '\0';
	p->key = trim(line);
	p->value[0] = '\0';
	p->fits = true;
	append(p, trim(delimiter + 1));
}

void ini_read(const struct ini_form *form, char *text,
	      void (*fn)(void *arg, const char *section, const char *key, const char *value),
	      void *arg)
{
	static struct pair p;
	const char *section = "";

	p.key = NULL;
	while (text) {
		char *raw = strsep(&text, "\n"), *line;
		bool indented = raw[0] && strchr(blanks, raw[0]);

		line = trim(raw);
		if (!line[0] || line[0] == '#' || line[0] == ';')
			continue;
		if (form->continues && indented && p.key) {
			append(&p, line);
			continue;
		}
		if (p.key && p.fits)
			fn(arg, section, p.key, p.value);
		p.key = NULL;
		size_t n = strlen(line);

		if (line[0] == '[' && line[n - 1] == ']') {
			line[n - 1] = '\0';
			section = line + 1;
		} else {
			begin(&p, form, line);
		}
	}
	if (p.key && p.fits)
		fn(arg, section, p.key, p.value);
	explicit_bzero(&p, sizeof(p));
}
