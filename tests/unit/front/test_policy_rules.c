/* SPDX-License-Identifier: Apache-2.0 */
/* test_policy_rules.c - A policy's text: what it means, what is refused, and where. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/main/policy_load.h"
#include "front/policy/egress_pattern.h"
#include "front/policy/rules.h"
#include "front/support/config.h"

static struct rules_report report;

static struct rules *parse(const char *text)
{
	memset(&report, 0, sizeof(report));
	struct rules *r = rules_parse(text, strlen(text), &report);

	assert_int_equal(r == NULL, report.n > 0);
	return r;
}

static void assert_wrong(const char *text, unsigned int line, unsigned int column, const char *says)
{
	assert_null(parse(text));
	if (report.errors[0].at.line != line || report.errors[0].at.column != column ||
	    !strstr(report.errors[0].message, says))
		fail_msg("%s: %u:%u: %s", text, report.errors[0].at.line,
			 report.errors[0].at.column, report.errors[0].message);
}

static void assert_rule(const struct rules *r, const char *owner, enum rule rule, uint64_t number,
			const char *name)
{
	char got[RULES_NAME_MAX] = "";
	const struct rule_value *v = rules_of(r, owner, rule, got);

	assert_non_null(v);
	assert_int_equal(v->number, number);
	assert_string_equal(got, name);
}

/* ---- meaning ------------------------------------------------------------------------------- */

TEST(owner_before_default)
{
	struct rules *r = parse("[default]\nmemory_mib = 1024\npids = 200\n"
				"[owners.alice]\nmemory_mib = 2048\n[owners.'b.c']\npids=7\n"
				"[daemon]\nsandboxes = 9\n");

	assert_rule(r, "alice", RULE_MEMORY_MIB, 2048, "owners.alice.memory_mib");
	assert_rule(r, "alice", RULE_PIDS, 200, "default.pids");
	assert_rule(r, "b.c", RULE_PIDS, 7, "owners.b.c.pids");
	assert_rule(r, "local", RULE_MEMORY_MIB, 1024, "default.memory_mib");
	assert_rule(r, NULL, RULE_SANDBOXES, 9, "daemon.sandboxes");
	assert_null(rules_of(r, "alice", RULE_SANDBOXES, NULL)); /* that of all is not each one's */
	assert_null(rules_of(r, "alice", RULE_CPUS, NULL));
	assert_null(rules_of(NULL, "alice", RULE_CPUS, NULL));
	rules_free(r);
}

TEST(values)
{
	struct rules *r =
		parse("# first\r\n[ default ] # why\r\n\tcpus = 0.5# half\r\nsandboxes=0\n"
		      "tools = [ \"a\" , # one\n\n 'b',\n]\nimages = []\n"
		      "packages = [\"Foo__.Bar\", '@Scope/left-pad']");
	const struct rule_value *v;

	assert_non_null(r);
	assert_rule(r, "x", RULE_CPUS, 500, "default.cpus");
	assert_rule(r, "x", RULE_SANDBOXES, 0, "default.sandboxes");
	v = rules_of(r, "x", RULE_TOOLS, NULL);
	assert_true(v->n == 2 && rule_lists(v, "a") && rule_lists(v, "b") && !rule_lists(v, "c"));
	v = rules_of(r, "x", RULE_IMAGES, NULL);
	assert_true(v && v->n == 0); /* empty is not absent: it allows nothing */
	v = rules_of(r, "x", RULE_PACKAGES, NULL);
	assert_true(rule_lists(v, "foo-bar") && rule_lists(v, "@scope/left-pad"));
	assert_int_equal(strlen(r->sha256), 64);
	rules_free(r);
}

TEST(empty)
{
	struct rules *r = parse(""), *s = parse("# nothing\n\n   # at all");

	assert_string_equal(r->sha256,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_string_not_equal(r->sha256, s->sha256);
	rules_free(r);
	rules_free(s);
}

/* ---- what is wrong ------------------------------------------------------------------------- */

TEST(places)
{
	assert_wrong("[default]\npid = 5", 2, 1, "did you mean 'pids'");
	assert_wrong("[default]\nzzzzzzzz = 5", 2, 1, "unknown key 'zzzzzzzz'; man");
	assert_wrong("[default]\n\"\xc3\xa9\xc3\xa9\" = x", 2, 8, "invalid value");
	assert_wrong("[default]\ncpus = 0.001", 2, 8, "between 0.01 and 1024");
	assert_wrong("[default]\npids = 99999999999999999999999", 2, 8, "between 1 and 32768");
	assert_wrong("[default]\npids = 010", 2, 8, "begin with a zero");
	assert_wrong("[default]\npids = 1.", 2, 8, "invalid value");
	assert_wrong("[default]\npids =", 2, 7, "a value should be here");
	assert_wrong("[default]\npids", 2, 5, "'='");
	assert_wrong("[default]\na.b = 1", 2, 2, "dotted keys");
	assert_wrong("[default]\nx = { a = 1 }", 2, 5, "inline tables");
	assert_wrong("[default]\ntools = [['a']]", 2, 10, "a string in quotes");
	assert_wrong("[default]\ntools = ['a' 'b']", 2, 14, "a comma");
	assert_wrong("[default]\ntools = ['a\n']", 2, 10, "no end on its line");
	assert_wrong("[default]\ntools = [\"a\\n\"]", 2, 13, "escapes");
	assert_wrong("[default]\ntools = [\"\"\"a\"\"\"]", 2, 10, "several lines");
	assert_wrong("[[default]]", 1, 2, "arrays of tables");
	assert_wrong("[default", 1, 9, "']'");
	assert_wrong("[]", 1, 2, "a name");
	assert_wrong("[a.b.c.d.e]", 1, 10, "too many parts");
	assert_wrong("[default] x", 1, 11, "should end here");
	assert_wrong("[default]\npids = 1\xff", 2, 9, "not UTF-8");
	assert_wrong("[default]\r", 1, 10, "control character");
	assert_wrong("[owners.'']", 1, 9, "not an owner");
	assert_wrong("[default]\npackages = ['-x']", 2, 13, "not the name of a package");
	assert_wrong("[default]\nimages = ['dir:x']", 2, 11, "not host, dir:/PATH or a pattern");
	assert_wrong("[default]\nimages = ['python', 'a b']", 2, 21, "a pattern of references");
	assert_wrong("[daemon]\nmounts = []", 2, 1, "is not for [daemon]");
	assert_wrong("[default]\nmount = []", 2, 1, "did you mean 'mounts'");
	assert_wrong("[default]\nmounts = '/data'", 2, 10, "must be a list");
}

TEST(all_at_once)
{
	char text[8192] = "[default]\n";
	size_t at = strlen(text);

	for (int i = 0; i < 30; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "wrong_key_%d = 1\n", i);
	assert_null(parse(text));
	assert_int_equal(report.n, 30);
	assert_int_equal(report.errors[RULES_ERRORS_MAX - 1].at.line, RULES_ERRORS_MAX + 1);
}

TEST(bounds)
{
	size_t len = RULES_TEXT_MAX + 1;
	char *text = calloc(1, len + 1), *p = text;

	memset(text, '#', len);
	assert_wrong(text, 1, 1, "at most 256 KiB");
	p += sprintf(text, "[default]\ntools = [");
	for (int i = 0; i <= TOML_WORDS_MAX; i++)
		p += sprintf(p, "'a',");
	(void)sprintf(p, "]\n");
	assert_wrong(text, 2, 10 + 4 * TOML_WORDS_MAX, "more than 512 words");
	p = text + sprintf(text, "[default]\ntools = ['");
	memset(p, 'a', TOML_WORD_MAX + 1);
	(void)sprintf(p + TOML_WORD_MAX + 1, "']\n");
	assert_wrong(text, 2, 11 + TOML_WORD_MAX, "too long");
	free(text);
}

/* ---- mounts -------------------------------------------------------------------------------- */

TEST(mounts)
{
	static const struct {
		const char *words, *place;
		enum rule_mount may;
	} rows[] = {
		{ "'/data'", "/data", RULE_MOUNT_WHOLE },
		{ "'/data'", "/data/sub", RULE_MOUNT_NONE },
		{ "'/data'", "/dat", RULE_MOUNT_NONE },
		{ "'/data'", "/database", RULE_MOUNT_NONE },
		{ "'/data:ro'", "/data", RULE_MOUNT_READ },
		{ "'/models/*'", "/models/a", RULE_MOUNT_WHOLE },
		{ "'/models/*'", "/models/a/b", RULE_MOUNT_WHOLE },
		{ "'/models/*'", "/models", RULE_MOUNT_NONE },
		{ "'/*:ro'", "/any/where", RULE_MOUNT_READ },
		/* The most that one of them gives, in whatever order. */
		{ "'/*:ro', '/data'", "/data", RULE_MOUNT_WHOLE },
		{ "'/data', '/*:ro'", "/data", RULE_MOUNT_WHOLE },
		{ "'/data', '/*:ro'", "/other", RULE_MOUNT_READ },
		{ "", "/data", RULE_MOUNT_NONE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[200];

		(void)snprintf(text, sizeof(text), "[default]\nmounts = [%s]\n", rows[i].words);
		struct rules *r = parse(text);
		const struct rule_value *v = rules_of(r, "", RULE_MOUNTS, NULL);

		assert_non_null(v);
		if (rule_lists_mount(v, rows[i].place) != rows[i].may)
			fail_msg("%s of %s", rows[i].place, rows[i].words);
		rules_free(r);
	}
}

TEST(no_mounts)
{
	static const char *const words[] = { "data",    "./data", "/data/",      "/a//b",
					     "/a/../b", "/a/.",   "/data:rw",    "/data:",
					     "/a:/b",   ":ro",    "/data:ro:ro", "" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		char text[200];

		(void)snprintf(text, sizeof(text), "[owners.a]\nmounts = ['/x', '%s']", words[i]);
		assert_wrong(text, 2, 17, "is not a place in sandboxes");
	}
}

/* ---- what may be reached ------------------------------------------------------------------- */

TEST(reach)
{
	static const struct {
		const char *pattern, *entry;
		bool covers, touches;
	} rows[] = {
		{ "a.example", "a.example", true, true },
		{ "A.Example.", "a.example:443", true, true },
		{ "a.example", "a.example:22", false, true },
		{ "a.example:443", "a.example", false, true },
		{ "a.example:22", "a.example", false, false },
		{ "a.example:22", "a.example:22", true, true },
		{ "a.example:*", "a.example:22", true, true },
		{ "a.example:*", "a.example", true, true },
		{ "a.example", "b.a.example", false, false },
		{ "a.example", "xa.example", false, false },
		{ "*.b.example", "a.b.example", true, true },
		{ "*.b.example", "c.a.b.example", true, true },
		{ "*.b.example", "b.example", false, false },
		{ "*.b.example", "ab.example", false, false },
		{ "*.b.example", "*.b.example", true, true },
		{ "*.b.example", "*.a.b.example", true, true },
		{ "*.a.b.example", "*.b.example", false, true },
		{ "a.b.example", "*.b.example", false, true },
		{ "b.example", "*.b.example", false, false },
		{ "*", "a.example", true, true },
		{ "*", "*.b.example", true, true },
		{ "*", "a.example:22", false, true },
		{ "*:22", "a.example:22", true, true },
		{ "*:22", "a.example", false, false },
		{ "*:*", "a.example:1", true, true },
		{ "a.example", "GET a.example/v1/*", true, true },
		{ "b.example", "GET a.example/v1/*", false, false },
		{ "b\xc3\xbc.example", "xn--b-eha.example", true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct egress_entry entry;
		struct egress_pattern p;

		assert_true(egress_pattern_parse(rows[i].pattern, &p));
		assert_int_equal(
			egress_entry_parse(rows[i].entry, strlen(rows[i].entry), &entry, NULL), 0);
		if (egress_pattern_covers(&p, &entry) != rows[i].covers ||
		    egress_pattern_touches(&p, &entry) != rows[i].touches)
			fail_msg("%s, %s", rows[i].pattern, rows[i].entry);
	}
}

TEST(no_reach)
{
	static const char *const wrong[] = { "",
					     ":*",
					     "**",
					     "*.",
					     "*x",
					     "a.*.example",
					     "10.0.0.1",
					     "a.example:22:*",
					     "a.example:**",
					     "*:0",
					     "https://a.example",
					     "a b",
					     "*:*:*",
					     "GET a.example",
					     "a.example/v1/*",
					     "*:80/v1" };
	struct egress_pattern p;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (egress_pattern_parse(wrong[i], &p))
			fail_msg("%s", wrong[i]);
}

/* ---- the daemon ---------------------------------------------------------------------------- */

static bool agree(const char *text)
{
	char verb[] = "serve", *argv[] = { verb, NULL }, *env[] = { NULL };
	struct config c;
	struct rules *r = parse(text);

	assert_int_equal(config_parse(1, argv, env, NULL, &c, NULL), 0);
	bool good = rules_agree(r, &c, &report);

	rules_free(r);
	config_free(&c);
	assert_int_equal(good, report.n == 0);
	return good;
}

TEST(images)
{
	static const struct {
		const char *image;
		bool listed;
	} cases[] = {
		{ "host", true },
		{ "dir:/a", true },
		{ "dir:/b", false },
		{ "python", true },
		{ "python:3.11-slim", true },
		{ "docker.io/library/python:3", true },
		{ "evil.example/python", false },
		{ "r.example/team/x:1", true },
		{ "r.example/other/x:1", false },
		{ "node:20", true },
		{ "node:22", false },
		{ "dir", false },
		{ "no reference", false },
	};
	struct rules *r = parse(
		"[default]\nimages = ['host', 'dir:/a', 'python', 'r.example/team/*', 'node:20*']");
	const struct rule_value *v = rules_of(r, "x", RULE_IMAGES, NULL);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (rule_lists_image(v, cases[i].image) != cases[i].listed)
			fail_msg("%s", cases[i].image);
	rules_free(r);
	/* A pattern does not include the image "host". */
	r = parse("[default]\nimages = ['*']");
	v = rules_of(r, "x", RULE_IMAGES, NULL);
	assert_true(rule_lists_image(v, "python") && !rule_lists_image(v, "host") &&
		    !rule_lists_image(v, "dir:/a"));
	rules_free(r);
}

TEST(defaults_are_within)
{
	assert_true(agree("[default]\nmemory_mib=512\ncpus=1\npids=128\ndisk_mib=1024\n"
			  "execution_seconds=30\nidle_seconds=300\nimages=['host']\n"
			  "tools=['execute_code']"));
	assert_true(agree("[owners.a]\nmemory_mib = 64\n")); /* lowered for that owner */
	assert_false(agree("[default]\nmemory_mib=511\ncpus=0.9\npids=127\ndisk_mib=1023\n"
			   "execution_seconds=29\nidle_seconds=299\nimages=[]\ntools=['all']"));
	assert_int_equal(report.n, 8);
	assert_int_equal(report.errors[1].at.line, 3);
	assert_non_null(strstr(report.errors[0].message, "--memory"));
	assert_false(agree("[owners.a]\nimages = ['dir:/x']\n"));
}
