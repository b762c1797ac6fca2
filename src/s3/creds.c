/* SPDX-License-Identifier: Apache-2.0 */
/* creds.c - Keys from lines NAME = VALUE, in sections; memory that held them is wiped. */
#include "s3/creds.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/private.h"

struct slice {
	const char *at;
	size_t len;
};

static struct slice trim(const char *at, size_t len)
{
	while (len > 0 && strchr(" \t\r", at[0]))
		at++, len--;
	while (len > 0 && strchr(" \t\r", at[len - 1]))
		len--;
	return (struct slice){ at, len };
}

static bool is(struct slice s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

/* Only what a header can hold. */
static int put(char *to, size_t size, struct slice v)
{
	if (v.len >= size)
		return -E2BIG;
	for (size_t i = 0; i < v.len; i++)
		if ((unsigned char)v.at[i] <= ' ' || (unsigned char)v.at[i] >= 0x7f)
			return -EINVAL;
	memcpy(to, v.at, v.len);
	to[v.len] = '\0';
	return 0;
}

static int set(struct s3_creds *c, struct slice name, struct slice value)
{
	if (is(name, "aws_access_key_id") || is(name, "access_key"))
		return put(c->access, sizeof(c->access), value);
	if (is(name, "aws_secret_access_key") || is(name, "secret_key"))
		return put(c->secret, sizeof(c->secret), value);
	if (is(name, "aws_session_token") || is(name, "session_token"))
		return put(c->token, sizeof(c->token), value);
	return 0; /* region, output and the like: not ours */
}

int s3_creds_parse(const char *text, size_t len, const char *profile, struct s3_creds *ret,
		   struct err *e)
{
	unsigned int number = 0;
	bool ours = true;

	*ret = (struct s3_creds){ 0 };
	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		struct slice line = trim(text + at, n);
		const char *equal = memchr(line.at, '=', line.len);

		at += n + 1;
		number++;
		if (line.len == 0 || line.at[0] == '#' || line.at[0] == ';')
			continue;
		if (line.at[0] == '[') {
			ours = line.len > 1 && line.at[line.len - 1] == ']' &&
			       is(trim(line.at + 1, line.len - 2), profile ? profile : "default");
			continue;
		}
		if (!equal)
			return err_say(e, -EINVAL, "line %u: is not NAME = VALUE", number);
		size_t n_name = (size_t)(equal - line.at);

		if (ours &&
		    set(ret, trim(line.at, n_name), trim(equal + 1, line.len - n_name - 1)) < 0)
			return err_say(e, -EINVAL, "line %u: the value is not a valid key", number);
	}
	if (!ret->access[0] || !ret->secret[0])
		return err_say(e, -ENOENT,
			       "has no aws_access_key_id and aws_secret_access_key%s%.64s",
			       profile ? " in the section " : "", profile ? profile : "");
	return 0;
}

int s3_creds_fd(int fd, const char *profile, struct s3_creds *ret, struct err *e)
{
	char *text = private_alloc(S3_CREDS_TEXT_MAX + 1);
	size_t len = 0;
	ssize_t n = 1;
	int r = text ? 0 : err_set(e, -ENOMEM, "read it");

	while (r == 0 && n != 0 && len <= S3_CREDS_TEXT_MAX) {
		n = pread(fd, text + len, S3_CREDS_TEXT_MAX + 1 - len, (off_t)len);
		if (n < 0 && errno != EINTR)
			r = err_set(e, -errno, "read it");
		len += n > 0 ? (size_t)n : 0;
	}
	if (r == 0 && len > S3_CREDS_TEXT_MAX)
		r = err_say(e, -E2BIG, "is larger than 64 KiB");
	if (r == 0)
		r = s3_creds_parse(text, len, profile, ret, e);
	private_free(text, S3_CREDS_TEXT_MAX + 1);
	return r;
}

int s3_creds_file(const char *path, const char *profile, struct s3_creds *ret, struct err *e)
{
	_fd_ int fd = private_open(path, e);

	return fd < 0 ? fd : s3_creds_fd(fd, profile, ret, e);
}
