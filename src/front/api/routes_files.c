/* SPDX-License-Identifier: Apache-2.0 */
/* routes_files.c - Files of a sandbox. */
#include <string.h>

#include "front/api/handlers.h"
#include "front/api/routes.h"
#include "wire/files.h"

#define LIMIT_MAX 10000

/* ---- what goes in -------------------------------------------------------------------------- */

#define MODE_PATTERN "^[0-7]{3}$"

static bool is_mode(const char *s, size_t len)
{
	return len == 3 && strspn(s, "01234567") == len;
}

static const struct field sandbox_params[] = { ROUTE_SANDBOX_PARAM, { 0 } };

#define PATH_FIELD(name_, required_, text)                                                         \
	{                                                                                          \
		.name = (name_), .kind = FIELD_STRING, .required = (required_), .bytes = true,     \
		.min = 1, .max = FILES_PATH_MAX - 1,                                               \
		.description = text " Relative to /workspace.", .example = "\"out/report.csv\""    \
	}
#define FLAG_FIELD(name_, text, fallback_)                                                         \
	{                                                                                          \
		.name = (name_), .kind = FIELD_BOOLEAN, .description = (text),                     \
		.fallback = (fallback_)                                                            \
	}
#define PARENTS_FIELD FLAG_FIELD("parents", "Make missing directories above it.", "false")
#define MODE_FIELD                                                                                 \
	{                                                                                          \
		.name = "mode", .kind = FIELD_STRING, .min = 3, .max = 3, .pattern = MODE_PATTERN, \
		.check = is_mode, .description = "Permissions, octal.", .example = "\"644\""       \
	}
#define DIR_FIELD                                                                                  \
	{                                                                                          \
		.name = "path", .kind = FIELD_STRING, .bytes = true, .min = 1,                     \
		.max = FILES_PATH_MAX - 1, .description = "Relative to /workspace.",               \
		.example = "\"out\"", .fallback = "\".\""                                          \
	}

static const struct field read_query[] = { PATH_FIELD("path", true, "The file."), { 0 } };
static const struct field read_headers[] = {
	{ .name = "Range",
	  .kind = FIELD_STRING,
	  .description = "One range of bytes; of any other form it is as if it were not there.",
	  .example = "\"bytes=0-99\"" },
	{ .name = "If-None-Match",
	  .kind = FIELD_STRING,
	  .description = "ETag of what is known already.",
	  .example = "\"*\"" },
	{ 0 },
};
static const struct field write_query[] = {
	PATH_FIELD("path", true, "The file."),
	MODE_FIELD,
	PARENTS_FIELD,
	{ 0 },
};
static const struct field delete_query[] = {
	PATH_FIELD("path", true, "What to delete; of a link, the link."),
	FLAG_FIELD("recursive", "A directory with everything in it.", "false"),
	{ 0 },
};
static const struct field list_query[] = {
	DIR_FIELD,
	FLAG_FIELD("recursive", "Directories in it, too. Links are not followed.", "false"),
	{ .name = "depth",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = FILES_DEPTH_MAX,
	  .description = "With recursive: levels.",
	  .example = "2",
	  .fallback = "128" },
	{ .name = "limit",
	  .kind = FIELD_INTEGER,
	  .min = 1,
	  .max = LIMIT_MAX,
	  .description = "Entries of the answer at most.",
	  .example = "100",
	  .fallback = "1000" },
	{ .name = "cursor",
	  .kind = FIELD_STRING,
	  .bytes = true,
	  .min = 1,
	  .max = FILES_PATH_MAX - 1,
	  .description = "The last name that was seen; those after it follow. See `next`.",
	  .example = "\"out/report.csv\"" },
	{ 0 },
};
static const struct field stat_query[] = {
	PATH_FIELD("path", true, "The file."),
	FLAG_FIELD("follow", "What a link points to, not the link.", "true"),
	{ 0 },
};
static const struct field move_body[] = {
	PATH_FIELD("from", true, "What to move."),
	PATH_FIELD("to", true, "Its new name; never a directory to move it into."),
	FLAG_FIELD("overwrite", "Replace what has that name.", "false"),
	PARENTS_FIELD,
	{ 0 },
};
static const struct field mkdir_body[] = {
	PATH_FIELD("path", true, "The directory."),
	FLAG_FIELD("parents",
		   "Make missing directories above it; that it exists already is then no error.",
		   "false"),
	MODE_FIELD,
	{ 0 },
};
static const struct field tar_query[] = { DIR_FIELD, { 0 } };
static const struct field tar_in_query[] = { DIR_FIELD, PARENTS_FIELD, { 0 } };
static const struct field watch_query[] = {
	DIR_FIELD,
	FLAG_FIELD("recursive", "Directories in it, too; up to 1024.", "false"),
	{ 0 },
};

static bool is_execution_id(const char *s, size_t len)
{
	return len == 32 && strspn(s, "0123456789abcdef") == len;
}

static const struct field artifacts_query[] = {
	{ .name = "execution_id",
	  .kind = FIELD_STRING,
	  .required = true,
	  .min = 1,
	  .max = 32,
	  .pattern = "^[0-9a-f]{32}$",
	  .check = is_execution_id,
	  .description = "As the answer or the first event named it.",
	  .example = "\"7f3c2a9e5b1d4c8f90a1b2c3d4e5f607\"" },
	FLAG_FIELD("inline",
		   "Images up to 1 MiB come with the answer, in `data`; 4 MiB of them in all.",
		   "true"),
	{ .name = "cursor",
	  .kind = FIELD_STRING,
	  .bytes = true,
	  .min = 1,
	  .max = FILES_PATH_MAX - 1,
	  .description = "The last path that was seen; those after it follow. See `next`.",
	  .example = "\"out/report.csv\"" },
	{ 0 },
};

/* ---- what comes out ------------------------------------------------------------------------ */

#define NOT_FOUND                                                                                  \
	{                                                                                          \
		404, "There is no such sandbox of yours, or no such file in it.", "Error", NULL,   \
			"no_such_sandbox no_such_file"                                             \
	}
#define FORBIDDEN                                                                                  \
	{                                                                                          \
		403, "The sandbox's user may not do that.", "Error", NULL, "permission_denied"     \
	}
#define CONFLICT(codes_)                                                                           \
	{                                                                                          \
		409, "What is there does not allow it; `code` says what.", "Error", NULL,          \
			"sandbox_stopped sandbox_ended " codes_                                    \
	}
#define BAD_PATH                                                                                   \
	{                                                                                          \
		422, "A parameter or a path is wrong.", "Error", NULL, "bad_path"                  \
	}
#define FULL                                                                                       \
	{                                                                                          \
		507, "The sandbox's disk is full.", "Error", NULL, "disk_full"                     \
	}
#define NOT_NOW(codes_)                                                                            \
	ROUTE_TOO_MUCH("busy"),                                                                    \
	{                                                                                          \
		503, "Not recorded, so not done; or the call was ended in the sandbox.", "Error",  \
			NULL, codes_ "process_limit file_call_ended"                               \
	}
#define RECORDED "not_recorded "

#define PATHS "not_a_directory too_many_links "

static const struct response_doc read_out[] = {
	{ 200, "The content.", NULL, "application/octet-stream" },
	{ 206, "The part that `Range` asked for.", NULL, "application/octet-stream" },
	{ 304, "It is still what If-None-Match names.", NULL, NULL },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS "is_a_directory not_a_file"),
	{ 416, "The file has no such part.", NULL, NULL },
	BAD_PATH,
	NOT_NOW(RECORDED),
	{ 0 },
};
static const struct response_doc write_out[] = {
	{ 200, "Replaced.", "File", NULL },
	{ 201, "Made.", "File", NULL },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS "is_a_directory"),
	BAD_PATH,
	NOT_NOW(RECORDED),
	FULL,
	{ 0 },
};
static const struct response_doc delete_out[] = {
	{ 204, "Deleted.", NULL, NULL },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS "directory_not_empty"),
	BAD_PATH,
	NOT_NOW(RECORDED),
	{ 0 },
};
static const struct response_doc move_out[] = {
	{ 204, "Moved.", NULL, NULL },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS "file_exists is_a_directory directory_not_empty other_filesystem"),
	BAD_PATH,
	NOT_NOW(RECORDED),
	{ 0 },
};
static const struct response_doc mkdir_out[] = {
	{ 200, "It was there.", "File", NULL },
	{ 201, "Made.", "File", NULL },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS "file_exists"),
	BAD_PATH,
	NOT_NOW(RECORDED),
	FULL,
	{ 0 },
};
static const struct response_doc list_out[] = {
	{ 200, "By name.", "FileList", NULL },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS),
	BAD_PATH,
	NOT_NOW(""),
	{ 0 },
};
static const struct response_doc stat_out[] = {
	{ 200, "What it is.", "File", NULL },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS),
	BAD_PATH,
	NOT_NOW(""),
	{ 0 },
};
static const struct response_doc tar_out[] = {
	{ 200, "The archive.", NULL, "application/x-tar" },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS),
	BAD_PATH,
	NOT_NOW(RECORDED),
	{ 0 },
};
static const struct response_doc tar_in_out[] = {
	{ 200, "Unpacked.", "Unpacked", NULL },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS "is_a_directory"),
	{ 422, "A parameter, a path or the archive is wrong.", "Error", NULL,
	  "bad_path bad_archive" },
	NOT_NOW(RECORDED),
	FULL,
	{ 0 },
};
static const struct response_doc artifacts_out[] = {
	{ 200, "By path.", "ArtifactList", NULL },
	{ 404, "There is no such sandbox of yours, or no such execution in it.", "Error", NULL,
	  "no_such_sandbox no_such_execution" },
	CONFLICT(""),
	NOT_NOW(""),
	{ 0 },
};
static const struct response_doc watch_out[] = {
	{ 200, "created, modified, deleted, moved; overflow when some were lost.", NULL,
	  "text/event-stream" },
	FORBIDDEN,
	NOT_FOUND,
	CONFLICT(PATHS),
	BAD_PATH,
	NOT_NOW(""),
	{ 0 },
};

/* ---- the table ----------------------------------------------------------------------------- */

#define FILES "/v1/sandboxes/{name}/files"

static const struct route rows[] = {
	{ .method = "GET",
	  .path = FILES,
	  .id = "read_file",
	  .summary = "Read a file",
	  .description =
		  "Plain files only. `Range` (one range of bytes), `If-None-Match`. A file that gets "
		  "shorter while it is read breaks the answer off.",
	  .tag = "files",
	  .query = read_query,
	  .headers = read_headers,
	  .params = sandbox_params,
	  .responses = read_out,
	  .handler = handle_file_read },
	{ .method = "PUT",
	  .path = FILES,
	  .id = "write_file",
	  .summary = "Write a file",
	  .description =
		  "The body is the content, of any length. Atomic: until all of it is there, the "
		  "name has its old content or does not exist. A link is replaced itself, not what "
		  "it points to.",
	  .tag = "files",
	  .query = write_query,
	  .params = sandbox_params,
	  .content = "application/octet-stream",
	  .responses = write_out,
	  .handler = handle_file_write },
	{ .method = "DELETE",
	  .path = FILES,
	  .id = "delete_file",
	  .summary = "Delete a file or a directory",
	  .description = "Links are deleted, never followed.",
	  .tag = "files",
	  .query = delete_query,
	  .params = sandbox_params,
	  .responses = delete_out,
	  .handler = handle_file_delete },
	{ .method = "GET",
	  .path = FILES "/list",
	  .id = "list_files",
	  .summary = "List a directory",
	  .description = "Names are relative to it. Of a file: one entry without a name.",
	  .tag = "files",
	  .query = list_query,
	  .params = sandbox_params,
	  .responses = list_out,
	  .handler = handle_file_list },
	{ .method = "GET",
	  .path = FILES "/stat",
	  .id = "stat_file",
	  .summary = "Ask what a name is",
	  .description = "Type, size, mode and time.",
	  .tag = "files",
	  .query = stat_query,
	  .params = sandbox_params,
	  .responses = stat_out,
	  .handler = handle_file_stat },
	{ .method = "POST",
	  .path = FILES "/move",
	  .id = "move_file",
	  .summary = "Move or rename",
	  .description = "In one step, or not at all.",
	  .tag = "files",
	  .body = move_body,
	  .params = sandbox_params,
	  .responses = move_out,
	  .handler = handle_file_move },
	{ .method = "POST",
	  .path = FILES "/mkdir",
	  .id = "make_directory",
	  .summary = "Make a directory",
	  .description = "201 when it was made, 200 when it was there.",
	  .tag = "files",
	  .body = mkdir_body,
	  .params = sandbox_params,
	  .responses = mkdir_out,
	  .handler = handle_file_mkdir },
	{ .method = "GET",
	  .path = FILES "/tar",
	  .id = "read_archive",
	  .summary = "Read a directory as a tar archive",
	  .description =
		  "Files, directories and links; other things are left out. An error on the way breaks "
		  "the answer off.",
	  .tag = "files",
	  .query = tar_query,
	  .params = sandbox_params,
	  .responses = tar_out,
	  .handler = handle_file_tar_out },
	{ .method = "PUT",
	  .path = FILES "/tar",
	  .id = "write_archive",
	  .summary = "Unpack a tar archive",
	  .description =
		  "The body is the archive, not compressed, of any length. Absolute paths, `..`, devices "
		  "and paths through links are refused. Not atomic: what was unpacked before an error "
		  "stays.",
	  .tag = "files",
	  .query = tar_in_query,
	  .params = sandbox_params,
	  .content = "application/x-tar",
	  .responses = tar_in_out,
	  .handler = handle_file_tar_in },
	{ .method = "GET",
	  .path = FILES "/watch",
	  .id = "watch_files",
	  .summary = "Watch a directory",
	  .description =
		  "Events from now on, until you hang up or the directory is gone. The same news about "
		  "the same name within a moment is told once.",
	  .tag = "files",
	  .query = watch_query,
	  .params = sandbox_params,
	  .responses = watch_out,
	  .handler = handle_file_watch },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{name}/artifacts",
	  .id = "list_artifacts",
	  .summary = "List the files that an execution left",
	  .description =
		  "Files below /workspace that were made or changed while it ran, by the kernel's clock, "
		  "whoever changed them; hidden ones are left out. 100 at a time; `next` is the address of "
		  "the rest.",
	  .tag = "files",
	  .query = artifacts_query,
	  .params = sandbox_params,
	  .responses = artifacts_out,
	  .handler = handle_artifacts },
	{ 0 },
};

const struct route_table routes_files = { .rows = rows };
