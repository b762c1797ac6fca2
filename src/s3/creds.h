/* SPDX-License-Identifier: Apache-2.0 */
/*
 * creds.h - The keys for a server, from a file as Amazon's tools have it, or from lines NAME=VALUE.
 *
 *	[default]
 *	aws_access_key_id = ...
 *	aws_secret_access_key = ...
 *	aws_session_token = ...
 *
 * The file is private (base/private.h). Messages name the line, never its content.
 */
#ifndef CAISSON_S3_CREDS_H
#define CAISSON_S3_CREDS_H

#include <stddef.h>

#include "s3/sign.h"

struct err;

#define S3_CREDS_TEXT_MAX (64u << 10)

/*
 * s3_creds_parse() - The section @profile (NULL: default) of @text; lines before any section count
 * too. Names are those above, in either case, or access_key and secret_key. Pure; the caller wipes
 * @text. Return: 0, -ENOENT when the two keys are not there, -EINVAL with a message.
 */
int s3_creds_parse(const char *text, size_t len, const char *profile, struct s3_creds *ret,
		   struct err *e);

/* s3_creds_file(), s3_creds_fd() - The same of a private file, or of the content of a
 * descriptor. */
int s3_creds_file(const char *path, const char *profile, struct s3_creds *ret, struct err *e);
int s3_creds_fd(int fd, const char *profile, struct s3_creds *ret, struct err *e);

#endif
