/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_rules.c - Rules from JSON, and whether a call may be made by them.
 *
 * An unknown key is an error: a rule must not get lost by a typing mistake. Every refusal names its
 * rule.
 */
#include "mcp/tool_rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/wild.h"

#define MINUTE_NS UINT64_C(60000000000)
#define MILLI 1000u
#define SECONDS_MAX 3600

/* ---- parsing ------------------------------------------------------------------------------- */

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
		"%s.%s: must be a number of calls from 0 to %d, or an object of such numbers by "
		"pattern, at most %u",
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
		[TOOL_RULES_READ_ONLY] = "read-only",
		[TOOL_RULES_ALL] = "all",
		[TOOL_RULES_NONE] = "none",
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

/* ---- usage --------------------------------------------------------------------------------- */

bool tool_usage_init(struct tool_usage *u, const struct tool_rules *r, uint64_t spent,
		     uint64_t now_ns)
{
	*u = (struct tool_usage){
		.spent = calloc(r->n_budgets + 1, sizeof(uint64_t)),
		.tokens = calloc(r->n_rates + 1, sizeof(uint64_t)),
		.at_ns = calloc(r->n_rates + 1, sizeof(uint64_t)),
	};
	if (!u->spent || !u->tokens || !u->at_ns) {
		tool_usage_free(u);
		return false;
	}
	for (size_t i = 0; i < r->n_budgets; i++)
		u->spent[i] = spent;
	for (size_t i = 0; i < r->n_rates; i++) {
		u->tokens[i] = r->rates[i].most * MILLI;
		u->at_ns[i] = now_ns;
	}
	return true;
}

void tool_usage_free(struct tool_usage *u)
{
	free(u->spent);
	free(u->tokens);
	free(u->at_ns);
	*u = (struct tool_usage){ 0 };
}

/* Thousandths of calls that a rate has left now. */
static uint64_t left(const struct tool_rules_layer *l, size_t i, uint64_t now_ns)
{
	uint64_t most = l->rules->rates[i].most * MILLI, have = l->usage->tokens[i];
	uint64_t since = now_ns - l->usage->at_ns[i];
	/* A whole minute fills it; and the product cannot overflow. */
	uint64_t more = since >= MINUTE_NS ? most :
					     most * (since / 1000000) / (MINUTE_NS / 1000000);

	return have + more > most ? most : have + more;
}

/* ---- the decision -------------------------------------------------------------------------- */

/* How a layer's patterns call the tool. */
struct name {
	char text[1024];
};

static const char *name_of(const struct tool_rules_layer *l, const struct tool_rules_call *c,
			   struct name *n)
{
	if (!l->rules->narrows)
		return c->tool;
	(void)snprintf(n->text, sizeof(n->text), "%s.%s", c->server, c->tool);
	return n->text;
}

/* "mcpServers.github.caisson.deny get_*", or "tools.deny github.get_*" of a sandbox. */
static void name_rule(const struct tool_rules_layer *l, const struct tool_rules_call *c,
		      const char *key, const char *pattern, struct tool_decision *d)
{
	char where[100] = "tools";

	if (!l->rules->narrows)
		(void)snprintf(where, sizeof(where), "mcpServers.%.64s.caisson", c->server);
	(void)snprintf(d->rule, sizeof(d->rule), "%s.%s%s%s", where, key, pattern ? " " : "",
		       pattern ? pattern : "");
}

static const char *matching(const json_t *list, const char *name)
{
	size_t i;
	json_t *one;

	json_array_foreach(list, i, one) if (wild_match(json_string_value(one),
							name)) return json_string_value(one);
	return NULL;
}

/* @key, @pattern: the rule. Return: true. */
__attribute__((format(printf, 7, 8))) static bool refuse(struct tool_decision *d, const char *code,
							 const struct tool_rules_layer *l,
							 const struct tool_rules_call *c,
							 const char *key, const char *pattern,
							 const char *fmt, ...)
{
	char why[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	name_rule(l, c, key, pattern, d);
	d->verdict = TOOL_RULES_MAY_NOT;
	d->code = code;
	(void)snprintf(d->message, sizeof(d->message),
		       "%.64s.%.128s may not be called: %s (rule: %s)", c->server, c->tool, why,
		       d->rule);
	return true;
}

static bool denied(const struct tool_rules_layer *l, const struct tool_rules_call *c,
		   struct tool_decision *d)
{
	struct name n;
	const char *pattern = matching(l->rules->deny, name_of(l, c, &n));

	return pattern && refuse(d, "refused", l, c, "deny", pattern, "it is denied");
}

static bool not_granted(const struct tool_rules_layer *l, const struct tool_rules_call *c,
			struct tool_decision *d)
{
	enum tool_rules_default other = l->rules->otherwise;

	if (matching(l->rules->allow, c->tool) || other == TOOL_RULES_ALL ||
	    (other == TOOL_RULES_READ_ONLY && c->read_only))
		return false;
	return refuse(d, "refused", l, c, "default",
		      other == TOOL_RULES_NONE ? "none" : "read-only",
		      "%sthe operator's allow does not name it",
		      other == TOOL_RULES_NONE ?
			      "" :
			      "its server does not say that it is read-only, and ");
}

static bool not_named(const struct tool_rules_layer *l, const struct tool_rules_call *c,
		      struct tool_decision *d)
{
	struct name n;

	if (!l->rules->allow || matching(l->rules->allow, name_of(l, c, &n)))
		return false;
	return refuse(d, "refused", l, c, "allow", NULL, "the sandbox's allow does not name it");
}

static bool too_large(const struct tool_rules_layer *l, const struct tool_rules_call *c,
		      struct tool_decision *d)
{
	if (c->argument_bytes <= l->rules->argument_bytes)
		return false;
	return refuse(d, "too_large", l, c, "max_argument_bytes", NULL,
		      "its arguments are %zu bytes, at most %llu are allowed", c->argument_bytes,
		      (unsigned long long)l->rules->argument_bytes);
}

static bool spent(const struct tool_rules_layer *l, const struct tool_rules_call *c,
		  struct tool_decision *d)
{
	struct name n;
	const char *name = name_of(l, c, &n);

	for (size_t i = 0; l->usage && i < l->rules->n_budgets; i++) {
		const struct tool_rules_limit *b = &l->rules->budgets[i];

		if (wild_match(b->pattern, name) && l->usage->spent[i] >= b->most)
			return refuse(d, "budget", l, c, "budget", b->pattern,
				      "all %llu calls of this sandbox's budget are spent",
				      (unsigned long long)b->most);
	}
	return false;
}

static bool too_fast(const struct tool_rules_layer *l, const struct tool_rules_call *c,
		     uint64_t now_ns, struct tool_decision *d)
{
	struct name n;
	const char *name = name_of(l, c, &n);

	for (size_t i = 0; l->usage && i < l->rules->n_rates; i++) {
		const struct tool_rules_limit *b = &l->rules->rates[i];
		uint64_t have = wild_match(b->pattern, name) ? left(l, i, now_ns) : MILLI;

		if (have >= MILLI)
			continue;
		d->retry_ms = b->most ? (MILLI - have) * 60 / b->most + 1 : 60000;
		return refuse(d, "rate", l, c, "rate", b->pattern,
			      "more than %llu calls in a minute; again in %llu ms",
			      (unsigned long long)b->most, (unsigned long long)d->retry_ms);
	}
	return false;
}

static bool asks(const struct tool_rules_layer *l, const struct tool_rules_call *c,
		 struct tool_decision *d)
{
	struct name n;
	const char *pattern = matching(l->rules->approve, name_of(l, c, &n));

	if (!pattern)
		return false;
	d->verdict = TOOL_RULES_ASK;
	name_rule(l, c, "approve", pattern, d);
	return true;
}

void tool_rules_decide(const struct tool_rules_layer *o, const struct tool_rules_layer *s,
		       const struct tool_rules_call *c, uint64_t now_ns, struct tool_decision *d)
{
	*d = (struct tool_decision){ .verdict = TOOL_RULES_MAY };
	if (denied(o, c, d) || denied(s, c, d) || not_granted(o, c, d) || not_named(s, c, d) ||
	    too_large(o, c, d) || too_large(s, c, d) || spent(o, c, d) || spent(s, c, d) ||
	    too_fast(o, c, now_ns, d) || too_fast(s, c, now_ns, d))
		return;
	(void)(asks(o, c, d) || asks(s, c, d));
}

static void charge(const struct tool_rules_layer *l, const struct tool_rules_call *c,
		   uint64_t now_ns)
{
	struct name n;
	const char *name = name_of(l, c, &n);

	for (size_t i = 0; l->usage && i < l->rules->n_budgets; i++)
		if (wild_match(l->rules->budgets[i].pattern, name))
			l->usage->spent[i]++;
	for (size_t i = 0; l->usage && i < l->rules->n_rates; i++) {
		if (!wild_match(l->rules->rates[i].pattern, name))
			continue;
		uint64_t have = left(l, i, now_ns);

		l->usage->tokens[i] = have >= MILLI ? have - MILLI : 0;
		l->usage->at_ns[i] = now_ns;
	}
}

void tool_rules_spend(const struct tool_rules_layer *o, const struct tool_rules_layer *s,
		      const struct tool_rules_call *c, uint64_t now_ns)
{
	charge(o, c, now_ns);
	charge(s, c, now_ns);
}
