/* SPDX-License-Identifier: Apache-2.0 */
/* test_ref.c - Names of images: what they mean, what is refused, and patterns of them. */
#include <string.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "image/ref.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(forms)
{
	static const struct {
		const char *text, *canonical, *people;
	} cases[] = {
		{ "python", "docker.io/library/python:latest", "python:latest" },
		{ "python:3.11-slim", "docker.io/library/python:3.11-slim", "python:3.11-slim" },
		{ "docker.io/python:3", "docker.io/library/python:3", "python:3" },
		{ "index.docker.io/library/python:3", "docker.io/library/python:3", "python:3" },
		{ "me/tool", "docker.io/me/tool:latest", "me/tool:latest" },
		{ "localhost/x", "localhost/x:latest", "localhost/x:latest" },
		{ "localhost:5000/x/y:1", "localhost:5000/x/y:1", "localhost:5000/x/y:1" },
		{ "Example.COM/x", "example.com/x:latest", "example.com/x:latest" },
		{ "[::1]:5000/x:A", "[::1]:5000/x:A", "[::1]:5000/x:A" },
		{ "r.io/x@sha256:" HEX, "r.io/x@sha256:" HEX, "r.io/x@sha256:" HEX },
		{ "r.io/x:t@sha256:" HEX, "r.io/x:t@sha256:" HEX, "r.io/x:t@sha256:" HEX },
		{ "localhost:5000", "docker.io/library/localhost:5000", "localhost:5000" },
		{ "docker.io/a.b/c", "docker.io/a.b/c:latest", "docker.io/a.b/c:latest" },
		{ "a__b/c--d.e_f", "docker.io/a__b/c--d.e_f:latest", "a__b/c--d.e_f:latest" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[IMAGE_REF_MAX];
		struct ref r, again;
		struct err e = { 0 };

		assert_int_equal(ref_parse(cases[i].text, &r, &e), 0);
		ref_format(&r, text);
		assert_string_equal(text, cases[i].canonical);
		assert_int_equal(ref_parse(text, &again, &e), 0);
		assert_memory_equal(&r, &again, sizeof(r));
		ref_short(&r, text);
		assert_string_equal(text, cases[i].people);
		assert_int_equal(ref_parse(text, &again, &e), 0);
		assert_memory_equal(&r, &again, sizeof(r));
	}
}

TEST(refused)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "", "empty" },
		{ "Python", "not the name" },
		{ "a//b", "not the name" },
		{ "a/", "not the name" },
		{ "/a", "not the name" },
		{ "-a", "not the name" },
		{ "a..b/c", "not a registry" },
		{ "a___b", "not the name" },
		{ "a b", "not the name" },
		{ "../../etc/passwd", "not a registry" },
		{ "x:", "tag" },
		{ "x:-a", "tag" },
		{ "x:a/b", "not a registry" },
		{ "x@sha256:12", "digest" },
		{ "x@md5:" HEX, "digest" },
		{ "x@sha256:" HEX "@sha256:" HEX, "digest" },
		{ "host:port/x", "not a registry" },
		{ "host:123456/x", "not a registry" },
		{ "ho_st.com/x", "not a registry" },
		{ "a\n.com/x", "not a registry" },
	};
	char endless[2 * IMAGE_REF_MAX];
	struct err e;
	struct ref r;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		e = (struct err){ 0 };
		assert_int_equal(ref_parse(cases[i].text, &r, &e), -22);
		if (!strstr(e.msg, cases[i].part))
			fail_msg("'%s': '%s' does not say '%s'", cases[i].text, e.msg,
				 cases[i].part);
	}
	memset(endless, 'a', sizeof(endless));
	endless[sizeof(endless) - 1] = '\0';
	assert_int_equal(ref_parse(endless, &r, &e), -22);
	endless[300] = '\0';
	assert_int_equal(ref_parse(endless, &r, &e), -22);
}

TEST(local)
{
	static const char *const local[] = { "localhost/x", "localhost:1/x", "127.0.0.1:1/x",
					     "[::1]:1/x" };
	static const char *const far[] = { "x", "127.0.0.1.example.com/x",
					   "localhost.example.com/x", "[::2]/x", "10.0.0.1/x" };
	struct ref r;

	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		assert_true(ref_parse(local[i], &r, NULL) == 0 && ref_is_local(&r));
	for (size_t i = 0; i < ARRAY_SIZE(far); i++)
		assert_true(ref_parse(far[i], &r, NULL) == 0 && !ref_is_local(&r));
}

TEST(patterns)
{
	static const struct {
		const char *ref, *pattern;
		bool matches;
	} cases[] = {
		{ "python:3.11", "python", true },
		{ "python:3.11", "python:3.11", true },
		{ "python:3.11", "python:3.*", true },
		{ "python:3.11", "python:2", false },
		{ "python:3.11", "docker.io/library/python", true },
		{ "python:3.11", "docker.io/*", true },
		{ "python:3.11", "docker.io/library/*:3.11", true },
		{ "pythonx:3.11", "python", false },
		{ "evil.com/python:3.11", "python", false },
		{ "evil.com/docker.io/library/python", "docker.io/*", false },
		{ "r.io:5000/a/b:1", "r.io:5000/*", true },
		{ "r.io/a:1@sha256:" HEX, "r.io/a:1", true },
		{ "r.io/a:2@sha256:" HEX, "r.io/a:1", false },
		{ "r.io/a@sha256:" HEX, "r.io/a:1", false },
		{ "r.io/a@sha256:" HEX, "r.io/a@sha256:" HEX, true },
		{ "r.io/a:1", "r.io/a@sha256:" HEX, false },
		{ "python", "*", true },
	};
	struct ref r;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(ref_pattern_ok(cases[i].pattern));
		assert_int_equal(ref_parse(cases[i].ref, &r, NULL), 0);
		if (ref_matches(&r, cases[i].pattern) != cases[i].matches)
			fail_msg("%s and %s", cases[i].ref, cases[i].pattern);
	}
	assert_false(ref_pattern_ok(""));
	assert_false(ref_pattern_ok("a b"));
	assert_false(ref_pattern_ok("a,b"));
}

TEST(registries)
{
	static const struct {
		const char *ref, *pattern;
		bool matches;
	} cases[] = {
		{ "python:3.11", "docker.io", true },
		{ "index.docker.io/a/b", "docker.io", true },
		{ "ghcr.io/a/b", "docker.io", false },
		{ "ghcr.io/a/b", "*", true },
		{ "r.team.example/a", "*.team.example", true },
		{ "team.example/a", "*.team.example", false },
		{ "r.io:5000/a", "r.io", false }, /* the port is part of the name */
		{ "r.io:5000/a", "r.io:5000", true },
		{ "evil.com/docker.io/a", "docker.io", false },
		{ "docker.io.evil.com/a", "docker.io", false },
		{ "169.254.169.254/a", "docker.io", false },
	};
	struct ref r;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const patterns[] = { "nobody.example", cases[i].pattern, NULL };
		const char *const none[] = { NULL };

		assert_true(ref_registry_ok(cases[i].pattern));
		assert_int_equal(ref_parse(cases[i].ref, &r, NULL), 0);
		if (ref_is_of(&r, patterns) != cases[i].matches)
			fail_msg("%s and %s", cases[i].ref, cases[i].pattern);
		assert_false(ref_is_of(&r, none));
	}
	assert_false(ref_registry_ok(""));
	assert_false(ref_registry_ok("https://r.io"));
	assert_false(ref_registry_ok("r.io/a"));
	assert_false(ref_registry_ok("R.io"));
}
