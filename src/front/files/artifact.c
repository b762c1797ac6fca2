/* SPDX-License-Identifier: Apache-2.0 */
/* artifact.c - Names, types and addresses of the files that an execution left. */
#include "front/files/artifact.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/files/mime.h"

#define URL_MAX (64u << 10)

bool artifact_is_image(const struct artifact *a)
{
	return strncmp(mime_of(a->path), "image/", 6) == 0;
}

bool artifact_is(const char *path, size_t len)
{
	if (len == 0 || path[0] == '.' || memmem(path, len, "/.", 2))
		return false;
	return !memmem(path, len, "__pycache__", 11);
}

void artifact_escape(const char *path, struct buf *out)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_~/";

	for (; *path; path++)
		if (strchr(plain, *path))
			(void)buf_append(out, path, 1);
		else
			(void)buf_printf(out, "%%%02X", (unsigned char)*path);
}

static void put_url(struct json *j, const char *sandbox, const char *path)
{
	_buf_ struct buf b = BUF_INIT(URL_MAX);

	(void)buf_printf(&b, "/v1/sandboxes/%s/files?path=", sandbox);
	artifact_escape(path, &b);
	json_member_str(j, "url", buf_str(&b));
}

void artifact_json(const struct artifact *a, const char *sandbox, const char *hash,
		   const struct buf *image, const struct artifact_copy *copy, struct json *j)
{
	json_object_begin(j);
	json_key(j, "path");
	if (json_str(j, a->path)) {
		json_key(j, "path_base64");
		json_base64(j, a->path, strlen(a->path));
	}
	json_member_uint(j, "size", a->size);
	if (hash[0])
		json_member_str(j, "sha256", hash);
	json_member_str(j, "mime", mime_of(a->path));
	put_url(j, sandbox, a->path);
	if (copy->link) {
		json_member_str(j, "link", copy->link);
		json_member_uint(j, "link_seconds", copy->seconds);
	}
	if (copy->why)
		json_member_str(j, "link_error", copy->why);
	if (image) {
		json_key(j, "data");
		json_base64(j, buf_str(image), image->len);
	}
	json_object_end(j);
}
