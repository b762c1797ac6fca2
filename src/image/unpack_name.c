/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_name.c - Names in a layer's archive: normalised, or refused; and the marks for names that
 * are hidden (whiteouts, opaque directories).
 */
#include <errno.h>
#include <string.h>

#include "image/unpack.h"

#define WHITEOUT ".wh."
#define META ".wh..wh."
#define OPAQUE ".wh..wh..opq"

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(s, word, len) == 0;
}

/* Components of @from with one slash between them; a leading slash means the layer's root. */
static int normalise(const char *from, char to[UNPACK_PATH_MAX])
{
	size_t at = 0, depth = 0;

	while (*(from += strspn(from, "/"))) {
		size_t n = strcspn(from, "/");

		if (is_word(from, n, "..") || n > 255 || at + n + 2 > UNPACK_PATH_MAX)
			return -EPERM;
		if (!is_word(from, n, ".")) {
			if (++depth > UNPACK_DEPTH_MAX)
				return -EPERM;
			if (at)
				to[at++] = '/';
			memcpy(to + at, from, n);
			at += n;
		}
		from += n;
	}
	to[at] = '\0';
	return 0;
}

int unpack_name(const char *name, char path[UNPACK_PATH_MAX])
{
	char *base, *slash;

	if (normalise(name, path) < 0)
		return -EPERM;
	slash = strrchr(path, '/');
	base = slash ? slash + 1 : path;
	if (strcmp(base, OPAQUE) == 0) {
		*(slash ? slash : path) = '\0';
		return NAME_OPAQUE;
	}
	if (strncmp(base, META, strlen(META)) == 0)
		return NAME_IGNORED;
	if (strncmp(base, WHITEOUT, strlen(WHITEOUT)) == 0) {
		const char *hidden = base + strlen(WHITEOUT);

		if (!*hidden || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
			return -EPERM;
		memmove(base, hidden, strlen(hidden) + 1);
		return NAME_WHITEOUT;
	}
	return path[0] ? NAME_PLAIN : NAME_ROOT;
}
