/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c - The text of a seccomp policy, parsed into plain tables.
 *
 * Theory of operation: the text is a sequence of words. A word in the first column begins a
 * directive, and its handler consumes the indented words that follow; the next word in the first
 * column ends it. So there is one token of lookahead and no recursion. A call is listed once: the
 * only exception are several checks on one call, which all have to hold. Whatever is ambiguous is
 * an error, because a line that means something else than its reader thinks is a hole.
 *
 * Errors are sticky: the first one is kept, the text then reads as if it ended there, and every
 * function below may go on with empty words until policy_parse() returns the code.
 */
#include "seccomp/policy.h"

#include "base/err.h"
#include "base/fd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define HINT_ERRNO                                                                                 \
	"use EPERM, ENOSYS, EACCES, EINVAL, ENOMEM, ENOTTY, EAFNOSUPPORT, EPROTONOSUPPORT, "       \
	"ENOPROTOOPT or EOPNOTSUPP"

static const struct {
	const char *name;
	int err;
} errnos[] = {
	{ "EPERM", EPERM },
	{ "ENOSYS", ENOSYS },
	{ "EACCES", EACCES },
	{ "EINVAL", EINVAL },
	{ "ENOMEM", ENOMEM },
	{ "ENOTTY", ENOTTY },
	{ "EAFNOSUPPORT", EAFNOSUPPORT },
	{ "EPROTONOSUPPORT", EPROTONOSUPPORT },
	{ "ENOPROTOOPT", ENOPROTOOPT },
	{ "EOPNOTSUPP", EOPNOTSUPP },
};

struct word {
	const char *s;
	size_t len;    /* 0 at the end of the text, and after an error */
	uint32_t line; /* from 1 */
	bool first_column;
};

struct parser {
	const char *at, *end, *line_start;
	uint32_t line;
	int code;         /* of the first error, 0 before */
	struct word next; /* the one word of lookahead */
	struct policy *p;
	struct err *e;
};

/* For messages: a word as printf's "%.*s", cut to a length that fits. */
#define W(w) (int)((w).len < 40 ? (w).len : 40), (w).s

__attribute__((format(printf, 3, 4))) static void fail(struct parser *ps, uint32_t line,
						       const char *fmt, ...)
{
	char msg[400];
	va_list ap;

	if (ps->code != 0)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	ps->code = err_say(ps->e, -EINVAL, "line %u: %s", line, msg);
	ps->at = ps->end;
	ps->next = (struct word){ "", 0, line, false };
}

/* Words are printable ASCII, so that an error can show them; a comment may hold anything. */
static bool is_word_byte(char c)
{
	return c > ' ' && c <= '~' && c != '#';
}

/* Move the lookahead to the next word. */
static void scan(struct parser *ps)
{
	const char *s;

	while (ps->at < ps->end && !is_word_byte(*ps->at)) {
		char c = *ps->at++;

		if (c == '\n') {
			ps->line++;
			ps->line_start = ps->at;
		} else if (c == '#') {
			while (ps->at < ps->end && *ps->at != '\n')
				ps->at++;
		} else if (c != ' ' && c != '\t') {
			fail(ps, ps->line,
			     "byte 0x%02x outside a comment; use printable ASCII, tabs and unix "
			     "line ends",
			     (unsigned)(unsigned char)c);
			return;
		}
	}
	s = ps->at;
	while (ps->at < ps->end && is_word_byte(*ps->at))
		ps->at++;
	ps->next = (struct word){ s, (size_t)(ps->at - s), ps->line, s == ps->line_start };
}

/* Does the directive go on? */
static bool more(const struct parser *ps)
{
	return ps->next.len > 0 && !ps->next.first_column;
}

/* The next word of the directive; at its end an empty one, and an error. */
static struct word take(struct parser *ps, const char *what)
{
	struct word w;

	if (!more(ps))
		fail(ps, ps->next.line,
		     "the directive ends before %s; add it, indented if on a line of its own",
		     what);
	w = ps->next;
	scan(ps);
	return w;
}

static bool is(struct word w, const char *s)
{
	return w.len == strlen(s) && memcmp(w.s, s, w.len) == 0;
}

static int take_errno(struct parser *ps)
{
	struct word w = take(ps, "an errno");

	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++)
		if (is(w, errnos[i].name))
			return errnos[i].err;
	fail(ps, w.line, "'%.*s' is not an errno of policies; " HINT_ERRNO, W(w));
	return 0;
}

/* Decimal or 0x hexadecimal, no sign, at most 32 bits. */
static uint32_t to_u32(struct parser *ps, struct word w)
{
	unsigned base = w.len > 2 && w.s[0] == '0' && w.s[1] == 'x' ? 16 : 10;
	uint64_t v = 0;

	for (size_t i = base == 16 ? 2 : 0; i < w.len; i++) {
		unsigned char c = (unsigned char)w.s[i];
		unsigned digit = c >= 'a' && c <= 'f' ? c - 'a' + 10u : c - (unsigned)'0';

		v = v * base + digit;
		if (digit >= base || v > UINT32_MAX) {
			fail(ps, w.line, "'%.*s' is not a number of 32 bits; write 17 or 0x11",
			     W(w));
			return 0;
		}
	}
	return (uint32_t)v;
}

/* Names are what the kernel's tables use: lower case, digits and underscores. */
static void to_name(struct parser *ps, struct word w, char ret[POLICY_NAME_MAX])
{
	bool ok = w.len > 0 && w.len < POLICY_NAME_MAX;

	for (size_t i = 0; ok && i < w.len; i++)
		ok = (w.s[i] >= 'a' && w.s[i] <= 'z') || w.s[i] == '_' ||
		     (w.s[i] >= '0' && w.s[i] <= '9' && i > 0);
	memset(ret, 0, POLICY_NAME_MAX);
	if (ok)
		memcpy(ret, w.s, w.len);
	else
		fail(ps, w.line, "'%.*s' is not a name; use a-z, 0-9 and _, at most %d letters",
		     W(w), POLICY_NAME_MAX - 1);
}

static void add_rule(struct parser *ps, struct word w, enum policy_action action, int err)
{
	struct policy *p = ps->p;
	struct policy_rule rule = { .action = action, .err = err, .line = w.line };
	const struct policy_rule *old;

	to_name(ps, w, rule.name);
	old = policy_find(p, rule.name);
	if (old)
		fail(ps, w.line, "'%s' was decided in line %u already; remove one of the two",
		     rule.name, old->line);
	else if (p->n_rules == POLICY_RULES_MAX)
		fail(ps, w.line, "more than %d calls; raise POLICY_RULES_MAX", POLICY_RULES_MAX);
	if (ps->code == 0)
		p->rules[p->n_rules++] = rule;
}

/* "allow" and "deny". */
static void parse_names(struct parser *ps, struct word head)
{
	enum policy_action action = is(head, "deny") ? POLICY_DENY : POLICY_ALLOW;
	int err = action == POLICY_DENY ? take_errno(ps) : 0;

	do
		add_rule(ps, take(ps, "the name of a call"), action, err);
	while (more(ps));
}

/* "default" and "foreign-abi": once each. */
static void parse_setting(struct parser *ps, struct word head)
{
	int *slot = is(head, "default") ? &ps->p->default_err : &ps->p->foreign_err;

	if (*slot != 0)
		fail(ps, head.line, "a second '%.*s'; remove one of the two", W(head));
	*slot = take_errno(ps);
}

static void parse_number(struct parser *ps, struct word head)
{
	struct policy *p = ps->p;
	struct policy_number n = { .line = head.line };

	to_name(ps, take(ps, "the name of a call"), n.name);
	n.nr = to_u32(ps, take(ps, "its number"));
	if (more(ps))
		to_name(ps, take(ps, "an architecture"), n.arch);
	for (size_t i = 0; i < p->n_numbers; i++) {
		const struct policy_number *old = &p->numbers[i];

		if (strcmp(old->name, n.name) == 0 &&
		    (n.arch[0] == '\0' || old->arch[0] == '\0' || strcmp(old->arch, n.arch) == 0))
			fail(ps, head.line,
			     "'%s' has a number since line %u; remove one of the two", n.name,
			     old->line);
	}
	if (p->n_numbers == POLICY_NUMBERS_MAX)
		fail(ps, head.line, "more than %d numbers; raise POLICY_NUMBERS_MAX",
		     POLICY_NUMBERS_MAX);
	if (ps->code == 0)
		p->numbers[p->n_numbers++] = n;
}

/* The rule that a check belongs to: the call's own, made by its first check. */
static uint32_t check_rule(struct parser *ps, struct word w)
{
	struct policy *p = ps->p;

	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].action == POLICY_CHECK && is(w, p->rules[i].name))
			return (uint32_t)i;
	add_rule(ps, w, POLICY_CHECK, 0);
	return (uint32_t)p->n_rules - 1;
}

/* The values up to "else". A value the mask cannot leave would never match: surely a mistake. */
static void parse_values(struct parser *ps, struct policy_check *c)
{
	struct policy *p = ps->p;

	c->first = (uint32_t)p->n_values;
	while (ps->code == 0) {
		struct word w = take(ps, c->count == 0 ? "a value" : "'else ERRNO'");
		uint32_t v;

		if (is(w, "else") && c->count > 0)
			return;
		v = to_u32(ps, w);
		if ((v & c->mask) != v)
			fail(ps, w.line,
			     "'%.*s' has bits outside the mask 0x%x and never matches; correct one "
			     "of them",
			     W(w), c->mask);
		else if (p->n_values == POLICY_VALUES_MAX)
			fail(ps, w.line, "more than %d values; raise POLICY_VALUES_MAX",
			     POLICY_VALUES_MAX);
		if (ps->code != 0)
			return;
		p->values[p->n_values++] = v;
		c->count++;
	}
}

static void parse_check(struct parser *ps, struct word head)
{
	struct policy *p = ps->p;
	struct policy_check c = { .mask = UINT32_MAX, .writable = is(head, "check-writable") };
	struct word arg, w;

	c.rule = check_rule(ps, take(ps, "the name of a call"));
	arg = take(ps, "an argument, arg0 to arg5");
	if (arg.len != 4 || memcmp(arg.s, "arg", 3) != 0 || arg.s[3] < '0' || arg.s[3] > '5')
		fail(ps, arg.line, "'%.*s' is not an argument; use arg0 to arg5", W(arg));
	else
		c.arg = (uint32_t)(arg.s[3] - '0');
	w = take(ps, "'in'");
	if (is(w, "&")) {
		c.mask = to_u32(ps, take(ps, "a mask"));
		w = take(ps, "'in'");
	}
	if (is(w, "not")) {
		c.negate = 1;
		w = take(ps, "'in'");
	}
	if (!is(w, "in"))
		fail(ps, w.line,
		     "'%.*s' where 'in' should be; write check NAME argN [& MASK] [not] in "
		     "VALUE... else ERRNO",
		     W(w));
	parse_values(ps, &c);
	c.err = take_errno(ps);
	if (p->n_checks == POLICY_CHECKS_MAX)
		fail(ps, head.line, "more than %d checks; raise POLICY_CHECKS_MAX",
		     POLICY_CHECKS_MAX);
	if (ps->code == 0)
		p->checks[p->n_checks++] = c;
}

static const struct {
	const char *name;
	void (*parse)(struct parser *ps, struct word head);
} directives[] = {
	{ "default", parse_setting },      { "foreign-abi", parse_setting },
	{ "number", parse_number },        { "allow", parse_names },
	{ "deny", parse_names },           { "check", parse_check },
	{ "check-writable", parse_check },
};

static void parse_directive(struct parser *ps)
{
	struct word head = ps->next;

	if (!head.first_column) {
		fail(ps, head.line, "'%.*s' belongs to no directive; begin one in the first column",
		     W(head));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(directives); i++) {
		if (!is(head, directives[i].name))
			continue;
		scan(ps);
		directives[i].parse(ps, head);
		if (more(ps))
			fail(ps, ps->next.line, "'%.*s' is too much for '%s'; remove it",
			     W(ps->next), directives[i].name);
		return;
	}
	fail(ps, head.line,
	     "unknown directive '%.*s'; use default, foreign-abi, number, allow, deny, check or "
	     "check-writable, and indent the words that belong to one",
	     W(head));
}

/* Checks that need the whole text. */
static void parse_end(struct parser *ps)
{
	const struct policy *p = ps->p;

	if (p->default_err == 0)
		fail(ps, ps->line, "no 'default'; add 'default ENOSYS'");
	if (p->foreign_err == 0)
		fail(ps, ps->line, "no 'foreign-abi'; add 'foreign-abi ENOSYS'");
	for (size_t i = 0; i < p->n_numbers; i++)
		if (!policy_find(p, p->numbers[i].name))
			fail(ps, p->numbers[i].line,
			     "'%s' has a number and no decision; allow or deny it",
			     p->numbers[i].name);
}

int policy_parse(const char *text, size_t len, struct policy *ret, struct err *e)
{
	struct parser ps = { text, text + len, text, 1, 0, { "", 0, 1, false }, ret, e };

	ret->default_err = ret->foreign_err = 0;
	ret->n_rules = ret->n_checks = ret->n_values = ret->n_numbers = 0;
	if (len > POLICY_TEXT_MAX)
		return err_say(e, -EINVAL,
			       "the policy is longer than %d bytes; is it the right file?",
			       POLICY_TEXT_MAX);
	scan(&ps);
	while (ps.next.len > 0)
		parse_directive(&ps);
	parse_end(&ps);
	return ps.code;
}

const struct policy_rule *policy_find(const struct policy *p, const char *name)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (strcmp(p->rules[i].name, name) == 0)
			return &p->rules[i];
	return NULL;
}

void policy_drop_writable(struct policy *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_checks; i++)
		if (!p->checks[i].writable)
			p->checks[n++] = p->checks[i];
	p->n_checks = n;
}

const struct policy_number *policy_find_number(const struct policy *p, const char *name,
					       const char *arch)
{
	for (size_t i = 0; i < p->n_numbers; i++)
		if (strcmp(p->numbers[i].name, name) == 0 &&
		    (p->numbers[i].arch[0] == '\0' || strcmp(p->numbers[i].arch, arch) == 0))
			return &p->numbers[i];
	return NULL;
}

int policy_decide(const struct policy *p, const struct policy_rule *rule, const uint64_t args[6])
{
	if (!rule)
		return p->default_err;
	if (rule->action != POLICY_CHECK)
		return rule->action == POLICY_ALLOW ? 0 : rule->err;
	for (size_t i = 0; i < p->n_checks; i++) {
		const struct policy_check *c = &p->checks[i];
		int found = 0;

		if (&p->rules[c->rule] != rule)
			continue;
		for (uint32_t v = 0; v < c->count; v++)
			found |= ((uint32_t)args[c->arg] & c->mask) == p->values[c->first + v];
		if (found == c->negate)
			return c->err;
	}
	return 0;
}
