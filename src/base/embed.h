/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.h - Files that tools/embed.py compiled into the program.
 *
 * A build rule names the files and a symbol; the generated source defines
 * `const struct embed_file SYMBOL[]`, ending with a row whose name is NULL; its users declare it
 * `extern`. Each file's bytes are followed by a NUL that is not counted.
 */
#ifndef CAISSON_BASE_EMBED_H
#define CAISSON_BASE_EMBED_H

#include <stddef.h>
#include <string.h>

struct embed_file {
	const char *name;
	const unsigned char *data;
	size_t len;
};

/* embed_find() - By name; NULL: unknown. */
static inline const struct embed_file *embed_find(const struct embed_file *files, const char *name)
{
	for (; files->name; files++)
		if (strcmp(files->name, name) == 0)
			return files;
	return NULL;
}

#endif
