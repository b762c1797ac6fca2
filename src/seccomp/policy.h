/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - The text of a seccomp policy, parsed into plain tables.
 *
 * The grammar is described at the top of policy/cell.policy. Calls stay names here: the numbers
 * belong to an architecture and are found at build time by tools/seccomp-gen.c. Nothing in this
 * module does I/O, allocates or keeps state.
 */
#ifndef CAISSON_SECCOMP_POLICY_H
#define CAISSON_SECCOMP_POLICY_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define POLICY_RULES_MAX 640   /* calls listed */
#define POLICY_CHECKS_MAX 64   /* checks, of all calls together */
#define POLICY_VALUES_MAX 256  /* values, of all checks together */
#define POLICY_NUMBERS_MAX 64  /* number directives */
#define POLICY_NAME_MAX 32     /* of a call, with its NUL */
#define POLICY_TEXT_MAX 262144 /* bytes of a policy file */

enum policy_action {
	POLICY_ALLOW,
	POLICY_DENY,
	POLICY_CHECK, /* allowed if every check on the call holds */
};

struct policy_rule {
	char name[POLICY_NAME_MAX];
	enum policy_action action;
	int err;       /* POLICY_DENY: the positive errno */
	uint32_t line; /* where it was first listed */
};

/* One test on the low 32 bits of an argument: ((arg & mask) in values) != negate, else err. */
struct policy_check {
	uint32_t rule; /* index in rules[]; the checks of one call keep the order of the file */
	uint32_t arg;  /* 0 to 5 */
	uint32_t mask;
	uint32_t first; /* index in values[] */
	uint32_t count; /* at least 1 */
	int negate;     /* "not in" */
	int err;
};

struct policy_number {
	char name[POLICY_NAME_MAX];
	char arch[POLICY_NAME_MAX]; /* "" for every architecture */
	uint32_t nr;
	uint32_t line;
};

struct policy {
	int default_err;
	int foreign_err;
	size_t n_rules, n_checks, n_values, n_numbers;
	struct policy_rule rules[POLICY_RULES_MAX];
	struct policy_check checks[POLICY_CHECKS_MAX];
	uint32_t values[POLICY_VALUES_MAX];
	struct policy_number numbers[POLICY_NUMBERS_MAX];
};

/*
 * policy_parse() - Read a whole policy.
 * @text: not NUL-terminated, not kept
 * @ret:  caller's, about 32 KiB; on failure its content is undefined
 *
 * Return: 0, or -EINVAL with "line N: what is wrong; what to do" in @e.
 */
int policy_parse(const char *text, size_t len, struct policy *ret, struct err *e);

/* policy_find() - The rule of a call, or NULL when the policy does not list it. */
const struct policy_rule *policy_find(const struct policy *p, const char *name);

/* policy_find_number() - The number directive that gives @name a number on @arch, or NULL. */
const struct policy_number *policy_find_number(const struct policy *p, const char *name,
					       const char *arch);

/*
 * policy_decide() - The policy's decision on one call: the meaning that the compiled filter must
 * have.
 * @rule: of @p, or NULL for a call that is not listed
 *
 * Return: 0 for allowed, otherwise the positive errno.
 */
int policy_decide(const struct policy *p, const struct policy_rule *rule, const uint64_t args[6]);

#endif
