/* SPDX-License-Identifier: Apache-2.0 */
/* files_error.c - What the kernel said about a file, in words and codes of the API. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "front/files/files.h"

static const struct {
	int error;
	int status;
	const char *code, *hint, *text;
} errors[] = {
	{ ENOENT, 404, "no_such_file", NULL, "there is no such file or directory" },
	{ EISDIR, 409, "is_a_directory", NULL, "it is a directory" },
	{ ENOTDIR, 409, "not_a_directory", NULL, "a part of the path is not a directory" },
	{ EEXIST, 409, "file_exists", "ask to overwrite it, or take another name",
	  "something of that name exists" },
	{ ENOTEMPTY, 409, "directory_not_empty", "delete it recursively",
	  "the directory is not empty" },
	{ ENXIO, 409, "not_a_file", NULL, "it is neither a file nor a directory" },
	{ ELOOP, 409, "too_many_links", NULL, "the path has too many symbolic links" },
	{ EXDEV, 409, "other_filesystem", "copy it instead",
	  "a name can not be moved to another file system" },
	{ EBUSY, 409, "file_busy", NULL, "it is in use" },
	{ EAGAIN, 409, "file_busy", NULL, "it is in use" },
	{ ESTALE, 409, "file_changed", "try again", "it was moved away meanwhile" },
	{ EACCES, 403, "permission_denied", NULL, "the sandbox's user may not do that" },
	{ EPERM, 403, "permission_denied", NULL, "that is not permitted in a sandbox" },
	{ EROFS, 403, "permission_denied", NULL, "the file system is read-only there" },
	{ ENOSPC, 507, "disk_full", "raise disk_mib", "the sandbox's disk is full" },
	{ EDQUOT, 507, "disk_full", "raise disk_mib", "the sandbox's disk is full" },
	{ EFBIG, 507, "disk_full", "raise disk_mib", "the file is larger than it may be" },
	{ ENOMEM, 507, "memory_full", "raise memory_mib", "the sandbox's memory is full" },
	{ ENAMETOOLONG, 422, "bad_path", NULL, "the path, or a name in it, is too long" },
	{ EINVAL, 422, "bad_path", NULL, "the path names nothing that this can be done with" },
	{ EBADMSG, 422, "bad_archive", "send a tar archive, not compressed",
	  "that is no tar archive, or not all of one" },
	{ EPROTO, 500, "internal", NULL, "the daemon and its worker misunderstood each other" },
	{ ECANCELED, 400, "incomplete", NULL, "the content ended too early" },
};

void file_error(int error, struct files_text where, struct refusal *ret)
{
	char other[96];
	const char *text = other;

	(void)snprintf(other, sizeof(other), "the sandbox's file system said: %s", strerror(error));
	*ret = (struct refusal){ .status = 500, .code = "file_error", .field = "path" };
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].error == error) {
			ret->status = errors[i].status;
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
