/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uri.h - URIs of files and outputs in sandboxes: sandbox://NAME/files/PATH,
 * sandbox://NAME/executions/ID/stdout.
 *
 * A path is that of a file of the sandbox, relative to /workspace; an absolute one begins with
 * another slash: sandbox://a/files//etc/hostname. It is percent-encoded; a slash is not.
 */
#ifndef CAISSON_MCP_URI_H
#define CAISSON_MCP_URI_H

#include <stdbool.h>

struct buf;

#define MCP_URI_NAME_MAX 65
#define MCP_URI_PATH_MAX 4096

enum mcp_uri_kind { MCP_URI_FILE, MCP_URI_STDOUT, MCP_URI_STDERR };

struct mcp_uri {
	enum mcp_uri_kind kind;
	char name[MCP_URI_NAME_MAX]; /* of the sandbox; not checked */
	char path[MCP_URI_PATH_MAX]; /* of a file: decoded, may be empty; of output: its execution
				      */
};

/* mcp_uri_parse() - False: it is another URI. Pure. */
bool mcp_uri_parse(const char *text, struct mcp_uri *ret);

/* mcp_uri_file() - Append the name of a file. @name: that of a sandbox. Pure. */
void mcp_uri_file(struct buf *out, const char *name, const char *path);

#endif
