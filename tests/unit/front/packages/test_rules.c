/* SPDX-License-Identifier: Apache-2.0 */
/* test_rules.c - Permitted requests and installations, and the use of a fetcher's answer.
 */
#include <jansson.h>
#include <string.h>

#include "../../unit.h"
#include "base/fd.h"
#include "front/packages/closure.h"
#include "front/packages/package_rules.h"
#include "front/packages/requirement.h"
#include "front/sandbox/execution.h"
#include "front/support/config.h"

TEST(requirements)
{
	static const struct {
		enum ecosystem eco;
		const char *text, *version, *result; /* NULL: refused */
		bool exact;
	} rows[] = {
		{ ECO_PYTHON, "Requests", NULL, "requests", false },
		{ ECO_PYTHON, "ruamel.yaml", "latest", "ruamel-yaml", false },
		{ ECO_PYTHON, "a__b..c", "1.0", "a-b-c==1.0", true },
		{ ECO_PYTHON, "numpy >= 1.26, < 2", NULL, "numpy>=1.26,<2", false },
		{ ECO_PYTHON, " six ", NULL, "six", false },
		{ ECO_PYTHON, "six idna", NULL, NULL, false }, /* not sixidna */
		{ ECO_PYTHON, "six == 1. 16", NULL, NULL, false },
		{ ECO_JAVASCRIPT, "left pad", NULL, NULL, false },
		{ ECO_PYTHON, "x[socks,http2]==2.*", NULL, "x[socks,http2]==2.*", false },
		{ ECO_PYTHON, "x==2.0", "2.0", NULL, false },
		{ ECO_PYTHON, "-r", NULL, NULL, false },
		{ ECO_PYTHON, "--pre", NULL, NULL, false },
		{ ECO_PYTHON, "x; python_version>'3'", NULL, NULL, false },
		{ ECO_PYTHON, "x@https://a/b.whl", NULL, NULL, false },
		{ ECO_PYTHON, "./x", NULL, NULL, false },
		{ ECO_PYTHON, "x\nevil", NULL, NULL, false },
		{ ECO_PYTHON, "x", "1; rm", NULL, false },
		{ ECO_PYTHON, " ", NULL, NULL, false },
		{ ECO_JAVASCRIPT, "left-pad", NULL, "left-pad", false },
		{ ECO_JAVASCRIPT, "JSONStream", NULL, "JSONStream", false },
		{ ECO_JAVASCRIPT, "left-pad@1.3.0", NULL, "left-pad@1.3.0", true },
		{ ECO_JAVASCRIPT, "@types/node@^20", NULL, "@types/node@^20", false },
		{ ECO_JAVASCRIPT, "@types/node", "20.1.0", "@types/node@20.1.0", true },
		{ ECO_JAVASCRIPT, "user/repo", NULL, NULL, false },
		{ ECO_JAVASCRIPT, "x@file:/etc", NULL, NULL, false },
		{ ECO_JAVASCRIPT, "x@npm:evil", NULL, NULL, false },
		{ ECO_JAVASCRIPT, "--registry=http://a", NULL, NULL, false },
		{ ECO_JAVASCRIPT, "@/x", NULL, NULL, false },
	};
	struct requirement r;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *why = requirement_parse(rows[i].eco, rows[i].text, rows[i].version, &r);

		if (!rows[i].result) {
			assert_non_null(why);
			continue;
		}
		assert_null(why);
		assert_string_equal(r.text, rows[i].result);
		assert_int_equal(r.exact, rows[i].exact);
	}
}

static const char CLOSURE[] =
	"[{\"name\":\"Top\",\"version\":\"1\",\"sha256\":\"\",\"built\":true,\"needs\":[\"mid\"],\"x\":1},"
	"{\"name\":\"mid\",\"version\":\"2\",\"integrity\":\"sha512-ab==\",\"needs\":[\"bad_one\",7,\"/\"]},"
	"{\"name\":\"bad.one\",\"version\":\"3\"}]";

/* The operator's names are in lower case and as python writes them; those of npm need not be. */
TEST(blocked_names_of_npm)
{
	static const char *const blocked[] = { "JSONStream", "socket.io", "@Scope/any" };
	struct config c = { .blocked_packages = { "jsonstream", "socket-io", "@scope/*" } };
	struct requirement asked;
	struct refusal why;

	for (size_t i = 0; i < ARRAY_SIZE(blocked); i++) {
		assert_null(requirement_parse(ECO_JAVASCRIPT, blocked[i], NULL, &asked));
		assert_int_equal(rules_request(&c, ECO_JAVASCRIPT, &asked, 1, &why), -1);
		assert_string_equal(why.code, "package_blocked");
	}
	assert_null(requirement_parse(ECO_JAVASCRIPT, "JSONStream2", NULL, &asked));
	assert_int_equal(rules_request(&c, ECO_JAVASCRIPT, &asked, 1, &why), 0);
}

TEST(dependencies_may_look_like_others)
{
	struct config c = { .package_count = 9 };
	struct requirement asked = { .name = "requets" };
	struct refusal why;
	json_t *said = json_loads("[{\"name\":\"requets\",\"version\":\"1\"}]", 0, NULL);
	json_t *closure = closure_take(ECO_PYTHON, said);

	assert_int_equal(rules_request(&c, ECO_PYTHON, &asked, 1, &why), -1);
	assert_string_equal(why.code, "package_lookalike");
	assert_int_equal(rules_closure(&c, closure, NULL, &why), 0);
	json_decref(closure);
	json_decref(said);
}

TEST(closure)
{
	struct config c = { .package_count = 3 };
	struct refusal why;
	json_t *said = json_loads(CLOSURE, 0, NULL), *closure = closure_take(ECO_PYTHON, said);

	assert_int_equal(json_array_size(closure), 3);
	assert_string_equal(closure_version(closure, "bad-one"), "3");
	assert_int_equal(rules_closure(&c, closure, NULL, &why), 0);
	c.blocked_packages[0] = "bad-*";
	assert_int_equal(rules_closure(&c, closure, NULL, &why), -1);
	assert_string_equal(why.code, "package_blocked");
	assert_non_null(strstr(why.message, "'bad-one', which 'mid' needs"));
	c.blocked_packages[0] = NULL;
	c.allowed_packages[0] = "top";
	assert_int_equal(rules_closure(&c, closure, NULL, &why), -1);
	assert_string_equal(why.code, "package_not_allowed");
	c.allowed_packages[0] = NULL;
	c.package_count = 2;
	assert_int_equal(rules_closure(&c, closure, NULL, &why), -1);
	assert_string_equal(why.code, "too_many_packages");
	c.package_count = 3;
	json_t *pins = json_pack("{s:s, s:s}", "top==1", "", "mid==2", "sha512-XX==");

	assert_int_equal(rules_closure(&c, closure, pins, &why), -1);
	assert_string_equal(why.code, "hash_mismatch");
	(void)json_object_set_new(pins, "mid==2", json_string("sha512-ab=="));
	assert_int_equal(rules_closure(&c, closure, pins, &why), -1);
	assert_string_equal(why.code, "package_not_pinned");
	json_decref(pins);
	json_decref(closure);
	json_decref(said);
}

TEST(packages_of_the_image)
{
	struct config c = { .package_count = 1, .blocked_packages = { "mid" } };
	struct refusal why;
	json_t *said = json_loads(
		"[{\"name\":\"top\",\"version\":\"2\",\"replaces\":\"1\",\"needs\":[\"mid\"]},"
		"{\"name\":\"mid\",\"version\":\"3\",\"image\":true}]",
		0, NULL);
	json_t *closure = closure_take(ECO_PYTHON, said);
	json_t *pins = json_pack("{s:s}", "top", "1"); /* of a newer tree */

	assert_int_equal(closure_fetched(closure), 1);
	assert_true(closure_of_image(json_array_get(closure, 1)));
	assert_string_equal(closure_text(json_array_get(closure, 0), "replaces"), "1");
	closure_pins(closure, pins);
	assert_string_equal(json_string_value(json_object_get(pins, "mid")), "3");
	assert_string_equal(json_string_value(json_object_get(pins, "top")), "1");
	assert_int_equal(rules_closure(&c, closure, NULL, &why), 0); /* only the other is judged */
	c.blocked_packages[0] = "top";
	assert_int_equal(rules_closure(&c, closure, NULL, &why), -1);
	(void)json_array_remove(closure, 0);
	(void)json_object_clear(pins);
	closure_pins(closure, pins);
	assert_int_equal(json_object_size(pins), 0); /* nothing was fetched that relies on it */
	json_decref(pins);
	json_decref(closure);
	json_decref(said);
}

TEST(closure_refused)
{
	static const char *const rows[] = {
		"{}",
		"[]",
		"[1]",
		"[{\"name\":\"a\"}]",
		"[{\"name\":\"../a\",\"version\":\"1\"}]",
		"[{\"name\":\"a\",\"version\":\"1 2\"}]",
		"[{\"name\":\"a\",\"version\":\"1\",\"sha256\":\"zz\"}]",
		"[{\"name\":\"a\\u001b[2J\",\"version\":\"1\"}]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *said = json_loads(rows[i], 0, NULL);

		assert_null(closure_take(ECO_PYTHON, said));
		json_decref(said);
	}
}
