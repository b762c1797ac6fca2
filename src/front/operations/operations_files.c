/* SPDX-License-Identifier: Apache-2.0 */
/* operations_files.c - Operations on files of a sandbox that HTTP and MCP share. */
#include <string.h>

#include "front/operations/operations.h"
#include "wire/files.h"

bool is_mode(const char *s, size_t len)
{
	return len == 3 && strspn(s, "01234567") == len;
}

#define TOOL_PATH_FIELD(text_, ...)                                                                \
	FIELD(IN_TOOL, STRING, "path", 1, FILES_PATH_MAX - 1, text_, __VA_ARGS__)

const struct operation operation_read_file = {
	.name = "read_file",
	.summary = "Read a file",
	.description =
		"Plain files only. `Range` (one range of bytes), `If-None-Match`. A file that gets "
		"shorter while it is read breaks the answer off.",
	.tool_description =
		"Read a file of a session. Images come back as images, other files as text, or as "
		"base64 when they are not text.",
	.fields = FIELDS(SANDBOX_PARAM, SESSION_FIELD, PATH_FIELD(IN_QUERY, "path", "The file."),
			 TOOL_PATH_FIELD("Absolute, or relative to /workspace.", .required = true),
			 FIELD(IN_TOOL, INTEGER, "offset", 0, OFFSET_MAX, "Byte to begin with.",
			       .fallback = "0"),
			 FIELD(IN_TOOL, INTEGER, "limit", 1, READ_FILE_MAX, "Most bytes to return.",
			       .fallback = "65536")),
};

const struct operation operation_write_file = {
	.name = "write_file",
	.summary = "Write a file",
	.description =
		"The body is the content, of any length. Atomic: until all of it is there, the "
		"name has its old content or does not exist. A link is replaced itself, not what "
		"it points to. A read-only file stays as it is, unless `mode` is given.",
	.tool_description =
		"Write a file of a session, all of it at once: a reader sees the old content or "
		"the new, never a part.",
	.fields =
		FIELDS(SANDBOX_PARAM, SESSION_FIELD, PATH_FIELD(IN_QUERY, "path", "The file."),
		       TOOL_PATH_FIELD(
			       "Absolute, or relative to /workspace. Missing directories are made.",
			       .required = true),
		       MODE_FIELD(IN_QUERY), PARENTS_FIELD(IN_QUERY),
		       FIELD(IN_TOOL, STRING, "content", 0, 0, "Text to write.", .nul = true),
		       FIELD(IN_TOOL, STRING, "content_base64", 0, 0,
			     "Bytes to write, in base64, instead of content.")),
};

const struct operation operation_list_files = {
	.name = "list_files",
	.summary = "List a directory",
	.description = "Names are relative to it. Of a file: one entry without a name.",
	.title = "List files",
	.tool_description =
		"List a directory of a session, in the order of names. A long list comes in pages: "
		"go on with `cursor`.",
	.fields = FIELDS(
		SANDBOX_PARAM, SESSION_FIELD, DIRECTORY_FIELD,
		TOOL_PATH_FIELD("Directory; /workspace when it is left out."),
		FLAG_FIELD(IN_QUERY | IN_TOOL, "recursive", "false",
			   "Directories in it, too. Links are not followed."),
		FIELD(IN_QUERY, INTEGER, "depth", 1, FILES_DEPTH_MAX, "With recursive: levels.",
		      .example = "2", .fallback = "128"),
		FIELD(IN_QUERY, INTEGER, "limit", 1, 10000, "Entries of the answer at most.",
		      .example = "100", .fallback = "1000"),
		FIELD(IN_TOOL, INTEGER, "limit", 1, LISTING_MAX,
		      "Most entries to return. Without it, as many as fit into the length of an "
		      "output."),
		PATH_CURSOR_FIELD, TOOL_CURSOR_FIELD(FILES_PATH_MAX - 1)),
};
