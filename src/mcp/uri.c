/* SPDX-License-Identifier: Apache-2.0 */
/* uri.c - Read and write URIs of files and outputs. */
#include "mcp/uri.h"

#include <string.h>

#include "base/buf.h"
#include "base/num.h"

#define SCHEME "sandbox://"
#define FILES "files/"
#define EXECUTIONS "executions/"

/* No NUL can come of it, and nothing that could mean a query or a fragment. */
static bool decode(const char *s, char *out, size_t size)
{
	size_t n = 0;

	for (; *s; s++) {
		char c = *s;

		if (c == '?' || c == '#')
			return false;
		if (c == '%') {
			int byte = hex_escape(s, strnlen(s, 3));

			if (byte <= 0)
				return false;
			c = (char)byte;
			s += 2;
		}
		if (n + 1 == size)
			return false;
		out[n++] = c;
	}
	out[n] = '\0';
	return true;
}

static bool parse_output(const char *rest, struct mcp_uri *ret)
{
	const char *slash = strchr(rest, '/');
	size_t len = slash ? (size_t)(slash - rest) : 0;

	if (!len || len >= sizeof(ret->path))
		return false;
	memcpy(ret->path, rest, len);
	ret->path[len] = '\0';
	ret->kind = strcmp(slash, "/stderr") == 0 ? MCP_URI_STDERR : MCP_URI_STDOUT;
	return ret->kind == MCP_URI_STDERR || strcmp(slash, "/stdout") == 0;
}

bool mcp_uri_parse(const char *text, struct mcp_uri *ret)
{
	const char *name = text + sizeof(SCHEME) - 1, *slash;

	if (strncmp(text, SCHEME, sizeof(SCHEME) - 1) != 0 || !(slash = strchr(name, '/')) ||
	    slash == name || (size_t)(slash - name) >= sizeof(ret->name))
		return false;
	memcpy(ret->name, name, (size_t)(slash - name));
	ret->name[slash - name] = '\0';
	slash++;
	if (strncmp(slash, EXECUTIONS, sizeof(EXECUTIONS) - 1) == 0)
		return parse_output(slash + sizeof(EXECUTIONS) - 1, ret);
	ret->kind = MCP_URI_FILE;
	return strncmp(slash, FILES, sizeof(FILES) - 1) == 0 &&
	       decode(slash + sizeof(FILES) - 1, ret->path, sizeof(ret->path));
}

void mcp_uri_file(struct buf *out, const char *name, const char *path)
{
	(void)buf_printf(out, SCHEME "%s/" FILES, name);
	buf_escape(out, path, "/");
}
