/* SPDX-License-Identifier: Apache-2.0 */
/* hide.c - See hide.h. */
#include "vault/hide.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/private.h"

#define FIRST_FD 20 /* beyond those of a service manager and the keeper's */
#define TEXT_MAX (16u << 10)

/* A name in the environment, and in the file. What is said for this service alone comes before what
 * is said for all. */
static const struct {
	const char *name, *key;
} known[] = {
	{ "COREASON_SANDBOX_S3_ACCESS_KEY=", "access_key" },
	{ "COREASON_SANDBOX_S3_SECRET_KEY=", "secret_key" },
	{ "AWS_ACCESS_KEY_ID=", "aws_access_key_id" },
	{ "AWS_SECRET_ACCESS_KEY=", "aws_secret_access_key" },
	{ "AWS_SESSION_TOKEN=", "aws_session_token" },
};

#define N_OURS 2u /* of the first kind */

static int collect(char **env, char *text, size_t *ret_len, struct err *e)
{
	const char *value[ARRAY_SIZE(known)] = { NULL };
	size_t kept = 0, len = 0;

	for (char **at = env; *at; at++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(known) &&
		       strncmp(*at, known[i].name, strlen(known[i].name)) != 0)
			i++;
		if (i < ARRAY_SIZE(known))
			value[i] = *at + strlen(known[i].name);
		else
			env[kept++] = *at;
	}
	env[kept] = NULL;
	bool ours = value[0] || value[1];

	for (size_t i = ours ? 0 : N_OURS; i < (ours ? N_OURS : ARRAY_SIZE(known)); i++) {
		int n = value[i] && value[i][0] ? snprintf(text + len, TEXT_MAX - len, "%s=%s\n",
							   known[i].key, value[i]) :
						  0;

		if (n < 0 || (size_t)n >= TEXT_MAX - len || (n > 0 && strchr(value[i], '\n')))
			return err_say(e, -EINVAL, "%.*s: can not be a key",
				       (int)strcspn(known[i].name, "="), known[i].name);
		len += (size_t)n;
	}
	*ret_len = len;
	return 0;
}

int hide_s3_keys(char **env, struct err *e)
{
	char *text = private_alloc(TEXT_MAX);
	size_t len = 0;
	int r = text ? collect(env, text, &len, e) : err_set(e, -ENOMEM, "hold keys");
	_fd_ int sealed = r == 0 && len > 0 ? fd_memfd("caisson-keys", text, len) : -1;
	int fd = r < 0 ? r : -1;

	private_free(text, TEXT_MAX);
	if (sealed >= 0) {
		fd = fcntl(sealed, F_DUPFD, FIRST_FD); /* not close-on-exec */
		if (fd < 0)
			fd = err_set(e, -errno, "hand keys over");
	}
	return fd;
}
