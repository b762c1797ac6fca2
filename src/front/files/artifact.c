/* SPDX-License-Identifier: Apache-2.0 */
/* artifact.c - Files that an execution left: names, media types, addresses, JSON. */
#include "front/files/artifact.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"

#define URL_MAX (64u << 10)

const char *mime_of(const char *path)
{
	static const char *const known[][2] = {
		{ ".png", "image/png" },
		{ ".jpg", "image/jpeg" },
		{ ".jpeg", "image/jpeg" },
		{ ".gif", "image/gif" },
		{ ".webp", "image/webp" },
		{ ".svg", "image/svg+xml" },
		{ ".pdf", "application/pdf" },
		{ ".csv", "text/csv" },
		{ ".tsv", "text/tab-separated-values" },
		{ ".txt", "text/plain" },
		{ ".log", "text/plain" },
		{ ".md", "text/markdown" },
		{ ".html", "text/html" },
		{ ".json", "application/json" },
		{ ".xml", "application/xml" },
		{ ".zip", "application/zip" },
		{ ".gz", "application/gzip" },
		{ ".tar", "application/x-tar" },
		{ ".parquet", "application/vnd.apache.parquet" },
		{ ".mp4", "video/mp4" },
		{ ".mp3", "audio/mpeg" },
		{ ".wav", "audio/wav" },
		{ ".py", "text/x-python" },
		{ ".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
	};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(known); i++)
		if (strcasecmp(dot, known[i][0]) == 0)
			return known[i][1];
	return "application/octet-stream";
}

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
