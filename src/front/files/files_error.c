/* SPDX-License-Identifier: Apache-2.0 */
/* files_error.c - Error numbers of file calls as codes and messages of the API. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/num.h"
#include "front/files/files.h"

#define OF_FILES "files live in its memory: delete some, or make a sandbox with more memory_mib"

static const struct {
	int error;
	enum refusal_kind kind;
	const char *code, *hint, *text;
} errors[] = {
	{ ENOENT, REFUSAL_NOT_FOUND, "no_such_file", NULL, "there is no such file or directory" },
	{ EISDIR, REFUSAL_CONFLICT, "is_a_directory", NULL, "it is a directory" },
	{ ENOTDIR, REFUSAL_CONFLICT, "not_a_directory", NULL,
	  "a part of the path is not a directory" },
	{ EEXIST, REFUSAL_CONFLICT, "file_exists", "ask to overwrite it, or take another name",
	  "the name exists already" },
	{ ENOTEMPTY, REFUSAL_CONFLICT, "directory_not_empty", "delete it recursively",
	  "the directory is not empty" },
	{ FILES_READ_ONLY, REFUSAL_CONFLICT, "read_only",
	  "make it writable (chmod u+w), or give a mode with the new content",
	  "the file is read-only" },
	{ ENXIO, REFUSAL_CONFLICT, "not_a_file", NULL, "it is neither a file nor a directory" },
	{ ELOOP, REFUSAL_CONFLICT, "too_many_links", NULL, "the path has too many symbolic links" },
	{ EXDEV, REFUSAL_CONFLICT, "other_filesystem", "copy it instead",
	  "a name cannot be moved to another file system" },
	{ EBUSY, REFUSAL_CONFLICT, "file_busy", NULL, "it is in use" },
	{ EAGAIN, REFUSAL_CONFLICT, "file_busy", NULL, "it is in use" },
	{ ESTALE, REFUSAL_CONFLICT, "file_changed", "try again", "it was moved away meanwhile" },
	{ EACCES, REFUSAL_FORBIDDEN, "permission_denied", NULL,
	  "the sandbox's user may not do that" },
	{ EPERM, REFUSAL_FORBIDDEN, "permission_denied", NULL,
	  "that is not permitted in a sandbox" },
	{ EROFS, REFUSAL_FORBIDDEN, "permission_denied", NULL,
	  "the file system is read-only there" },
	{ ENOSPC, REFUSAL_NO_SPACE, "disk_full", "delete files, or raise disk_mib",
	  "the sandbox's disk is full" },
	{ EDQUOT, REFUSAL_NO_SPACE, "disk_full", "raise disk_mib", "the sandbox's disk is full" },
	{ EFBIG, REFUSAL_NO_SPACE, "disk_full", "raise disk_mib",
	  "the file exceeds the largest file size" },
	{ ENOMEM, REFUSAL_NO_SPACE, "memory_full", OF_FILES, "the sandbox's memory is full" },
	{ ENAMETOOLONG, REFUSAL_INVALID, "bad_path", NULL,
	  "the path, or a name in it, is too long" },
	{ EINVAL, REFUSAL_INVALID, "bad_path", NULL, "the path is invalid for this operation" },
	{ EBADMSG, REFUSAL_INVALID, "bad_archive", "send a tar archive, not compressed",
	  "invalid or incomplete tar archive" },
	{ EPROTO, REFUSAL_INTERNAL, "internal", NULL,
	  "the daemon and its worker broke their protocol" },
	{ ECANCELED, REFUSAL_MALFORMED, "incomplete", NULL, "the content ended too early" },
};

void file_no_room(int error, const struct files_end *end, uint64_t needed, uint64_t room,
		  const struct cell_limits *limits, struct refusal *ret)
{
	bool memory = error == ENOMEM;
	char need[NUM_FORMAT_MAX], left[NUM_FORMAT_MAX], all[NUM_FORMAT_MAX];

	/* The content is not for memory, or it is not the bytes that are missing: nothing is known.
	 */
	if (!memory && (!end->size || (needed && needed <= end->room)))
		return;
	ret->needed = needed;
	ret->room = memory ? room : end->room;
	ret->limit = memory ? limits->memory_bytes : end->size;
	if (memory || ret->limit < limits->disk_bytes)
		ret->hint = OF_FILES;
	(void)num_format_size(ret->room, left, sizeof(left));
	(void)num_format_size(ret->limit, all, sizeof(all));
	if (needed)
		(void)snprintf(ret->message, sizeof(ret->message),
			       "the content has %s, and the sandbox's %s has %s left of %s",
			       num_format_size(needed, need, sizeof(need)),
			       memory ? "memory" : "disk", left, all);
	else
		(void)snprintf(
			ret->message, sizeof(ret->message),
			"the content is larger than what the sandbox's %s had left: %s of %s",
			memory ? "memory" : "disk", left, all);
}

void file_error(int error, struct files_text where, struct refusal *ret)
{
	char other[96];
	const char *text = other;

	(void)snprintf(other, sizeof(other), "the sandbox's file system said: %s", strerror(error));
	*ret = (struct refusal){ .kind = REFUSAL_INTERNAL, .code = "file_error", .field = "path" };
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].error == error) {
			ret->kind = errors[i].kind;
			ret->code = errors[i].code;
			ret->hint = errors[i].hint;
			text = errors[i].text;
			break;
		}
	if (where.len > 0)
		(void)snprintf(ret->message, sizeof(ret->message), "%s: '%.*s'", text,
			       (int)(where.len < 200 ? where.len : 200), where.data);
	else
		(void)snprintf(ret->message, sizeof(ret->message), "%s", text);
}
