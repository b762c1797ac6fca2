/* SPDX-License-Identifier: Apache-2.0 */
/* tool_rules_parse.c - Rules from JSON. An unknown key is an error: a rule must not get lost by a
 * typing mistake. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mcp/tool_rules.h"

#define SECONDS_MAX 3600

struct parsing {
	struct tool_rules *r;
	const char *where;
	bool sandbox;
	struct err *e;
};

static bool is_pattern(const json_t *v)
{
	const char *s = json_string_value(v);
	size_t len = json_string_length(v);

	if (!s || len == 0 || len > TOOL_RULES_PATTERN_MAX || strlen(s) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return true;
}

/* In a sandbox's rules a pattern without a server would match nothing, or not what was meant. */
static bool names_server(const char *s)
{
	return strchr(s, '.') || s[0] == '*';
}

static const char *fix(const struct parsing *p)
{
	return p->sandbox ? "a pattern as in \"github.get_*\"" : "a pattern as in \"get_*\"";
}

static int take_list(struct parsing *p, const char *key, json_t *v, json_t **ret)
{
	size_t i;
	json_t *one;

	if (!json_is_array(v) || json_array_size(v) > TOOL_RULES_PATTERNS_MAX)
		return err_say(p->e, -EINVAL, "%s.%s: must be a list of at most %u patterns",
			       p->where, key, TOOL_RULES_PATTERNS_MAX);
	json_array_foreach(v, i, one)
	{
		if (!is_pattern(one) || (p->sandbox && !names_server(json_string_value(one))))
			return err_say(p->e, -EINVAL, "%s.%s[%zu]: must be %s", p->where, key, i,
				       fix(p));
	}
	*ret = v;
	return 0;
}

static int bad_count(struct parsing *p, const char *key)
{
	return err_say(
		p->e, -EINVAL,
		"%s.%s: must be a number of calls from 0 to %d, or an object of such numbers by pattern, "
		"at most %u",
		p->where, key, TOOL_RULES_COUNT_MAX, TOOL_RULES_LIMITS_MAX);
}

static bool is_count(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= 0 &&
	       json_integer_value(v) <= TOOL_RULES_COUNT_MAX;
}

/* A number holds for every tool. */
static int take_limits(struct parsing *p, const char *key, json_t *v, struct tool_rules_limit **ret,
		       size_t *ret_n)
{
	size_t n = json_is_object(v) ? json_object_size(v) : 1;
	struct tool_rules_limit *all = n <= TOOL_RULES_LIMITS_MAX ? calloc(n + 1, sizeof(*all)) :
								    NULL;
	const char *pattern;
	json_t *one;

	if (!all)
		return n > TOOL_RULES_LIMITS_MAX ? bad_count(p, key) :
						   err_set(p->e, -ENOMEM, "%s.%s", p->where, key);
	*ret = all;
	if (!json_is_object(v)) {
		*all = (struct tool_rules_limit){ "*", (uint64_t)json_integer_value(v) };
		*ret_n = 1;
		return is_count(v) ? 0 : bad_count(p, key);
	}
	json_object_foreach(v, pattern, one)
	{
		if (!is_count(one))
			return bad_count(p, key);
		if (!*pattern || strlen(pattern) > TOOL_RULES_PATTERN_MAX ||
		    (p->sandbox && !names_server(pattern)))
			return err_say(p->e, -EINVAL, "%s.%s: each key must be %s", p->where, key,
				       fix(p));
		all[(*ret_n)++] =
			(struct tool_rules_limit){ pattern, (uint64_t)json_integer_value(one) };
	}
	return 0;
}

static int take_number(struct parsing *p, const char *key, const json_t *v, uint64_t most,
		       uint64_t unit, uint64_t *ret)
{
	if (!json_is_integer(v) || json_integer_value(v) < 1 ||
	    (uint64_t)json_integer_value(v) > most)
		return err_say(p->e, -EINVAL, "%s.%s: must be a number from 1 to %llu", p->where,
			       key, (unsigned long long)most);
	*ret = (uint64_t)json_integer_value(v) * unit;
	return 0;
}

static int take_default(struct parsing *p, const json_t *v)
{
	static const char *const names[] = {
		[TOOL_RULES_READ_ONLY] = "read-only", [TOOL_RULES_ALL] = "all", [TOOL_RULES_NONE] = "none"
	};
	const char *s = json_string_value(v);

	for (size_t i = 0; s && i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(s, names[i]) == 0) {
			p->r->otherwise = (enum tool_rules_default)i;
			return 0;
		}
	return err_say(p->e, -EINVAL, "%s.default: must be \"read-only\", \"all\" or \"none\"",
		       p->where);
}

static int take(struct parsing *p, const char *key, json_t *v)
{
	struct tool_rules *r = p->r;

	if (strcmp(key, "allow") == 0)
		return take_list(p, key, v, &r->allow);
	if (strcmp(key, "deny") == 0)
		return take_list(p, key, v, &r->deny);
	if (strcmp(key, "approve") == 0)
		return take_list(p, key, v, &r->approve);
	if (strcmp(key, "budget") == 0)
		return take_limits(p, key, v, &r->budgets, &r->n_budgets);
	if (strcmp(key, "rate") == 0)
		return take_limits(p, key, v, &r->rates, &r->n_rates);
	if (strcmp(key, "max_argument_bytes") == 0)
		return take_number(p, key, v, TOOL_RULES_ARGUMENT_BYTES * 8, 1, &r->argument_bytes);
	if (strcmp(key, "max_result_bytes") == 0)
		return take_number(p, key, v, TOOL_RULES_RESULT_BYTES, 1, &r->result_bytes);
	if (strcmp(key, "call_seconds") == 0)
		return take_number(p, key, v, SECONDS_MAX, 1000, &r->call_ms);
	if (strcmp(key, "approve_seconds") == 0)
		return take_number(p, key, v, SECONDS_MAX, 1000, &r->approve_ms);
	if (!p->sandbox && strcmp(key, "default") == 0)
		return take_default(p, v);
	return err_say(p->e, -EINVAL,
		       "%s.%.60s: unknown key; there are: allow, deny, approve, budget, rate, "
		       "max_argument_bytes, max_result_bytes, call_seconds, approve_seconds%s",
		       p->where, key, p->sandbox ? "" : ", default");
}

int tool_rules_parse(json_t *source, bool sandbox, const char *where, struct tool_rules *ret,
		     struct err *e)
{
	struct parsing p = { ret, where, sandbox, e };
	const char *key;
	json_t *v;
	int r = 0;

	*ret = (struct tool_rules){ .argument_bytes = TOOL_RULES_ARGUMENT_BYTES,
				    .result_bytes = TOOL_RULES_RESULT_BYTES,
				    .call_ms = TOOL_RULES_CALL_MS,
				    .approve_ms = TOOL_RULES_APPROVE_MS,
				    .narrows = sandbox };
	if (!source)
		return 0;
	if (!json_is_object(source))
		return err_say(e, -EINVAL, "%s: must be an object, as in {\"allow\": [%s]}", where,
			       sandbox ? "\"github.get_*\"" : "\"get_*\"");
	ret->source = json_incref(source);
	json_object_foreach(source, key, v) if (r == 0) r = take(&p, key, v);
	if (r < 0)
		tool_rules_free(ret);
	return r;
}

void tool_rules_free(struct tool_rules *r)
{
	json_decref(r->source);
	free(r->budgets);
	free(r->rates);
	*r = (struct tool_rules){ 0 };
}

int tool_rules_check(json_t *source, const char *where, struct err *e)
{
	struct tool_rules r;
	int code = tool_rules_parse(source, false, where, &r, e);

	tool_rules_free(&r);
	return code;
}
