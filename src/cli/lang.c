/* SPDX-License-Identifier: Apache-2.0 */
/* lang.c - The table of languages. */
#include "cli/lang.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"

static const struct lang langs[] = {
	/* -u: what a program prints is seen when it prints it, not when a buffer is full. */
	{ "python", ".py", { "python3", "-u", "-c" }, NULL, { "python3", "-u" } },
	{ "bash", ".sh", { "bash", "-c" }, "bash", { "bash" } },
	{ "javascript", ".js", { "node", "-e" }, "--", { "node" } },
	{ "r", ".r", { "Rscript", "-e" }, NULL, { "Rscript" } },
};

static const struct {
	const char *alias, *name;
} aliases[] = {
	{ "py", "python" },     { "python3", "python" },  { "sh", "bash" }, { "shell", "bash" },
	{ "js", "javascript" }, { "node", "javascript" }, { "R", "r" },
};

const struct lang *lang_find(const char *name, struct err *e)
{
	const char *want = name;

	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (strcmp(aliases[i].alias, name) == 0)
			want = aliases[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(langs); i++)
		if (strcmp(langs[i].name, want) == 0)
			return &langs[i];
	(void)err_say(e, -EINVAL, "--lang: '%s' is unknown; there are: python, bash, javascript, r",
		      name);
	return NULL;
}

const struct lang *lang_of_file(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(langs); i++) {
		size_t n = strlen(langs[i].suffix);

		if (len > n && strcasecmp(path + len - n, langs[i].suffix) == 0)
			return &langs[i];
	}
	return NULL;
}
