/* SPDX-License-Identifier: Apache-2.0 */
/* test_remote_options.c - Arguments of the remote verbs, the socket and the token. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/err.h"
#include "remote/api.h"
#include "remote/problem.h"
#include "remote/remote_options.h"
#include "remote/tunnel.h"

#define ARGS(...)                                                                                  \
	((char *[]){ __VA_ARGS__, NULL }), (int)(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *))

static int parse(enum remote_verb verb, char **argv, int argc, struct remote_options *o,
		 struct err *e)
{
	*e = (struct err){ 0 };
	return remote_options_parse(verb, argc, argv, o, e);
}

TEST(mixed)
{
	struct remote_options o;
	struct err e;

	assert_int_equal(parse(OPT_CREATE,
			       ARGS("create", "demo", "--memory", "512M", "--cpus=0.5", "--env",
				    "A=1", "-e", "B=x=y", "--label", "k=v", "--timeout", "1h",
				    "--idle", "5m", "--json"),
			       &o, &e),
			 0);
	assert_int_equal(o.n_rest, 1);
	assert_string_equal(o.rest[0], "demo");
	assert_int_equal(o.memory_bytes, 512 << 20);
	assert_int_equal(o.cpus_milli, 500);
	assert_int_equal(o.timeout_ms, 3600000);
	assert_int_equal(o.idle_ms, 300000);
	assert_int_equal(options_count(o.env), 2);
	assert_true(o.json);
	json_t *env = remote_options_pairs(o.env);

	assert_string_equal(json_string_value(json_object_get(env, "B")), "x=y");
	json_decref(env);
	remote_options_free(&o);
}

TEST(mounts)
{
	struct remote_options o;
	struct err e;

	assert_int_equal(
		parse(OPT_CREATE,
		      ARGS("create", "demo", "--mount-only", "/data", "--mount-only=/m:ro"), &o,
		      &e),
		0);
	json_t *list = remote_options_list(o.mounts, true);

	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(json_string_value(json_array_get(list, 1)), "/m:ro");
	json_decref(list);
	remote_options_free(&o);
	assert_int_equal(parse(OPT_CREATE, ARGS("create", "demo", "--mount-only", "none"), &o, &e),
			 0);
	list = remote_options_list(o.mounts, true);
	assert_true(json_is_array(list) && json_array_size(list) == 0);
	json_decref(list);
	remote_options_free(&o);
	assert_int_equal(parse(OPT_CREATE, ARGS("create", "demo"), &o, &e), 0);
	assert_null(remote_options_list(o.mounts, true));
	remote_options_free(&o);
	/* As `caisson run --mount` has it: that is the operator's alone. */
	assert_int_equal(parse(OPT_CREATE, ARGS("create", "demo", "--mount-only", "/srv:/data"), &o,
			       &e),
			 -EINVAL);
	assert_non_null(strstr(e.msg, "no path of this machine"));
	remote_options_free(&o);
}

TEST(program_words)
{
	struct remote_options o;
	struct err e;

	/* Words behind the program are its own. */
	assert_int_equal(parse(OPT_EXEC, ARGS("exec", "--name", "d", "ls", "--json", "--", "-x"),
			       &o, &e),
			 0);
	assert_int_equal(o.n_rest, 4);
	assert_false(o.json);
	assert_string_equal(o.rest[1], "--json");
	remote_options_free(&o);
	assert_int_equal(parse(OPT_EXEC, ARGS("exec", "--name=d", "-i", "--", "--odd"), &o, &e), 0);
	assert_string_equal(o.rest[0], "--odd");
	assert_true(o.send_stdin);
	remote_options_free(&o);
	assert_int_equal(parse(OPT_SHELL, ARGS("shell", "d", "--", "python3", "-q"), &o, &e), 0);
	assert_int_equal(o.n_before, 1);
	assert_int_equal(o.n_rest, 3);
	remote_options_free(&o);
}

static void expect_bad(enum remote_verb verb, char **argv, int argc, const char *part)
{
	struct remote_options o;
	struct err e;

	assert_int_equal(parse(verb, argv, argc, &o, &e), -EINVAL);
	if (!strstr(e.msg, part))
		fail_msg("'%s' is not in '%s'", part, e.msg);
	remote_options_free(&o);
}

TEST(wrong)
{
	struct remote_options o;
	struct err e;

	expect_bad(OPT_PS, ARGS("ps", "--wrong"), "unknown option '--wrong'");
	expect_bad(OPT_PS, ARGS("ps", "--label"), "--label needs a value");
	expect_bad(OPT_PS, ARGS("ps", "--label", "novalue"), "KEY=VALUE");
	expect_bad(OPT_PS, ARGS("ps", "--json=1"), "takes no value");
	expect_bad(OPT_CREATE, ARGS("create", "--memory", "lots"), "--memory");
	expect_bad(OPT_RUN, ARGS("run", "--name", "d", "--memory", "1G", "x"), "caisson create");
	expect_bad(OPT_PS, ARGS("ps", "--socket", "/a", "--url", "http://b"), "do not go together");
	expect_bad(OPT_LOGS, ARGS("logs", "--tail", "-1"), "--tail");
	assert_int_equal(parse(OPT_PS, ARGS("ps", "--help"), &o, &e), 1);
	remote_options_free(&o);
	/* With --json the failure is JSON, too. */
	assert_int_equal(parse(OPT_PS, ARGS("ps", "--wrong", "--json"), &o, &e), -EINVAL);
	assert_true(o.json);
	remote_options_free(&o);
}

TEST(environment)
{
	struct remote_options o;
	struct err e;

	assert_int_equal(setenv("CAISSON_URL", "http://elsewhere", 1), 0);
	assert_int_equal(setenv("CAISSON_SOCKET", "/run/x.sock", 1), 0);
	assert_int_equal(parse(OPT_PS, ARGS("ps"), &o, &e), 0);
	assert_string_equal(o.url, "http://elsewhere");
	assert_null(o.socket);
	remote_options_free(&o);
	assert_int_equal(parse(OPT_PS, ARGS("ps", "--socket", "/mine"), &o, &e), 0);
	assert_null(o.url);
	assert_string_equal(o.socket, "/mine");
	remote_options_free(&o);
	(void)unsetenv("CAISSON_URL");
	(void)unsetenv("CAISSON_SOCKET");
}

TEST(socket)
{
	struct remote_options o = { .state = "/s" };
	struct err e = { 0 };
	char path[108], state_path[120];

	assert_int_equal(api_socket(&o, path, sizeof(path), &e), 0);
	assert_string_equal(path, "/s/caisson.sock");
	o.socket = "none";
	assert_int_equal(api_socket(&o, path, sizeof(path), &e), -EINVAL);
	memset(state_path, 'a', sizeof(state_path));
	state_path[0] = '/';
	state_path[sizeof(state_path) - 1] = '\0';
	o.socket = state_path;
	assert_int_equal(api_socket(&o, path, sizeof(path), &e), -ENAMETOOLONG);
}

static int token_of(const char *text, mode_t mode, char **token, struct err *e)
{
	char path[] = "/tmp/caisson-token-XXXXXX";
	int fd = mkstemp(path);
	struct remote_options o = { .token_file = path };

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	int r = api_token(&o, token, e);

	(void)close(fd);
	(void)unlink(path);
	return r;
}

TEST(token)
{
	struct err e = { 0 };
	char *token;

	assert_int_equal(token_of("s3cret-token\n", 0600, &token, &e), 0);
	assert_string_equal(token, "s3cret-token");
	api_wipe(token);
	assert_int_equal(token_of("\n# the daemon's own\nci:s3cret==\nother:x\n", 0400, &token, &e),
			 0);
	assert_string_equal(token, "s3cret==");
	api_wipe(token);
	assert_int_equal(token_of("s3cret\n", 0644, &token, &e), -EPERM);
	assert_non_null(strstr(e.msg, "chmod 600"));
	assert_int_equal(token_of("", 0600, &token, &e), -EINVAL);
	/* The error about a secret does not contain it. */
	assert_int_equal(token_of("bad\"s3cret\n", 0600, &token, &e), -EINVAL);
	assert_null(strstr(e.msg, "s3cret"));
	assert_int_equal(setenv("CAISSON_TOKEN", "a\r\nX: y", 1), 0);
	assert_int_equal(api_token(&(struct remote_options){ 0 }, &token, &e), -EINVAL);
	(void)unsetenv("CAISSON_TOKEN");
	assert_int_equal(api_token(&(struct remote_options){ 0 }, &token, &e), 0);
	assert_null(token);
}

TEST(problems)
{
	static const char body[] =
		"{\"error\":{\"code\":\"no_such_sandbox\",\"message\":\"unknown name\"}}";
	struct problem p;

	assert_int_equal(problem_answer(&p, 404, body, sizeof(body) - 1, 0), -1);
	assert_int_equal(p.exit_code, EXIT_MISSING);
	assert_string_equal(p.message, "unknown name");
	assert_non_null(strstr(p.hint, "caisson create"));
	assert_int_equal(problem_answer(&p, 502, "<html>", 6, 0), -1);
	assert_int_equal(p.exit_code, EXIT_OTHER);
	assert_string_equal(p.code, "http_502");
	assert_int_equal(problem_answer(&p, 429, "", 0, 7), -1);
	assert_int_equal(p.exit_code, EXIT_BUSY);
	assert_non_null(strstr(p.hint, "7 s"));
	assert_int_equal(problem_exit_code(401), EXIT_AUTH);
	assert_int_equal(problem_exit_code(409), EXIT_CONFLICT);
	assert_int_equal(problem_exit_code(422), EXIT_INVALID);
	assert_int_equal(problem_exit_code(413), EXIT_INVALID);
	assert_int_equal(problem_exit_code(500), EXIT_OTHER);
}

TEST(accept)
{
	char accept[29];

	websocket_accept("dGhlIHNhbXBsZSBub25jZQ==", accept); /* RFC 6455, 1.3 */
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

int main(void)
{
	(void)unsetenv("CAISSON_JSON");
	return unit_run();
}
