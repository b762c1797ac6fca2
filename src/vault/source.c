/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - Secrets from a file, from variables and from a command, read by a child that ends.
 *
 * The command runs with the environment of the daemon's starter (it may need a token of its own to
 * ask a store), with nothing to read, for at most COMMAND_MS. It runs at each start of a front and
 * at each reload, so its secrets are those of that moment. Variables are those of the daemon's
 * start.
 *
 * The environment of a process can be read for as long as it lives, and the daemon's processes
 * inherit it. So `caisson serve` takes secrets and keys out of it into sealed memory, which only
 * the processes that get the descriptor can read.
 */
#include "vault/source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/private.h"
#include "base/spawn.h"
#include "vault/vault.h"

#define COMMAND_MS 30000u
#define COMMAND_WORDS 64u
#define KEYS_TEXT_MAX (16u << 10)
#define FIRST_FD 20 /* beyond those of a service manager and the keeper's */

/* Up to VAULT_TEXT_MAX bytes. Length or a negative errno. @until_ns: 0 for a file, which does not
 * wait. */
static ssize_t read_all(int fd, char *text, uint64_t until_ns, struct err *e)
{
	size_t len = 0;
	ssize_t n = 1;

	while (n != 0 && len <= VAULT_TEXT_MAX) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_now_ns();

		if (until_ns && (now >= until_ns ||
				 poll(&p, 1, (int)((until_ns - now) / CLOCK_NS_PER_MS) + 1) == 0))
			return err_say(e, -ETIMEDOUT, "did not end within %u s", COMMAND_MS / 1000);
		n = read(fd, text + len, VAULT_TEXT_MAX + 1 - len);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_set(e, -errno, "read it");
		if (n > 0)
			len += (size_t)n;
	}
	return len > VAULT_TEXT_MAX ? err_say(e, -E2BIG, "is larger than 1 MiB") : (ssize_t)len;
}

static int add_fd(struct vault *v, int fd, uint64_t until_ns, struct err *e)
{
	char *text = private_alloc(VAULT_TEXT_MAX + 1);
	ssize_t n = text ? read_all(fd, text, until_ns, e) : err_set(e, -ENOMEM, "read it");
	int r = n < 0 ? (int)n : vault_add(v, text, (size_t)n, e);

	private_free(text, VAULT_TEXT_MAX + 1);
	return r;
}

static int from_file(struct vault *v, const char *path, struct err *e)
{
	_fd_ int fd = private_open(path, e);
	int r = fd < 0 ? fd : add_fd(v, fd, 0, e);

	return r < 0 ? err_wrap(e, "--secrets-file %s", path) : 0;
}

/* ---- variables ----------------------------------------------------------------------------- */

const char *source_prefix_problem(const char *prefix)
{
	static const char ours[] = "CAISSON_SECRETS_";
	size_t len = strlen(prefix);

	if (!vault_name(prefix, len) || prefix[len - 1] != '_')
		return "must be letters, digits and '_', and end with '_', as in MYAPP_SECRET_";
	if (strncmp(prefix, ours, len < sizeof(ours) - 1 ? len : sizeof(ours) - 1) == 0)
		return "would take the daemon's own settings for secrets; choose another";
	return NULL;
}

/* "PREFIX_NAME=value": the part from NAME on, or NULL. */
static const char *after_prefix(const char *prefix, const char *entry)
{
	size_t len = strlen(prefix);

	return strncmp(entry, prefix, len) == 0 ? entry + len : NULL;
}

/* A value of several lines would be several secrets. */
static int add_variable(struct vault *v, const char *line, struct err *e)
{
	int n = (int)strcspn(line, "=");

	if (!vault_name(line, (size_t)n) || strchr(line, '\n'))
		return err_say(e, -EINVAL, "%.*s: %s", n > 64 ? 64 : n, line,
			       strchr(line, '\n') ? "the value has several lines" :
						    "no secret can have this name");
	return vault_add(v, line, strlen(line), e) < 0 ? err_wrap(e, "%.*s", n, line) : 0;
}

/* The descriptor that source_hide() left; -1: none. */
static int hidden_fd(char **env)
{
	const char *number = NULL;
	uint64_t fd = 0;

	for (char **at = env; at && *at; at++)
		if (strncmp(*at, SOURCE_FD_ENV "=", sizeof(SOURCE_FD_ENV)) == 0)
			number = *at + sizeof(SOURCE_FD_ENV);
	return number && num_parse_u64(number, 3, 1024, &fd, NULL) == 0 ? (int)fd : -1;
}

static int from_variables(struct vault *v, const char *prefix, char **env, struct err *e)
{
	int r = 0;

	for (char **at = env; r == 0 && at && *at; at++) {
		const char *line = after_prefix(prefix, *at);

		if (line)
			r = add_variable(v, line, e);
	}
	return r < 0 ? err_wrap(e, "--secrets-env %s", prefix) : 0;
}

/* A copy of @sealed, which is closed, that programs inherit; -1 when @sealed is -1. */
static int inherited(int sealed, struct err *e)
{
	_fd_ int from = sealed;
	int fd = from < 0 ? -1 : fcntl(from, F_DUPFD, FIRST_FD); /* not close-on-exec */

	return from >= 0 && fd < 0 ? err_set(e, -errno, "hand secrets over") : fd;
}

int source_hide(const char *prefix, char **env, const char *lines, struct err *e)
{
	struct vault v;
	size_t n = 0;
	int r = vault_init(&v, false);

	if (r < 0)
		return err_set(e, r, "hold secrets");
	for (char **at = env; r == 0 && *at; at++) {
		const char *line = prefix ? after_prefix(prefix, *at) : NULL;

		if (line)
			r = add_variable(&v, line, e);
		else
			env[n++] = *at;
	}
	if (r == 0)
		env[n] = NULL;
	else
		(void)err_wrap(e, "--secrets-env %s", prefix);
	if (r == 0 && vault_add(&v, lines, strlen(lines), e) < 0)
		r = err_wrap(e, "the credentials of a package index");
	int fd = r < 0 ? r : inherited(v.n > 0 ? vault_seal(&v, false) : -1, e);

	vault_free(&v);
	return fd;
}

/* Variables, and their names in a file of keys. If one of the first N_OURS is set, which are for
 * this service alone, the others are not used. */
static const struct {
	const char *name, *key;
} s3_keys[] = {
	{ "COREASON_SANDBOX_S3_ACCESS_KEY=", "access_key" },
	{ "COREASON_SANDBOX_S3_SECRET_KEY=", "secret_key" },
	{ "AWS_ACCESS_KEY_ID=", "aws_access_key_id" },
	{ "AWS_SECRET_ACCESS_KEY=", "aws_secret_access_key" },
	{ "AWS_SESSION_TOKEN=", "aws_session_token" },
};

#define N_OURS 2u

static int take_s3_keys(char **env, char *text, size_t *ret_len, struct err *e)
{
	const char *value[ARRAY_SIZE(s3_keys)] = { NULL };
	size_t kept = 0, len = 0;

	for (char **at = env; *at; at++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(s3_keys) &&
		       strncmp(*at, s3_keys[i].name, strlen(s3_keys[i].name)) != 0)
			i++;
		if (i < ARRAY_SIZE(s3_keys))
			value[i] = *at + strlen(s3_keys[i].name);
		else
			env[kept++] = *at;
	}
	env[kept] = NULL;
	bool ours = value[0] || value[1];

	for (size_t i = ours ? 0 : N_OURS; i < (ours ? N_OURS : ARRAY_SIZE(s3_keys)); i++) {
		int n = value[i] && value[i][0] ? snprintf(text + len, KEYS_TEXT_MAX - len,
							   "%s=%s\n", s3_keys[i].key, value[i]) :
						  0;

		if (n < 0 || (size_t)n >= KEYS_TEXT_MAX - len || (n > 0 && strchr(value[i], '\n')))
			return err_say(e, -EINVAL, "%.*s: this is not a valid key",
				       (int)strcspn(s3_keys[i].name, "="), s3_keys[i].name);
		len += (size_t)n;
	}
	*ret_len = len;
	return 0;
}

int source_hide_s3(char **env, struct err *e)
{
	char *text = private_alloc(KEYS_TEXT_MAX);
	size_t len = 0;
	int r = text ? take_s3_keys(env, text, &len, e) : err_set(e, -ENOMEM, "hold keys");

	if (r == 0)
		r = inherited(len > 0 ? fd_memfd("caisson-keys", text, len) : -1, e);
	private_free(text, KEYS_TEXT_MAX);
	return r;
}

/* ---- a command ----------------------------------------------------------------------------- */

static int split(char *text, char **words)
{
	size_t n = 0;

	for (char *rest = NULL, *w = strtok_r(text, " \t", &rest); w;
	     w = strtok_r(NULL, " \t", &rest)) {
		if (n == COMMAND_WORDS)
			return -E2BIG;
		words[n++] = w;
	}
	words[n] = NULL;
	return n > 0 ? 0 : -EINVAL;
}

static int run(struct vault *v, char **words, char **env, struct err *e)
{
	int ends[2], status = 0;
	sigset_t all;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a pipe");
	_fd_ int in = ends[0], out = ends[1];
	const struct spawn s = { .argv = words,
				 .envp = env,
				 .fds = { { out, STDOUT_FILENO } },
				 .n_fds = 1,
				 .no_input = true,
				 .unignored = &all }; /* whatever the daemon ignores */

	(void)sigfillset(&all);
	int r = spawn_program(&s, &pid, e);

	if (r < 0)
		return r;
	out = fd_close(out);
	(void)fcntl(in, F_SETFL, O_NONBLOCK);
	r = add_fd(v, in, clock_now_ns() + COMMAND_MS * CLOCK_NS_PER_MS, e);
	if (r < 0)
		(void)kill(pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	if (r == 0 && status != 0)
		r = err_say(e, -EIO, "ended with %s %d", WIFEXITED(status) ? "status" : "signal",
			    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return r;
}

static int from_command(struct vault *v, const char *command, char **env, struct err *e)
{
	_mem_ char *text = strdup(command);
	char *words[COMMAND_WORDS + 1];
	int r = text ? split(text, words) : -ENOMEM;

	r = r < 0 ? err_set(e, r, "take it apart") : run(v, words, env, e);
	return r < 0 ? err_wrap(e, "--secrets-command") : 0;
}

/* ---- the child ----------------------------------------------------------------------------- */

/* In it: everything, and what is said of it. */
static void load(const struct sources *s, char **env, int sock)
{
	struct err e = { 0 };
	struct vault v;
	int fds[2] = { -1, -1 };
	int r = vault_init(&v, false);

	if (r < 0)
		(void)err_set(&e, r, "hold secrets");
	if (r == 0 && s->file)
		r = from_file(&v, s->file, &e);
	if (r == 0 && hidden_fd(env) >= 0 && vault_unseal(&v, hidden_fd(env), &e) < 0)
		r = err_wrap(&e, "secrets of --secrets-env and of package indexes");
	if (r == 0 && s->prefix)
		r = from_variables(&v, s->prefix, env, &e);
	if (r == 0 && s->command)
		r = from_command(&v, s->command, env, &e);
	if (r == 0) {
		fds[0] = vault_seal(&v, false);
		fds[1] = vault_seal(&v, true);
		if (fds[0] < 0 || fds[1] < 0)
			r = err_set(&e, -EIO, "hand secrets over");
	}
	(void)fd_send(sock, &e, sizeof(e), fds, r == 0 ? 2 : 0);
	vault_free(&v);
}

pid_t source_begin(const struct sources *s, char **env, int *ret_sock, struct err *e)
{
	int pair[2];
	sigset_t none;

	*ret_sock = -1;
	if (!s->file && !s->prefix && !s->command && hidden_fd(env) < 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "socketpair");
	_fd_ int ours = pair[0], theirs = pair[1];
	pid_t pid = fork();

	if (pid < 0)
		return err_set(e, -errno, "fork");
	if (pid == 0) {
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		load(s, env, theirs);
		_exit(0);
	}
	*ret_sock = TAKE_FD(ours);
	return pid;
}

int source_finish(pid_t pid, int sock, int *ret_whole, int *ret_blind, struct err *e)
{
	_fd_ int ours = sock;
	int fds[2];
	size_t n_fds = ARRAY_SIZE(fds);
	struct err said = { 0 };
	ssize_t n = fd_recv(ours, &said, sizeof(said), fds, &n_fds);

	*ret_whole = *ret_blind = -1;
	(void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
	if (n != (ssize_t)sizeof(said))
		return err_say(e, -EIO, "secrets could not be read: the reader died");
	if (n_fds != 2) {
		said.msg[sizeof(said.msg) - 1] = '\0';
		return err_say(e, said.code < 0 ? said.code : -EIO, "%s", said.msg);
	}
	*ret_whole = fds[0];
	*ret_blind = fds[1];
	return 0;
}
