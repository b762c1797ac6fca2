/* SPDX-License-Identifier: Apache-2.0 */
/* test_tool_rules.c - Rules from JSON, and every decision that they can lead to. */
#include "mcp/tool_rules.h"

#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/err.h"

#define S UINT64_C(1000000000)

static struct tool_rules rules(const char *text, bool sandbox)
{
	json_t *source = text ? json_loads(text, 0, NULL) : NULL;
	struct tool_rules r;
	struct err e = { 0 };

	assert_true(!text || source);
	if (tool_rules_parse(source, sandbox, "x", &r, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	json_decref(source);
	return r;
}

/* ---- decisions without history ------------------------------------------------------------- */

static const struct row {
	const char *operator_, *sandbox, *tool;
	bool read_only;
	size_t bytes;
	enum tool_verdict verdict;
	const char *code, *rule;
} rows[] = {
	{ NULL, NULL, "get", true, 2, TOOL_RULES_MAY, NULL, "" },
	{ NULL, NULL, "set", false, 2, TOOL_RULES_MAY_NOT, "refused",
	  "mcpServers.gh.caisson.default read-only" },
	{ "{\"allow\":[\"se*\"]}", NULL, "set", false, 2, TOOL_RULES_MAY, NULL, "" },
	{ "{\"allow\":[\"se*\"]}", NULL, "get", true, 2, TOOL_RULES_MAY, NULL, "" },
	{ "{\"default\":\"none\"}", NULL, "get", true, 2, TOOL_RULES_MAY_NOT, "refused",
	  "mcpServers.gh.caisson.default none" },
	{ "{\"default\":\"none\",\"allow\":[\"get\"]}", NULL, "get", false, 2, TOOL_RULES_MAY, NULL,
	  "" },
	{ "{\"default\":\"all\"}", NULL, "set", false, 2, TOOL_RULES_MAY, NULL, "" },
	{ "{\"default\":\"all\",\"deny\":[\"x\",\"s*\"]}", NULL, "set", false, 2,
	  TOOL_RULES_MAY_NOT, "refused", "mcpServers.gh.caisson.deny s*" },
	{ "{\"allow\":[\"set\"],\"deny\":[\"set\"]}", NULL, "set", true, 2, TOOL_RULES_MAY_NOT,
	  "refused", "mcpServers.gh.caisson.deny set" },
	/* A sandbox takes away, and gives nothing. */
	{ NULL, "{\"allow\":[\"gh.set\"]}", "set", false, 2, TOOL_RULES_MAY_NOT, "refused",
	  "mcpServers.gh.caisson.default read-only" },
	{ NULL, "{\"allow\":[\"gh.get*\"]}", "get_it", true, 2, TOOL_RULES_MAY, NULL, "" },
	{ NULL, "{\"allow\":[\"gh.get*\"]}", "list", true, 2, TOOL_RULES_MAY_NOT, "refused",
	  "tools.allow" },
	{ NULL, "{\"allow\":[]}", "get", true, 2, TOOL_RULES_MAY_NOT, "refused", "tools.allow" },
	{ NULL, "{\"allow\":[\"other.*\"]}", "get", true, 2, TOOL_RULES_MAY_NOT, "refused",
	  "tools.allow" },
	{ NULL, "{\"deny\":[\"*.get\"]}", "get", true, 2, TOOL_RULES_MAY_NOT, "refused",
	  "tools.deny *.get" },
	/* Sizes: the smaller of the two. */
	{ NULL, "{\"max_argument_bytes\":10}", "get", true, 10, TOOL_RULES_MAY, NULL, "" },
	{ NULL, "{\"max_argument_bytes\":10}", "get", true, 11, TOOL_RULES_MAY_NOT, "too_large",
	  "tools.max_argument_bytes" },
	{ "{\"max_argument_bytes\":5}", "{\"max_argument_bytes\":10}", "get", true, 6,
	  TOOL_RULES_MAY_NOT, "too_large", "mcpServers.gh.caisson.max_argument_bytes" },
	{ NULL, NULL, "get", true, TOOL_RULES_ARGUMENT_BYTES + 1, TOOL_RULES_MAY_NOT, "too_large",
	  "mcpServers.gh.caisson.max_argument_bytes" },
	/* A person: only for what may be called at all. */
	{ "{\"approve\":[\"*\"]}", NULL, "get", true, 2, TOOL_RULES_ASK, NULL,
	  "mcpServers.gh.caisson.approve *" },
	{ "{\"approve\":[\"*\"]}", NULL, "set", false, 2, TOOL_RULES_MAY_NOT, "refused",
	  "mcpServers.gh.caisson.default read-only" },
	{ NULL, "{\"approve\":[\"gh.g*\"]}", "get", true, 2, TOOL_RULES_ASK, NULL,
	  "tools.approve gh.g*" },
	{ NULL, "{\"approve\":[\"gh.x\"]}", "get", true, 2, TOOL_RULES_MAY, NULL, "" },
	/* A budget of 0 permits no call. */
	{ "{\"budget\":0}", NULL, "get", true, 2, TOOL_RULES_MAY_NOT, "budget",
	  "mcpServers.gh.caisson.budget *" },
	{ NULL, "{\"rate\":0}", "get", true, 2, TOOL_RULES_MAY_NOT, "rate", "tools.rate *" },
};

TEST(decisions)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *t = &rows[i];
		struct tool_rules o = rules(t->operator_, false), s = rules(t->sandbox, true);
		struct tool_usage ou, su;
		struct tool_decision d;

		assert_true(tool_usage_init(&ou, &o, 0, S) && tool_usage_init(&su, &s, 0, S));
		tool_rules_decide(
			&(struct tool_rules_layer){ &o, &ou },
			&(struct tool_rules_layer){ &s, &su },
			&(struct tool_rules_call){ "gh", t->tool, t->bytes, t->read_only }, S, &d);
		if (d.verdict != t->verdict || strcmp(d.rule, t->rule) != 0 ||
		    (t->code && strcmp(d.code, t->code) != 0))
			fail_msg("row %zu: %d %s (%s) %s", i, d.verdict, d.code ? d.code : "-",
				 d.rule, d.message);
		if (d.verdict == TOOL_RULES_MAY_NOT) {
			assert_non_null(strstr(d.message, t->tool));
			assert_non_null(strstr(d.message, t->rule));
		}
		tool_usage_free(&ou);
		tool_usage_free(&su);
		tool_rules_free(&o);
		tool_rules_free(&s);
	}
}

/* ---- decisions with one -------------------------------------------------------------------- */

struct two {
	struct tool_rules o, s;
	struct tool_usage ou, su;
	struct tool_rules_layer lo, ls;
};

static void begin(struct two *t, const char *o, const char *s, uint64_t spent)
{
	t->o = rules(o, false);
	t->s = rules(s, true);
	assert_true(tool_usage_init(&t->ou, &t->o, spent, S) &&
		    tool_usage_init(&t->su, &t->s, spent, S));
	t->lo = (struct tool_rules_layer){ &t->o, &t->ou };
	t->ls = (struct tool_rules_layer){ &t->s, &t->su };
}

static void end(struct two *t)
{
	tool_usage_free(&t->ou);
	tool_usage_free(&t->su);
	tool_rules_free(&t->o);
	tool_rules_free(&t->s);
}

static const char *try_one(struct two *t, const char *tool, uint64_t now, struct tool_decision *d)
{
	const struct tool_rules_call c = { "gh", tool, 2, true };

	tool_rules_decide(&t->lo, &t->ls, &c, now, d);
	if (d->verdict == TOOL_RULES_MAY_NOT)
		return d->code;
	tool_rules_spend(&t->lo, &t->ls, &c, now);
	return "ok";
}

TEST(budget)
{
	struct tool_decision d;
	struct two t;

	begin(&t, "{\"budget\":{\"get\":2,\"*\":4}}", "{\"budget\":3}", 0);
	assert_string_equal(try_one(&t, "get", S, &d), "ok");
	assert_string_equal(try_one(&t, "get", S, &d), "ok");
	assert_string_equal(try_one(&t, "get", S, &d), "budget");
	assert_string_equal(d.rule, "mcpServers.gh.caisson.budget get");
	assert_string_equal(try_one(&t, "list", S, &d), "ok");
	assert_string_equal(try_one(&t, "list", S, &d), "budget");
	assert_string_equal(d.rule, "tools.budget *");
	assert_string_equal(try_one(&t, "list", 1000 * S, &d), "budget");
	end(&t);
	/* Calls that a former front let through count. */
	begin(&t, NULL, "{\"budget\":3}", 3);
	assert_string_equal(try_one(&t, "get", S, &d), "budget");
	end(&t);
}

TEST(rate)
{
	struct tool_decision d;
	struct two t;

	begin(&t, "{\"rate\":2}", NULL, 0);
	assert_string_equal(try_one(&t, "get", S, &d), "ok");
	assert_string_equal(try_one(&t, "get", S, &d), "ok");
	assert_string_equal(try_one(&t, "get", S, &d), "rate");
	assert_in_range(d.retry_ms, 29000, 30100);
	assert_string_equal(try_one(&t, "get", 20 * S, &d), "rate");
	assert_string_equal(try_one(&t, "get", 32 * S, &d), "ok");
	assert_string_equal(try_one(&t, "get", 32 * S, &d), "rate");
	/* An hour of rest is worth no more than one minute. */
	assert_string_equal(try_one(&t, "get", 4000 * S, &d), "ok");
	assert_string_equal(try_one(&t, "get", 4000 * S, &d), "ok");
	assert_string_equal(try_one(&t, "get", 4000 * S, &d), "rate");
	end(&t);
}

/* ---- invalid rules ------------------------------------------------------------------------- */

static const struct {
	const char *text;
	bool sandbox;
	const char *says;
} bad[] = {
	{ "[]", false, "x: must be an object" },
	{ "{\"permit\":[]}", false, "x.permit: unknown key" },
	{ "{\"default\":\"all\"}", true, "x.default: unknown key" },
	{ "{\"default\":\"yes\"}", false, "x.default: must be" },
	{ "{\"allow\":\"get\"}", false, "x.allow: must be a list" },
	{ "{\"allow\":[\"a\",5]}", false, "x.allow[1]: must be" },
	{ "{\"deny\":[\"\"]}", false, "x.deny[0]: must be" },
	{ "{\"deny\":[\"a\\u0007\"]}", false, "x.deny[0]: must be" },
	{ "{\"deny\":[\"get\"]}", true, "x.deny[0]: must be" },
	{ "{\"budget\":-1}", false, "x.budget: must be" },
	{ "{\"budget\":\"5\"}", false, "x.budget: must be" },
	{ "{\"rate\":{\"a\":1.5}}", false, "x.rate: must be" },
	{ "{\"rate\":{\"a\":1}}", true, "x.rate: each key" },
	{ "{\"max_result_bytes\":0}", false, "x.max_result_bytes: must be a number" },
	{ "{\"approve_seconds\":3601}", false,
	  "x.approve_seconds: must be a number from 1 to 3600" },
};

TEST(bad)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		json_t *source = json_loads(bad[i].text, 0, NULL);
		struct tool_rules r;
		struct err e = { 0 };

		assert_true(tool_rules_parse(source, bad[i].sandbox, "x", &r, &e) < 0);
		if (!strstr(e.msg, bad[i].says))
			fail_msg("%s: %s", bad[i].text, e.msg);
		json_decref(source);
	}
}
