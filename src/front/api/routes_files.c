/* SPDX-License-Identifier: Apache-2.0 */
/* routes_files.c - Files of a sandbox. */
#include "front/api/handlers.h"
#include "front/api/routes.h"
#include "wire/files.h"

/* ---- responses ----------------------------------------------------------------------------- */

#define FORBIDDEN FAILURE(403, "permission_denied", "The sandbox's user may not do that.")
#define NOT_FOUND                                                                                  \
	FAILURE(404, "no_such_sandbox no_such_file",                                               \
		"There is no such sandbox of yours, or no such file in it.")
#define CONFLICT(codes_)                                                                           \
	FAILURE(409, "sandbox_stopped sandbox_ended " codes_,                                      \
		"The files there do not allow it; `code` names the reason.")
#define NOT_NOW(codes_)                                                                            \
	TOO_MUCH("busy"),                                                                          \
		FAILURE(503, codes_ "process_limit file_call_ended",                               \
			"Not recorded, so not done; or the call was ended in the sandbox.")
#define RECORDED "not_recorded "
#define FULL FAILURE(507, "disk_full", "The sandbox's disk is full.")
#define NO_ROOM                                                                                    \
	FAILURE(507, "disk_full memory_full",                                                      \
		"The content does not fit: `needed`, `free` and `limit` are bytes.")

/* The failures of every call that takes a path. @conflicts_ beside those of any path. */
#define PATH_FAILURES(conflicts_, recorded_)                                                       \
	FORBIDDEN, NOT_FOUND, CONFLICT("not_a_directory too_many_links " conflicts_),              \
		FAILURE(422, "bad_path", "A parameter or a path is wrong."), NOT_NOW(recorded_)

/* ---- the table ----------------------------------------------------------------------------- */

#define FILES SANDBOX "/files"

const struct route routes_files[] = {
	{ "GET", FILES, "files", FOR_SANDBOX(handle_file_read), &operation_read_file,
	  RESPONSES(CONTENT(200, "application/octet-stream", "The content."),
		    CONTENT(206, "application/octet-stream", "The part that `Range` asked for."),
		    RESPONSE(304, NULL, "It is still what If-None-Match names."),
		    RESPONSE(416, NULL, "The file has no such part."),
		    PATH_FAILURES("is_a_directory not_a_file", RECORDED)),
	  .headers = FIELDS(FIELD(0, STRING, "Range", 0, 0,
				  "One range of bytes; of any other form it is as if it were not "
				  "there.",
				  .example = "\"bytes=0-99\""),
			    FIELD(0, STRING, "If-None-Match", 0, 0,
				  "ETag of what is known already.", .example = "\"*\"")) },
	{ "PUT", FILES, "files", FOR_SANDBOX(handle_file_write), &operation_write_file,
	  RESPONSES(RESPONSE(200, "File", "Replaced."), RESPONSE(201, "File", "Made."),
		    PATH_FAILURES("is_a_directory read_only", RECORDED), NO_ROOM),
	  .content = "application/octet-stream" },
	{ "DELETE", FILES, "files", FOR_SANDBOX(handle_file_delete),
	  OPERATION("delete_file", "Delete a file or a directory",
		    "Links are deleted, never followed.",
		    FIELDS(SANDBOX_PARAM,
			   PATH_FIELD(IN_QUERY, "path", "The file to delete; of a link, the link."),
			   FLAG_FIELD(IN_QUERY, "recursive", "false",
				      "A directory with everything in it."))),
	  RESPONSES(RESPONSE(204, NULL, "Deleted."),
		    PATH_FAILURES("directory_not_empty", RECORDED)) },
	{ "GET", FILES "/list", "files", FOR_SANDBOX(handle_file_list), &operation_list_files,
	  RESPONSES(RESPONSE(200, "FileList", "By name."), PATH_FAILURES("", "")) },
	{ "GET", FILES "/stat", "files", FOR_SANDBOX(handle_file_stat),
	  OPERATION("stat_file", "Ask what a name is", "Type, size, mode and time.",
		    FIELDS(SANDBOX_PARAM, PATH_FIELD(IN_QUERY, "path", "The file."),
			   FLAG_FIELD(IN_QUERY, "follow", "true",
				      "The target of a link, not the link."))),
	  RESPONSES(RESPONSE(200, "File", "Its description."), PATH_FAILURES("", "")) },
	{ "POST", FILES "/move", "files", FOR_SANDBOX(handle_file_move),
	  OPERATION("move_file", "Move or rename", "In one step, or not at all.",
		    FIELDS(SANDBOX_PARAM, PATH_FIELD(IN_BODY, "from", "The file to move."),
			   PATH_FIELD(IN_BODY, "to",
				      "Its new name; never a directory to move it into."),
			   FLAG_FIELD(IN_BODY, "overwrite", "false", "Replace what has that name."),
			   PARENTS_FIELD(IN_BODY))),
	  RESPONSES(RESPONSE(204, NULL, "Moved."),
		    PATH_FAILURES("file_exists is_a_directory directory_not_empty other_filesystem",
				  RECORDED)) },
	{ "POST", FILES "/mkdir", "files", FOR_SANDBOX(handle_file_mkdir),
	  OPERATION("make_directory", "Make a directory",
		    "201 when it was made, 200 when it was there.",
		    FIELDS(SANDBOX_PARAM, PATH_FIELD(IN_BODY, "path", "The directory."),
			   FLAG_FIELD(IN_BODY, "parents", "false",
				      "Make missing directories above it; that it exists already "
				      "is then no error."),
			   MODE_FIELD(IN_BODY))),
	  RESPONSES(RESPONSE(200, "File", "It was there."), RESPONSE(201, "File", "Made."),
		    PATH_FAILURES("file_exists", RECORDED), FULL) },
	{ "GET", FILES "/tar", "files", FOR_SANDBOX(handle_file_tar_out),
	  OPERATION("read_archive", "Read a directory as a tar archive",
		    "Files, directories and links; other things are left out. An error on the way "
		    "breaks the answer off.",
		    FIELDS(SANDBOX_PARAM, DIRECTORY_FIELD)),
	  RESPONSES(CONTENT(200, "application/x-tar", "The archive."),
		    PATH_FAILURES("", RECORDED)) },
	{ "PUT", FILES "/tar", "files", FOR_SANDBOX(handle_file_tar_in),
	  OPERATION("write_archive", "Unpack a tar archive",
		    "The body is the archive, not compressed, of any length. Absolute paths, "
		    "`..`, devices and paths through links are refused. Not atomic: what was "
		    "unpacked before an error stays.",
		    FIELDS(SANDBOX_PARAM, DIRECTORY_FIELD, PARENTS_FIELD(IN_QUERY))),
	  RESPONSES(RESPONSE(200, "Unpacked", "Unpacked."), FORBIDDEN, NOT_FOUND,
		    CONFLICT("not_a_directory too_many_links is_a_directory"),
		    FAILURE(422, "bad_path bad_archive",
			    "A parameter, a path or the archive is wrong."),
		    NOT_NOW(RECORDED), NO_ROOM),
	  .content = "application/x-tar" },
	{ "GET", FILES "/watch", "files", FOR_SANDBOX(handle_file_watch),
	  OPERATION("watch_files", "Watch a directory",
		    "Events from now on, until you hang up or the directory is gone. The same "
		    "news about the same name within a moment is told once.",
		    FIELDS(SANDBOX_PARAM, DIRECTORY_FIELD,
			   FLAG_FIELD(IN_QUERY, "recursive", "false",
				      "Directories in it, too; up to 1024."))),
	  RESPONSES(CONTENT(200, "text/event-stream",
			    "created, modified, deleted, moved; overflow when some were lost."),
		    PATH_FAILURES("", "")) },
	{ "GET", SANDBOX "/artifacts", "files", FOR_SANDBOX(handle_artifacts),
	  OPERATION("list_artifacts", "List the files that an execution left",
		    "Files below /workspace that were made or changed while it ran, by the Linux "
		    "kernel's clock, by any process; hidden ones are left out. 100 at a "
		    "time; `next` is the address of the rest.",
		    FIELDS(SANDBOX_PARAM, EXECUTION_ID_FIELD(IN_QUERY),
			   FLAG_FIELD(IN_QUERY, "inline", "true",
				      "Images up to 1 MiB come with the answer, in `data`; 4 MiB "
				      "of them in all."),
			   PATH_CURSOR_FIELD)),
	  RESPONSES(RESPONSE(200, "ArtifactList", "By path."),
		    FAILURE(404, "no_such_sandbox no_such_execution",
			    "There is no such sandbox of yours, or no such execution in it."),
		    CONFLICT(""), NOT_NOW("")) },
	{ 0 },
};
