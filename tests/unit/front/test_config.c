/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_config.c - Settings of the daemon: by default, by variable, by flag; their precedence; and
 * one line that names the wrong setting for every error.
 */
#include "base/err.h"
#include "base/fd.h"
#include "front/support/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"

#define MIB (UINT64_C(1) << 20)
#define WORDS_MAX 128

static struct config c;
static struct err err;
static config_check_fn *tools; /* of config_parse() */

static int teardown(void **state)
{
	(void)state;
	tools = NULL;
	config_free(&c);
	return 0;
}

struct unit_fixture unit_fixture = { NULL, teardown };

static int parse_lists(const char *const *args, const char *const *vars)
{
	static char *argv[WORDS_MAX], *env[WORDS_MAX];
	int argc = 0;
	size_t n = 0;

	config_free(&c);
	for (; args[argc]; argc++)
		argv[argc] = (char *)(uintptr_t)args[argc];
	argv[argc] = NULL;
	for (; vars[n]; n++)
		env[n] = (char *)(uintptr_t)vars[n];
	env[n] = NULL;
	err = (struct err){ 0 };
	return config_parse(argc, argv, env, tools, &c, &err);
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__ })
#define parse(...) parse_lists(LIST("serve", __VA_ARGS__, NULL), LIST(NULL))
#define parse_env(...) parse_lists(LIST("serve", NULL), LIST(__VA_ARGS__, NULL))

#define assert_accepted(call)                                                                      \
	do {                                                                                       \
		if ((call) != 0)                                                                   \
			fail_msg("%s: %s", #call, err.msg);                                        \
	} while (0)

/* Refused with one line that begins with @word. */
#define assert_refused(call, word)                                                                 \
	do {                                                                                       \
		assert_int_equal(call, -EINVAL);                                                   \
		if (strncmp(err.msg, word, strlen(word)) != 0)                                     \
			fail_msg("%s: '%s' does not begin with %s", #call, err.msg, word);         \
		assert_null(strchr(err.msg, '\n'));                                                \
	} while (0)

TEST(defaults)
{
	assert_accepted(
		parse_lists(LIST("serve", NULL), LIST("XDG_RUNTIME_DIR=/run/user/7", NULL)));
	assert_string_equal(c.listen, "127.0.0.1:8001");
	assert_string_equal(c.state, geteuid() == 0 ? "/run/caisson" : "/run/user/7/caisson");
	assert_string_equal(strrchr(c.socket, '/'), "/caisson.sock");
	assert_memory_equal(c.socket, c.state, strlen(c.state));
	assert_null(c.token_file);
	assert_null(c.tls_cert);
	assert_null(c.tls_key);
	assert_string_equal(c.image, "host");
	assert_null(c.preload[0]);
	assert_null(c.allow_hosts[0]);
	assert_null(c.allow_origins[0]);
	assert_string_equal(c.blocked_packages[0], "os");
	assert_string_equal(c.blocked_packages[6], "threading");
	assert_null(c.blocked_packages[7]);
	assert_int_equal(c.pool, 4);
	assert_int_equal(c.max_sandboxes, 1000);
	assert_int_equal(c.idle_ms, 300000);
	assert_int_equal(c.timeout_ms, 30000);
	assert_int_equal(c.max_timeout_ms, 120000);
	assert_int_equal(c.memory_bytes, 512 * MIB);
	assert_int_equal(c.cpu_milli, 1000);
	assert_int_equal(c.pids, 128);
	assert_int_equal(c.disk_bytes, 1024 * MIB);
	assert_int_equal(c.max_output, 10000);
	assert_int_equal(c.max_body, 8 * MIB);
	assert_int_equal(c.drain_ms, 30000);
	assert_int_equal(c.log_level, LOG_LEVEL_INFO);
	assert_int_equal(c.log_json, !isatty(STDERR_FILENO));
	assert_false(c.help || c.version);
}

static int check_tool(const char *v, struct err *e)
{
	if (strcmp(v, "all") == 0 || strcmp(v, "default") == 0)
		return 0;
	return err_say(e, -EINVAL, "there is no tool '%s'", v);
}

/* The layer that knows the tools checks them, whatever the names come from. */
TEST(tools_are_checked_by_the_caller)
{
	assert_accepted(parse("--tools", "anything"));
	tools = check_tool;
	assert_accepted(parse("--tools", "all"));
	assert_refused(parse("--tools", "two"), "--tools: there is no tool 'two'");
	assert_refused(parse_env("CAISSON_TOOLS=two"), "CAISSON_TOOLS: there is no tool 'two'");
}

TEST(flags)
{
	assert_accepted(parse("--listen", "[::1]:9000", "--socket=/tmp/s", "--state", "/tmp/x",
			      "--token-file", "tokens", "--tls-cert", "c.pem", "--tls-key=k.pem",
			      "--image", "dir:/srv/root", "--preload", "numpy,os.path,_a1",
			      "--pool", "0", "--max-sandboxes", "4000", "--idle-timeout", "10m",
			      "--timeout", "500ms", "--max-timeout", "1h", "--memory", "64M",
			      "--cpus", "0.5", "--pids", "32", "--disk", "16M", "--max-output", "5",
			      "--max-body", "1K", "--drain-timeout", "0", "--log-level", "WARN",
			      "--log-format", "json"));
	assert_string_equal(c.listen, "[::1]:9000");
	assert_string_equal(c.socket, "/tmp/s");
	assert_string_equal(c.state, "/tmp/x");
	assert_string_equal(c.token_file, "tokens");
	assert_string_equal(c.tls_cert, "c.pem");
	assert_string_equal(c.tls_key, "k.pem");
	assert_string_equal(c.image, "dir:/srv/root");
	assert_string_equal(c.preload[1], "os.path");
	assert_string_equal(c.preload[2], "_a1");
	assert_null(c.preload[3]);
	assert_int_equal(c.pool, 0);
	assert_int_equal(c.max_sandboxes, 4000);
	assert_int_equal(c.idle_ms, 600000);
	assert_int_equal(c.timeout_ms, 500);
	assert_int_equal(c.max_timeout_ms, 3600000);
	assert_int_equal(c.memory_bytes, 64 * MIB);
	assert_int_equal(c.cpu_milli, 500);
	assert_int_equal(c.pids, 32);
	assert_int_equal(c.disk_bytes, 16 * MIB);
	assert_int_equal(c.max_output, 5);
	assert_int_equal(c.max_body, 1024);
	assert_int_equal(c.drain_ms, 0);
	assert_int_equal(c.log_level, LOG_LEVEL_WARNING);
	assert_true(c.log_json);
	assert_accepted(parse("--log-format", "text"));
	assert_false(c.log_json);
}

/* Every flag of the usage text has the variable that the text names. */
static void try_twin(const char *line, void *arg)
{
	static const struct {
		const char *flag, *value;
	} samples[] = {
		{ "--listen", "127.0.0.1:1" },
		{ "--tls-cert", NULL },
		{ "--tls-key", NULL },
		{ "--image", "host" },
		{ "--log-format", "text" },
		{ "--tools", "all" },
		{ "--workspace-rw", NULL },
		{ "--no-token", NULL },
		{ "--mount", "/a:/b:rw" },
		{ "--log-level", "debug" },
		{ "--cpus", "1" },
		{ "--memory", "32M" },
		{ "--disk", "2M" },
		{ "--max-body", "2K" },
		{ "--pool", "1" },
		{ "--pids", "9" },
		{ "--max-sandboxes", "5" },
		{ "--max-output", "7" },
		{ "--timeout", "2" },
		{ "--max-timeout", "60" },
		{ "--idle-timeout", "9" },
		{ "--drain-timeout", "1" },
		{ "--allow-origin", "http://a" },
		{ "--tools", "all" },
		{ "--mcp-auth-server", "https://a/b" },
		{ "--mcp-url", "https://a/mcp" },
		{ "--mcp-user", "me" },
		{ "--mcp-discover", NULL }, /* has no value as a flag */
		{ "--package-wheels-only", NULL },
		{ "--npm-scripts", NULL },
		{ "--pip-index", "https://a/simple" },
		{ "--npm-registry", "http://a" },
		{ "--package-host", "x" },
		{ "--egress-private", "10.0.0.0/8" },
		{ "--egress-dns", "127.0.0.1:53" },
		{ "--egress-connections", "3" },
		{ "--egress-rate", "3" },
		{ "--egress-bytes", "3M" },
		{ "--allowed-packages", "x-*" },
		{ "--known-packages", "@x/y" },
		{ "--image-pull", "never" },
		{ "--image-registry", "ghcr.io" },
		{ "--image-pull-timeout", "60" },
		{ "--package-size", "2M" },
		{ "--package-store", "2M" },
		{ "--package-count", "3" },
		{ "--package-rate", "3" },
		{ "--package-timeout", "3" },
		{ "--package-keep", "3" },
		{ "--secrets-env", "X_" },
		{ "--without", "cgroup" },
		{ "--s3-bucket", "bucket" },
		{ "--s3-endpoint", "http://a" },
		{ "--s3-region", "here" },
		{ "--s3-profile", "me" },
		{ "--s3-style", "path" },
		{ "--s3-link-time", "60" },
		{ "--workspace-bucket", "x=s3://bucket" },
	};
	char flag[64], name[80], var[256];
	const char *value = "/x";
	size_t *n = arg;

	if (sscanf(line, " --%60s", flag + 2) != 1)
		return;
	flag[0] = flag[1] = '-';
	++*n;
	if (strcmp(flag, "--preload") == 0 || strcmp(flag, "--allow-host") == 0 ||
	    strcmp(flag, "--blocked-packages") == 0)
		value = "x";
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		if (strcmp(samples[i].flag, flag) == 0)
			value = samples[i].value;
	if (!value)
		return;
	(void)snprintf(name, sizeof(name), "CAISSON_%s", flag + 2);
	for (char *s = name; *s; s++)
		*s = (char)(*s == '-' ? '_' : *s >= 'a' && *s <= 'z' ? *s - 32 : *s);
	(void)snprintf(var, sizeof(var), "%s=%s", name, value);
	assert_accepted(parse(flag, value));
	struct config by_flag = c;

	c.parsed.owned = NULL;
	assert_accepted(parse_env(var));
	/* All members except pointers must be the same; lists are compared by their first entry. */
	assert_memory_equal(&c.pool, &by_flag.pool,
			    offsetof(struct config, parsed) - offsetof(struct config, pool));
	assert_int_equal(!c.preload[0], !by_flag.preload[0]);
	assert_int_equal(!c.allow_hosts[0], !by_flag.allow_hosts[0]);
	assert_int_equal(!c.allow_origins[0], !by_flag.allow_origins[0]);
	assert_string_equal(c.blocked_packages[0], by_flag.blocked_packages[0]);
	assert_string_equal(c.tools, by_flag.tools);
	assert_int_equal(!c.mcp_auth_server, !by_flag.mcp_auth_server);
	assert_int_equal(!c.mcp_url, !by_flag.mcp_url);
	assert_int_equal(!c.mcp_user, !by_flag.mcp_user);
	assert_int_equal(!c.mcp_configs[0], !by_flag.mcp_configs[0]);
	assert_string_equal(c.listen, by_flag.listen);
	assert_string_equal(c.socket, by_flag.socket);
	assert_string_equal(c.state, by_flag.state);
	assert_string_equal(c.tools, by_flag.tools);
	config_free(&by_flag);
	/* And a bad one is named. */
	(void)snprintf(var, sizeof(var), "%s=,\x01", name);
	if (strstr("--token-file --package-pins --policy --secrets-file --secrets-command --egress-ca "
		   "--s3-credentials --s3-ca --image-store",
		   flag) == NULL)
		assert_refused(parse_env(var), name);
}

/* Each line of the usage text. */
static void each_line(void (*put)(const char *line, void *arg), void *arg)
{
	char *text = NULL, *save = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	config_usage(f);
	assert_int_equal(fclose(f), 0);
	for (char *s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save))
		put(s, arg);
	free(text);
}

TEST(twins)
{
	size_t n = 0;

	tools = check_tool;
	each_line(try_twin, &n);
	assert_int_equal(n, 75);
}

TEST(order)
{
	/* Flags over CAISSON_ over the older names over defaults. */
	assert_accepted(parse_env("MAX_MEMORY_MB=100", "MAX_EXECUTION_TIME=60", "LOG_LEVEL=Debug",
				  "BLOCKED_PACKAGES=Foo_Bar, b..c"));
	assert_int_equal(c.memory_bytes, 100 * MIB);
	assert_int_equal(c.max_timeout_ms, 60000);
	assert_int_equal(c.log_level, LOG_LEVEL_DEBUG);
	assert_string_equal(c.blocked_packages[0], "foo-bar");
	assert_string_equal(c.blocked_packages[1], "b-c");
	assert_null(c.blocked_packages[2]);
	assert_accepted(parse_env("CAISSON_MEMORY=50M", "MAX_MEMORY_MB=100"));
	assert_int_equal(c.memory_bytes, 50 * MIB);
	assert_accepted(parse_lists(LIST("serve", "--memory", "40M", "--allow-host", "b",
					 "--allow-host", "c,d", NULL),
				    LIST("CAISSON_MEMORY=50M", "CAISSON_ALLOW_HOST=a", NULL)));
	assert_int_equal(c.memory_bytes, 40 * MIB);
	assert_string_equal(c.allow_hosts[0], "b");
	assert_string_equal(c.allow_hosts[2], "d");
	assert_null(c.allow_hosts[3]);
	/* Empty is not set; a longer name is another variable. */
	assert_accepted(parse_env("CAISSON_MEMORY=", "MAX_MEMORY_MB=", "MAX_MEMORY_MBX=1",
				  "BLOCKED_PACKAGES="));
	assert_int_equal(c.memory_bytes, 512 * MIB);
	assert_string_equal(c.blocked_packages[0], "os");
	assert_accepted(parse_env("BLOCKED_PACKAGES=none"));
	assert_null(c.blocked_packages[0]);
}

/* A given value replaces a default; two given values must agree. */
TEST(agreement)
{
	assert_accepted(parse_env("MAX_EXECUTION_TIME=10"));
	assert_int_equal(c.timeout_ms, 10000);
	assert_refused(parse("--timeout", "20", "--max-timeout", "10"), "--timeout");
	assert_accepted(parse("--max-sandboxes", "2"));
	assert_int_equal(c.pool, 2);
	assert_refused(parse("--max-sandboxes", "2", "--pool", "3"), "--pool");
	assert_refused(parse("--tls-cert", "c"), "--tls-cert");
	assert_refused(parse("--tls-key", "k"), "--tls-key");
	assert_refused(parse("--no-token", "--token-file", "t"), "--no-token");
	assert_refused(parse("--listen", "none", "--socket", "none"), "--listen");
	assert_refused(parse("--listen", "none", "--tls-cert", "c", "--tls-key", "k"),
		       "--tls-cert");
	assert_accepted(parse("--listen", "none"));
	assert_accepted(parse("--socket", "none"));
	assert_string_equal(c.socket, "none");
}

TEST(refusals)
{
	static const struct {
		const char *flag, *values[8];
	} rows[] = {
		{ "--listen",
		  { "", "8001", ":8001", "localhost:8001", "127.0.0.1", "127.0.0.1:99999",
		    "::1:80" } },
		{ "--socket",
		  { "", "rel",
		    "/0123456789012345678901234567890123456789012345678901234567890123456789"
		    "0123456789012345678901234567890123456789" } },
		{ "--state", { "", "rel" } },
		{ "--token-file", { "" } },
		{ "--image", { "", "dir:", "python:3.11:", "HOST" } },
		{ "--preload", { "1a", "a-b", "a..b", ".a", "a.", "a b", "import os" } },
		{ "--allow-host", { "a:80", "http://a", "a/b", "*", "[::1", "..", "a_b c" } },
		{ "--allow-origin",
		  { "null", "*", "localhost", "http://a/", "http://", "://a", "http://u@a" } },
		{ "--pool", { "", "-1", "1001", "1.5", "x" } },
		{ "--max-sandboxes", { "0", "4001" } },
		{ "--idle-timeout", { "0", "999ms", "8d", "169h" } },
		{ "--timeout", { "0", "25h", "-1", "1e3" } },
		{ "--max-timeout", { "0", "999ms", "25h" } },
		{ "--memory", { "0", "15M", "2048G", "x" } },
		{ "--cpus", { "0", "0.009", "1025", "x" } },
		{ "--pids", { "0", "32769" } },
		{ "--disk", { "0", "2048G" } },
		{ "--max-output", { "0", "67108865", "10K" } },
		{ "--max-body", { "0", "1023", "2G" } },
		{ "--blocked-packages", { "a b", "-a", "a-", "é" } },
		{ "--drain-timeout", { "61m", "x" } },
		{ "--log-level", { "", "trace", "2" } },
		{ "--log-format", { "", "xml", "JSON" } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < ARRAY_SIZE(rows[i].values) && rows[i].values[k]; k++)
			assert_refused(parse(rows[i].flag, rows[i].values[k]), rows[i].flag);
	assert_refused(parse_env("MAX_MEMORY_MB=512M"), "MAX_MEMORY_MB");
	assert_refused(parse_env("MAX_MEMORY_MB=1"), "MAX_MEMORY_MB");
	assert_refused(parse_env("MAX_MEMORY_MB=99999999999999999999"), "MAX_MEMORY_MB");
	assert_refused(parse_env("MAX_EXECUTION_TIME=soon"), "MAX_EXECUTION_TIME");
	assert_refused(parse_env("LOG_LEVEL=loud"), "LOG_LEVEL");
	assert_refused(parse_env("CAISSON_POOL=many"), "CAISSON_POOL");
	assert_refused(parse("--nonsense"), "unknown option '--nonsense'");
	/* The fixtures of the conformance suite are in a program for the tests. */
	assert_refused(parse("--mcp-conformance"), "unknown option '--mcp-conformance'");
	assert_refused(parse("--pool"), "--pool needs a value");
	assert_refused(parse("-x"), "unknown option");
	assert_refused(parse("8001"), "'8001'");
	assert_refused(parse(""), "''");
}

TEST(too_many)
{
	char list[1024] = "";

	for (int i = 0; i < CONFIG_LIST_MAX - 1; i++)
		(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "m%d,", i);
	assert_accepted(parse("--preload", list));
	assert_string_equal(c.preload[CONFIG_LIST_MAX - 2], "m30");
	assert_null(c.preload[CONFIG_LIST_MAX - 1]);
	assert_refused(parse("--preload", list, "--preload", "one"), "--preload");
}

/* Callers who are not the starter need the operator's word. */
TEST(pulls)
{
	assert_accepted(parse("--listen", "none"));
	assert_true(c.image_pull);
	assert_string_equal(c.image_registries[0], "docker.io");
	assert_null(c.image_registries[1]);
	assert_accepted(parse("--token-file", "/x"));
	assert_false(c.image_pull);
	assert_accepted(parse("--no-token"));
	assert_false(c.image_pull);
	assert_accepted(parse("--no-token", "--image-pull", "missing"));
	assert_true(c.image_pull);
	assert_accepted(parse("--image-pull", "never"));
	assert_false(c.image_pull);
	assert_refused(parse("--image-pull", "always"), "--image-pull");
	assert_accepted(parse("--image-registry", "ghcr.io,*.example.com:5000"));
	assert_string_equal(c.image_registries[0], "ghcr.io");
	assert_refused(parse("--image-registry", "https://ghcr.io"), "--image-registry");
}

TEST(help)
{
	assert_accepted(parse_lists(LIST("serve", "--pool", "many", "--help", NULL),
				    LIST("CAISSON_MEMORY=x", NULL)));
	assert_true(c.help);
	assert_accepted(parse("-h"));
	assert_true(c.help);
	assert_accepted(parse("--version"));
	assert_true(c.version);
}

static void measure(const char *line, void *arg)
{
	size_t *longest = arg;

	*longest = strlen(line) > *longest ? strlen(line) : *longest;
}

TEST(usage)
{
	size_t longest = 0;

	each_line(measure, &longest);
	assert_in_range(longest, 60, 120);
}
