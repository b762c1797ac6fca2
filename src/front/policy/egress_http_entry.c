/* SPDX-License-Identifier: Apache-2.0 */
/* egress_http_entry.c - See egress_http_entry.h. */
#include "front/policy/egress_http_entry.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"

static bool is_method(const char *s, size_t len)
{
	static const char *const known[] = { "GET",   "HEAD",   "POST",   "PUT",
					     "PATCH", "DELETE", "OPTIONS" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i]) == len && memcmp(known[i], s, len) == 0)
			return true;
	return false;
}

/* With single commas between; in upper case afterwards. Others than the usual ones are more often a
 * slip. */
static int take_methods(const char *s, size_t len, char *ret, struct err *e)
{
	bool good = len < GATE_METHODS_MAX;

	for (size_t i = 0; good && i < len; i++)
		ret[i] = (char)(s[i] >= 'a' && s[i] <= 'z' ? s[i] - 'a' + 'A' : s[i]);
	for (size_t at = 0, n; good && at <= len; at += n + 1) {
		const char *comma = memchr(ret + at, ',', len - at);

		n = comma ? (size_t)(comma - ret) - at : len - at;
		good = is_method(ret + at, n);
	}
	return good ? 0 :
		      err_say(e, -EINVAL,
			      "'%.*s': before the host come methods, with commas between, as in "
			      "GET,POST api.example.com/v1/*",
			      (int)(len < 80 ? len : 80), s);
}

static const char *path_problem(const char *s, size_t len)
{
	if (len >= GATE_PATH_MAX)
		return "is too long";
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f)
			return "has a byte that is no printable ASCII";
		if (strchr("?#\\%", s[i]))
			return "is compared decoded and without a query: write it without ?, #, % and \\";
		if (s[i] == '/' && i + 1 < len && s[i + 1] == '/')
			return "has an empty segment";
		size_t dots = 0;

		while (s[i] == '/' && i + 1 + dots < len && s[i + 1 + dots] == '.')
			dots++;
		if ((dots == 1 || dots == 2) && (i + 1 + dots == len || s[i + 1 + dots] == '/'))
			return "has a segment '.' or '..'";
	}
	return NULL;
}

int http_entry_split(const char **text, size_t *len, struct http_entry *ret, struct err *e)
{
	const char *space = memchr(*text, ' ', *len);

	*ret = (struct http_entry){ .path = "" };
	if (memmem(*text, *len, "://", 3))
		return 0; /* a URL, which is refused as such */
	if (space) {
		size_t n = (size_t)(space - *text);

		if (take_methods(*text, n, ret->methods, e) < 0)
			return -EINVAL;
		*text += n + 1;
		*len -= n + 1;
	}
	const char *slash = memchr(*text, '/', *len);

	if (!slash)
		return 0;
	size_t n = *len - (size_t)(slash - *text);
	const char *problem = path_problem(slash, n);

	if (problem)
		return err_say(e, -EINVAL, "the path in '%.*s' %s", (int)(*len < 200 ? *len : 200),
			       *text, problem);
	memcpy(ret->path, slash, n);
	ret->path[n] = '\0';
	*len -= n;
	return 0;
}
