/* SPDX-License-Identifier: Apache-2.0 */
/* test_names.c - Aliases, variables, and whether an entry is ourselves. */
#include "bridge/config.h"

#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/err.h"

static bool none(const void *arg, const char *alias)
{
	(void)arg;
	(void)alias;
	return false;
}

static bool some(const void *arg, const char *alias)
{
	(void)arg;
	return strcmp(alias, "git_hub") == 0 || strcmp(alias, "git_hub_2") == 0;
}

TEST(alias)
{
	static const char *const rows[][2] = {
		{ "weather", "weather" },    { "git-hub", "git_hub" },  { "a.b/c d", "a_b_c_d" },
		{ "7zip", "_7zip" },         { "class", "class_" },     { "await", "await_" },
		{ "function", "function_" }, { "runtime", "runtime_" }, { "\xc3\xa4rger", "_rger" },
		{ "---", "server" },         { "Async", "Async" },
	};
	char alias[80];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bridge_alias(rows[i][0], none, NULL, alias, sizeof(alias));
		assert_string_equal(alias, rows[i][1]);
	}
	bridge_alias("git.hub", some, NULL, alias, sizeof(alias));
	assert_string_equal(alias, "git_hub_3");
	char name[500];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	bridge_alias(name, none, NULL, alias, sizeof(alias));
	assert_in_range(strlen(alias), 32, 79);
}

static const char *variable(const char *name)
{
	return strcmp(name, "HOME") == 0 ? "/home/me" : strcmp(name, "EMPTY") == 0 ? "" : NULL;
}

TEST(expand)
{
	static const char *const rows[][2] = {
		{ "plain", "plain" },
		{ "${HOME}/x", "/home/me/x" },
		{ "a${env:HOME}b${EMPTY}c", "a/home/mebc" },
		{ "${NOPE:-standard}", "standard" },
		{ "${HOME:-standard}", "/home/me" },
		{ "$HOME ${", "$HOME ${" },
		{ "${NOPE}", NULL },
		{ "${input:token}", NULL },
		{ "${}", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err e = { 0 };
		char *text = bridge_expand(rows[i][0], variable, &e);

		if (rows[i][1])
			assert_string_equal(text, rows[i][1]);
		else
			assert_null(text);
		assert_int_equal(!text, e.code != 0);
		free(text);
	}
}

static bool self_url(const char *url)
{
	const char *const own[] = { "127.0.0.1:8001", NULL };
	char copy[200];
	struct server_config s = { .transport = BRIDGE_HTTP, .url = copy };

	assert_true(strlen(url) < sizeof(copy));
	memcpy(copy, url, strlen(url) + 1);
	return bridge_is_self(&s, own);
}

TEST(self)
{
	char caisson[] = "/usr/bin/caisson", mcp[] = "mcp", run[] = "run", env[] = "env";
	char *own[] = { caisson, mcp, NULL }, *behind[] = { env, caisson, mcp, NULL },
	     *other[] = { caisson, run, NULL };
	struct server_config s = { .transport = BRIDGE_STDIO };

	s.argv = own;
	assert_true(bridge_is_self(&s, NULL));
	s.argv = behind;
	assert_true(bridge_is_self(&s, NULL));
	s.argv = other;
	assert_false(bridge_is_self(&s, NULL));
	assert_true(self_url("http://127.0.0.1:8001/mcp"));
	assert_true(self_url("http://localhost:8001/mcp/sse"));
	assert_true(self_url("http://me:secret@127.0.0.1:8001"));
	assert_true(self_url("http://[::1]:8001/mcp"));
	assert_false(self_url("http://127.0.0.1:80010/mcp"));
	assert_false(self_url("http://127.0.0.1/mcp"));
	assert_false(self_url("https://example.com:8001/mcp"));
}

TEST(keys)
{
	static const struct {
		const char *key, *meant; /* NULL: it is one of ours, or somebody else's */
	} rows[] = {
		{ "command", NULL },
		{ "commandd", "command" },
		{ "Command", "command" },
		{ "cmomand", "command" },
		{ "arg", "args" },
		{ "agrs", "args" },
		{ "args", NULL },
		{ "evn", "env" },
		{ "env", NULL },
		{ "envFile", NULL },
		{ "uri", "url" },
		{ "httpUrl", NULL },
		{ "header", "headers" },
		{ "disable", "disabled" },
		{ "caison", "caisson" },
		{ "startupTimeoutSec", "startup_timeout_sec" },
		{ "startup_timeout_ms", NULL },
		{ "startup_timeout", "startup_timeout_ms" },
		{ "timeout", NULL },
		{ "tools", NULL },
		{ "tags", NULL },
		{ "trust", NULL },
		{ "alwaysAllow", NULL },
		{ "autoApprove", NULL },
		{ "name", NULL },
		{ "", NULL },
		{ "x", NULL },
		{ "a key that is longer than any that there is", NULL },
		{ "\xc3\xbc", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *meant = bridge_key_meant(rows[i].key);

		if (!rows[i].meant != !meant || (meant && strcmp(meant, rows[i].meant) != 0))
			fail_msg("'%s': %s", rows[i].key, meant ? meant : "nothing");
	}
}
