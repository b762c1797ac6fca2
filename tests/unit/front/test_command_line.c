/* SPDX-License-Identifier: Apache-2.0 */
/* test_command_line.c - From a request to words, environment and directory; and names of signals.
 */
#include "base/fd.h"
#include "front/cell/command_line.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static struct command_line line;
static struct refusal why;

static int make(const struct command_words *w)
{
	memset(&line, 0xa5, sizeof(line));
	memset(&why, 0, sizeof(why));
	return command_line_make(w, &line, &why);
}

static const char *env(const char *name)
{
	const char *found = NULL;
	size_t len = strlen(name);

	for (char **v = line.envp; *v; v++)
		if (strncmp(*v, name, len) == 0 && (*v)[len] == '=') {
			assert_null(found); /* each name once */
			found = *v + len + 1;
		}
	return found;
}

TEST(words)
{
	json_t *args = json_pack("[s,s,s]", "", "$(id)", "a b");
	const char *tail[] = { "-c", "ls | wc", NULL };
	struct command_words w = { .program = "prog", .args = args };

	assert_int_equal(make(&w), 0);
	assert_string_equal(line.argv[0], "prog");
	assert_string_equal(line.argv[1], "");
	assert_string_equal(line.argv[2], "$(id)");
	assert_string_equal(line.argv[3], "a b");
	assert_null(line.argv[4]);
	assert_null(line.other);
	command_line_free(&line);
	command_line_free(&line);
	w = (struct command_words){ .program = "/bin/bash", .other = "/bin/sh", .tail = tail };
	assert_int_equal(make(&w), 0);
	assert_string_equal(line.argv[1], "-c");
	assert_string_equal(line.argv[2], "ls | wc");
	assert_null(line.argv[3]);
	assert_string_equal(line.other, "/bin/sh");
	command_line_free(&line);
	json_decref(args);
}

TEST(environment)
{
	json_t *sandbox = json_pack("{s:s,s:s,s:s}", "A", "1", "HOME", "/h", "B", "x=y");
	json_t *request = json_pack("{s:s,s:s,s:s}", "A", "2", "C", "", "PATH", "/only");
	struct command_words w = { .program = "p", .sandbox_env = sandbox, .env = request };

	assert_int_equal(make(&w), 0);
	assert_string_equal(env("A"), "2");
	assert_string_equal(env("B"), "x=y");
	assert_string_equal(env("C"), "");
	assert_string_equal(env("HOME"), "/h");
	assert_string_equal(env("PATH"), "/only");
	assert_string_equal(env("LANG"), "C.UTF-8");
	assert_null(env("TERM"));
	command_line_free(&line);
	w = (struct command_words){ .program = "p", .terminal = true };
	assert_int_equal(make(&w), 0);
	assert_string_equal(env("TERM"), "xterm-256color");
	assert_string_equal(env("PIP_RETRIES"), "1");
	assert_string_equal(env("NODE_OPTIONS"), "--require=/etc/caisson-node.js");
	assert_non_null(strstr(env("PATH"), "/packages/tools/bin:/usr/local/bin"));
	command_line_free(&line);
	w = (struct command_words){ .program = "p", .fetcher = true };
	assert_int_equal(make(&w), 0);
	assert_string_equal(env("PATH"), "/usr/local/bin:/usr/bin:/bin");
	assert_null(env("PIP_RETRIES"));
	assert_null(env("NODE_OPTIONS"));
	command_line_free(&line);
	json_decref(sandbox);
	json_decref(request);
}

TEST(bad_names)
{
	static const char *const bad[] = { "", "=", "A=B", "A=" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		json_t *map = json_pack("{s:s}", bad[i], "1");
		struct command_words w = { .program = "p", .env = map };

		assert_int_equal(make(&w), -1);
		assert_int_equal(why.kind, REFUSAL_INVALID);
		assert_string_equal(why.field, "env");
		command_line_free(&line);
		json_decref(map);
	}
}

TEST(directory)
{
	static const struct {
		const char *cwd, *becomes;
	} rows[] = { { NULL, "/workspace" },
		     { "/", "/" },
		     { "/tmp/x", "/tmp/x" },
		     { "a/b", "/workspace/a/b" },
		     { "..", "/workspace/.." } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct command_words w = { .program = "p", .cwd = rows[i].cwd };

		assert_int_equal(make(&w), 0);
		assert_string_equal(line.cwd, rows[i].becomes);
		command_line_free(&line);
	}
	char *longest = calloc(1, COMMAND_CWD_MAX + 1);

	assert_non_null(longest);
	memset(longest, 'a', COMMAND_CWD_MAX);
	struct command_words w = { .program = "p", .cwd = longest };

	assert_int_equal(make(&w), -1);
	assert_string_equal(why.field, "cwd");
	command_line_free(&line);
	longest[0] = '/';
	assert_int_equal(make(&w), 0);
	command_line_free(&line);
	free(longest);
}

/* More than pid 1 reads at once is refused here, with a word about what to do. */
TEST(too_much)
{
	size_t size = 5u << 20;
	char *big = calloc(1, size);

	assert_non_null(big);
	memset(big, 'x', size - 1);
	json_t *args = json_pack("[s]", big);
	struct command_words w = { .program = "p", .args = args };

	assert_int_equal(make(&w), -1);
	assert_int_equal(why.kind, REFUSAL_INVALID);
	assert_string_equal(why.code, "out_of_range");
	assert_non_null(why.hint);
	command_line_free(&line);
	json_decref(args);
	free(big);
}

TEST(signals)
{
	static const struct {
		const char *name;
		int signo;
	} rows[] = { { "TERM", SIGTERM }, { "SIGTERM", SIGTERM },
		     { "term", SIGTERM }, { "15", 15 },
		     { "9", SIGKILL },    { "64", 64 },
		     { "USR1", SIGUSR1 }, { "WINCH", SIGWINCH },
		     { "0", 0 },          { "65", 0 },
		     { "-1", 0 },         { "", 0 },
		     { "SIG", 0 },        { "SIG15", 0 },
		     { "TERMX", 0 },      { "1e1", 0 },
		     { " 9", 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (process_signal_number(rows[i].name) != rows[i].signo)
			fail_msg("%s: %d", rows[i].name, process_signal_number(rows[i].name));
}
