/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tool_rules.c - Rules of any form, and calls under them.
 *
 * Four lines: the operator's rules, a sandbox's, the name of a tool, and text that a cell sends as
 * arguments. Checked: patterns match as in a second, differently written matcher; a sandbox's rules
 * permit nothing that the operator's do not; a refusal has a code and names a rule; budgets hold;
 * accepted arguments are the text of an object.
 */
#include <jansson.h>

#include "base/err.h"
#include "base/wild.h"
#include "front/tool_calls/rpc.h"
#include "fuzz.h"
#include "mcp/tool_rules.h"

#define LINE_MAX_BYTES 4096u
#define CALLS 40u

/* By a table of what matches what, from the ends. Only for what is short. */
static bool matches(const char *pattern, const char *text)
{
	static bool yes[64][64];
	size_t p = strlen(pattern), t = strlen(text);

	for (size_t i = p + 1; i-- > 0;)
		for (size_t k = t + 1; k-- > 0;) {
			if (i == p)
				yes[i][k] = k == t;
			else if (pattern[i] == '*')
				yes[i][k] = yes[i + 1][k] || (k < t && yes[i][k + 1]);
			else
				yes[i][k] = k < t && (pattern[i] == '?' || pattern[i] == text[k]) &&
					    yes[i + 1][k + 1];
		}
	return yes[0][0];
}

static void check_patterns(const struct tool_rules *r, const char *text)
{
	size_t i;
	json_t *one;

	json_array_foreach(r->deny, i, one)
	{
		const char *pattern = json_string_value(one);

		if (strlen(pattern) < 60 && strlen(text) < 60)
			require(wild_match(pattern, text) == matches(pattern, text));
	}
}

static void check_decision(const struct tool_decision *d)
{
	require((d->verdict == TOOL_RULES_MAY_NOT) == (d->code != NULL));
	require((d->verdict == TOOL_RULES_MAY) == (d->rule[0] == '\0'));
	require((d->verdict == TOOL_RULES_MAY_NOT) == (d->message[0] != '\0'));
}

static void check_calls(struct tool_rules *o, struct tool_rules *s, const char *tool)
{
	struct tool_rules none;
	struct tool_usage ou, su, nu, alone;
	struct tool_decision d, without;
	uint64_t most = UINT64_MAX, made = 0;

	require(tool_rules_parse(NULL, true, "x", &none, NULL) == 0);
	require(tool_usage_init(&ou, o, 0, 0) && tool_usage_init(&su, s, 0, 0) &&
		tool_usage_init(&nu, &none, 0, 0) && tool_usage_init(&alone, o, 0, 0));
	for (size_t i = 0; i < s->n_budgets; i++)
		if (strcmp(s->budgets[i].pattern, "*") == 0 && s->budgets[i].most < most)
			most = s->budgets[i].most;
	for (uint64_t i = 0; i < CALLS; i++) {
		const struct tool_rules_call c = { "gh", tool, i, i % 2 };
		const struct tool_rules_layer lo = { o, &ou }, ls = { s, &su }, la = { o, &alone },
					      ln = { &none, &nu };

		tool_rules_decide(&lo, &ls, &c, i * 100000000, &d);
		tool_rules_decide(&la, &ln, &c, i * 100000000, &without);
		check_decision(&d);
		check_decision(&without);
		if (d.verdict == TOOL_RULES_MAY_NOT)
			continue;
		require(without.verdict != TOOL_RULES_MAY_NOT);
		tool_rules_spend(&lo, &ls, &c, i * 100000000);
		tool_rules_spend(&la, &ln, &c, i * 100000000);
		require(++made <= most);
	}
	tool_usage_free(&ou);
	tool_usage_free(&su);
	tool_usage_free(&nu);
	tool_usage_free(&alone);
}

static void check_arguments(const char *text)
{
	json_t *m = json_pack("{s:s?}", "arguments", text), *parsed;
	const char *why = NULL, *taken;
	size_t len = 0;

	if (!m)
		return; /* not UTF-8: no line of a kernel can contain that */
	taken = rpc_text(m, "arguments", &len, &why);
	require(taken || why);
	parsed = taken ? json_loadb(taken, len, JSON_ALLOW_NUL, NULL) : NULL;
	require(!taken || json_is_object(parsed));
	json_decref(parsed);
	json_decref(m);
}

static bool next_line(const uint8_t **at, size_t *left, char line[LINE_MAX_BYTES])
{
	const uint8_t *nl = *left ? memchr(*at, '\n', *left) : NULL;
	size_t n = nl ? (size_t)(nl - *at) : *left;

	if (n >= LINE_MAX_BYTES || (n && memchr(*at, 0, n)))
		return false;
	if (n)
		memcpy(line, *at, n);
	line[n] = '\0';
	*at += n + (nl ? 1 : 0);
	*left -= n + (nl ? 1 : 0);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char operator_[LINE_MAX_BYTES], sandbox[LINE_MAX_BYTES], tool[LINE_MAX_BYTES],
		arguments[LINE_MAX_BYTES];
	struct tool_rules o, s;
	struct err e = { 0 };
	json_t *a, *b;

	if (!next_line(&data, &size, operator_) || !next_line(&data, &size, sandbox) ||
	    !next_line(&data, &size, tool) || !next_line(&data, &size, arguments))
		return 0;
	check_arguments(arguments);
	a = json_loads(operator_, JSON_DECODE_ANY, NULL);
	b = json_loads(sandbox, JSON_DECODE_ANY, NULL);
	int ra = tool_rules_parse(a, false, "a", &o, &e),
	    rb = tool_rules_parse(b, true, "b", &s, &e);

	require(ra == 0 || ra < 0);
	require((ra >= 0 && rb >= 0) || e.msg[0]);
	if (ra == 0 && rb == 0) {
		check_patterns(&o, tool);
		check_patterns(&s, tool);
		check_calls(&o, &s, tool);
	}
	tool_rules_free(&o);
	tool_rules_free(&s);
	json_decref(a);
	json_decref(b);
	return 0;
}
