/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_creds.c - Credentials in docker's config.json, and from the helpers that it names.
 *
 * The file is the user's own. A name of a helper becomes part of a program's name, so it may not
 * hold a slash; a user or a password with a line end could add a header to a request, and is
 * refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "image/documents.h"
#include "image/ref.h"
#include "image/registry_creds.h"

#define FILE_MAX (1u << 20)

/* ---- config.json --------------------------------------------------------------------------- */

/* Keys are "host", "https://host/v1/" and, for Docker's own registry, its old names. */
static bool is_for(const char *key, const char *host)
{
	const char *scheme = strstr(key, "://");
	size_t n;

	key = scheme ? scheme + 3 : key;
	n = strcspn(key, "/");
	if (n == strlen(host) && strncmp(key, host, n) == 0)
		return true;
	return strcmp(host, REF_DOCKER) == 0 &&
	       ((n == 15 && strncmp(key, "index.docker.io", n) == 0) ||
		(n == 20 && strncmp(key, "registry-1.docker.io", n) == 0));
}

static const json_t *entry_for(const json_t *of, const char *host)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)of, key, value)
	{
		if (is_for(key, host))
			return value;
	}
	return NULL;
}

static bool put(char *to, size_t size, const char *text, size_t len)
{
	if (len >= size || memchr(text, '\0', len) || memchr(text, '\n', len) ||
	    memchr(text, '\r', len))
		return false;
	memcpy(to, text, len);
	to[len] = '\0';
	return true;
}

static int take_auth(const json_t *entry, struct creds *ret, struct err *e)
{
	const char *auth = document_text(entry, "auth"), *user = document_text(entry, "username"),
		   *password = document_text(entry, "password");
	_buf_ struct buf text = BUF_INIT(8192);
	const char *colon;

	if (*document_text(entry, "identitytoken"))
		return err_say(e, -EBADMSG,
			       "the registry's credentials are an identity token, which is not "
			       "supported: log in with user and password");
	if (*auth) {
		if (!base64_decode(auth, strlen(auth), &text) ||
		    !(colon = memchr(buf_str(&text), ':', text.len)))
			return err_say(e, -EBADMSG,
				       "the registry's 'auth' is not base64 of user:password");
		size_t n = (size_t)(colon - buf_str(&text));

		if (put(ret->user, sizeof(ret->user), buf_str(&text), n) &&
		    put(ret->password, sizeof(ret->password), colon + 1, text.len - n - 1))
			return 0;
	} else if (put(ret->user, sizeof(ret->user), user, strlen(user)) &&
		   put(ret->password, sizeof(ret->password), password, strlen(password))) {
		return 0;
	}
	return err_say(e, -EBADMSG,
		       "the registry's user or password is too long, or contains a line end");
}

static bool helper_ok(const char *name)
{
	return *name && strlen(name) < sizeof(((struct creds *)0)->helper) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.") == strlen(name);
}

int creds_parse(const char *text, size_t len, const char *host, struct creds *ret, struct err *e)
{
	json_auto_t *doc = document_load("file of credentials", text, len, e);
	const json_t *entry;
	const char *helper;

	*ret = (struct creds){ 0 };
	if (!doc)
		return -EBADMSG;
	helper = json_string_value(entry_for(json_object_get(doc, "credHelpers"), host));
	entry = entry_for(json_object_get(doc, "auths"), host);
	/* With "credsStore", "auths" has an empty object for every registry that it knows. */
	if (!helper && (!entry || json_object_size(entry) == 0))
		helper = json_string_value(json_object_get(doc, "credsStore"));
	if (!helper)
		return entry ? take_auth(entry, ret, e) : 0;
	if (!helper_ok(helper))
		return err_say(e, -EBADMSG, "'%.60s' is not a valid name of a credential helper",
			       helper);
	(void)snprintf(ret->helper, sizeof(ret->helper), "%s", helper);
	return 0;
}

/* ---- helpers ------------------------------------------------------------------------------- */

/* The program's stderr is ours. */
static int start_helper(const char *name, int in, int out, pid_t *ret, struct err *e)
{
	char program[96], get[] = "get";
	char *argv[] = { program, get, NULL };
	const struct spawn s = { .argv = argv,
				 .envp = environ,
				 .fds = { { in, STDIN_FILENO }, { out, STDOUT_FILENO } },
				 .n_fds = 2 };

	(void)snprintf(program, sizeof(program), "docker-credential-%s", name);
	return spawn_program(&s, ret, e);
}

static int ask_helper(const char *host, struct creds *c, struct err *e)
{
	const char *key = strcmp(host, REF_DOCKER) == 0 ? "https://index.docker.io/v1/" : host;
	_buf_ struct buf answer = BUF_INIT(64 << 10);
	int out[2], status = -1, r;
	_fd_ int in = fd_memfd("registry", key, strlen(key));

	if (in < 0 || pipe2(out, O_CLOEXEC) < 0)
		return err_set(e, -errno, "ask for credentials");
	_fd_ int from = out[0];
	pid_t pid;

	r = start_helper(c->helper, in, out[1], &pid, e);
	fd_close(out[1]);
	if (r < 0)
		return r;
	r = fd_read_buf(from, &answer);
	(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	/* A helper that does not know the registry fails: try without credentials. */
	if (r < 0 || status != 0)
		return 0;
	json_auto_t *doc =
		document_load("credential helper's answer", buf_str(&answer), answer.len, e);
	const char *user = document_text(doc, "Username"), *secret = document_text(doc, "Secret");

	if (!doc)
		return -EBADMSG;
	if (!put(c->user, sizeof(c->user), user, strlen(user)) ||
	    !put(c->password, sizeof(c->password), secret, strlen(secret)))
		return err_say(e, -EBADMSG, "the credential helper's answer is too long");
	return 0;
}

/* ---- files --------------------------------------------------------------------------------- */

static int try_file(const char *path, const char *host, struct creds *ret, struct err *e)
{
	_buf_ struct buf text = BUF_INIT(FILE_MAX);
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_read_buf(fd, &text);

	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? -ENOENT : err_set(e, r, "read %.300s", path);
	r = creds_parse(buf_str(&text), text.len, host, ret, e);
	if (r < 0)
		return err_wrap(e, "%.300s", path);
	r = ret->helper[0] ? ask_helper(host, ret, e) : 0;
	return r == -ENOENT ? -ENOEXEC : r; /* the program is missing, not the file */
}

int creds_find(const char *host, const char *authfile, struct creds *ret, struct err *e)
{
	const struct {
		const char *dir, *name;
	} places[] = {
		{ secure_getenv("REGISTRY_AUTH_FILE"), "" },
		{ secure_getenv("DOCKER_CONFIG"), "/config.json" },
		{ secure_getenv("HOME"), "/.docker/config.json" },
		{ secure_getenv("XDG_RUNTIME_DIR"), "/containers/auth.json" },
	};
	char path[4096];
	int r;

	*ret = (struct creds){ 0 };
	if (authfile) {
		r = try_file(authfile, host, ret, e);
		return r == -ENOENT ? err_set(e, r, "--authfile %.300s", authfile) : r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!places[i].dir || !*places[i].dir ||
		    (size_t)snprintf(path, sizeof(path), "%s%s", places[i].dir, places[i].name) >=
			    sizeof(path))
			continue;
		r = try_file(path, host, ret, e);
		if (r != -ENOENT)
			return r;
	}
	return 0;
}
