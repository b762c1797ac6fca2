/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_path.c - NAME:PATH, and which names are valid. */
#include "remote/sandbox_path.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

bool sandbox_name_valid(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool alnum = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
			     (s[i] >= '0' && s[i] <= '9');

		if (!alnum && (i == 0 || !(s[i] && strchr("._-", s[i]))))
			return false;
	}
	return len > 0 && len <= SANDBOX_NAME_MAX;
}

int sandbox_name_check(const char *s, struct err *e)
{
	if (sandbox_name_valid(s, strlen(s)))
		return 0;
	return err_say(e, -EINVAL,
		       "'%.80s' is no name of a sandbox: 1 to %d letters, digits, '.', '_' or '-', "
		       "beginning with a letter or digit",
		       s, SANDBOX_NAME_MAX);
}

int sandbox_path_parse(const char *arg, struct sandbox_path *ret, struct err *e)
{
	const char *colon = strchr(arg, ':'), *slash = strchr(arg, '/');
	size_t len = colon ? (size_t)(colon - arg) : 0;

	*ret = (struct sandbox_path){ .path = arg };
	if (!*arg)
		return err_say(e, -EINVAL, "the name of a file is empty");
	if (!colon || (slash && slash < colon))
		return 0;
	if (!sandbox_name_valid(arg, len))
		return err_say(
			e, -EINVAL,
			"'%.*s' is no name of a sandbox (for a file here with a colon in its name: ./%.80s)",
			len > 80 ? 80 : (int)len, arg, arg);
	ret->remote = true;
	memcpy(ret->name, arg, len);
	ret->path = colon[1] ? colon + 1 : ".";
	return 0;
}

const char *sandbox_path_base(const char *path, size_t *len)
{
	size_t end = strlen(path);

	while (end > 0 && path[end - 1] == '/')
		end--;
	size_t start = end;

	while (start > 0 && path[start - 1] != '/')
		start--;
	*len = end - start;
	return path + start;
}
