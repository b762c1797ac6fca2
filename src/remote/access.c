/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - The socket and the token.
 *
 * A token is never taken from the command line (everybody on the machine can read those) and never
 * printed, also not in a message about it.
 */
#include "remote/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "client/state.h"
#include "remote/options.h"

#define TOKEN_FILE_MAX 65536

int access_socket(const struct remote_options *o, char *path, size_t size, struct err *e)
{
	char state[4096];
	int n;

	if (o->socket && strcmp(o->socket, "none") == 0)
		return err_say(e, -EINVAL,
			       "'none' can not be reached: name a socket, or use --url");
	if (o->socket) {
		n = snprintf(path, size, "%s", o->socket);
	} else {
		int r = state_dir(o->state, getenv("XDG_RUNTIME_DIR"), state, sizeof(state), e);

		if (r < 0)
			return r;
		n = snprintf(path, size, "%s/caisson.sock", state);
	}
	return n < 0 || (size_t)n >= size ?
		       err_say(e, -ENAMETOOLONG,
			       "the path is longer than the %zu bytes of a socket", size - 1) :
		       0;
}

/* RFC 6750's b64token: what may follow "Bearer ". */
static bool token_valid(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > 4096)
		return false;
	return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") ==
	       len;
}

static int keep(const char *token, const char *from, char **ret, struct err *e)
{
	if (!token_valid(token))
		return err_say(e, -EINVAL,
			       "%s: holds no token (letters, digits and -._~+/= in one line)",
			       from);
	*ret = strdup(token);
	return *ret ? 0 : err_set(e, -ENOMEM, "keep the token");
}

static int from_file(const char *path, char **ret, struct err *e)
{
	char text[TOKEN_FILE_MAX];
	struct stat st;

	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "--token-file %s", path);
	if (S_ISREG(st.st_mode) && st.st_mode & 077)
		return err_say(e, -EPERM, "--token-file %s: others can read it: chmod 600 %s", path,
			       path);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return err_set(e, -errno, "--token-file %s", path);
	text[n] = '\0';
	char *line = text + strspn(text, " \t\r\n");

	/* Comments of a daemon's own file. */
	while (*line == '#') {
		line += strcspn(line, "\n");
		line += strspn(line, " \t\r\n");
	}
	line[strcspn(line, " \t\r\n")] = '\0';
	const char *colon = strchr(line, ':');
	int r = keep(colon ? colon + 1 : line, path, ret, e);

	explicit_bzero(text, sizeof(text));
	return r;
}

int access_token(const struct remote_options *o, char **ret, struct err *e)
{
	const char *direct = getenv("CAISSON_TOKEN");

	*ret = NULL;
	if (o->token_file)
		return from_file(o->token_file, ret, e);
	return direct && *direct ? keep(direct, "CAISSON_TOKEN", ret, e) : 0;
}

void access_wipe(char *token)
{
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
}
