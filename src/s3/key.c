/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - See key.h. */
#include "s3/key.h"

#include <string.h>

#include "base/utf8.h"
#include "s3/site.h"

static const char *part_problem(const char *part, size_t len)
{
	if (len == 0)
		return "has an empty part ('//', or '/' at its beginning)";
	if ((len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.'))
		return "has '.' or '..' as a part";
	if (len > S3_PART_MAX)
		return "has a part of more than 255 bytes";
	return NULL;
}

const char *s3_key_problem(const char *key, size_t len)
{
	if (len == 0)
		return "is empty";
	if (len > S3_KEY_MAX)
		return "is longer than 1024 bytes";
	if (memchr(key, '\0', len))
		return "has a NUL byte";
	if (!utf8_valid(key, len))
		return "is not UTF-8";
	if (key[len - 1] == '/')
		len--;
	for (size_t at = 0; at <= len;) {
		const char *end = memchr(key + at, '/', len - at);
		size_t n = end ? (size_t)(end - key) - at : len - at;
		const char *problem = part_problem(key + at, n);

		if (problem)
			return problem;
		at += n + 1;
	}
	return NULL;
}

const char *s3_key_show(const char *key, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 4 < size; i++)
		out[n++] = (unsigned char)key[i] < ' ' || key[i] == 0x7f || key[i] == '\'' ? '?' :
											     key[i];
	if (n < len) {
		memcpy(out + n, "...", 3);
		n += 3;
	}
	out[n] = '\0';
	return out;
}
