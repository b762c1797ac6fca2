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

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct policy;
struct policy_rule;

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
	int writable; /* "check-writable": only where a cell can write to the host */
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

/* policy_drop_writable() - Without the checks that are for cells that can write to the host. */
void policy_drop_writable(struct policy *p);

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

/* ---- compiled: filter.c --------------------------------------------------------------------- */

/* On x86-64, numbers from here on are the x32 ABI's. */
#define FILTER_X32_BIT 0x40000000u

struct filter_call {
	uint32_t nr;
	const struct policy_rule *rule;
};

struct filter {
	size_t len;
	struct sock_filter prog[BPF_MAXINSNS];
};

/*
 * filter_build() - Compile @p for one architecture.
 * @arch:  an AUDIT_ARCH_ value
 * @calls: rules of @p by ascending number; a number twice is an error
 * @ret:   caller's, 32 KiB; undefined on failure
 *
 * Return: 0, or -EINVAL or -E2BIG with a message.
 */
int filter_build(const struct policy *p, uint32_t arch, const struct filter_call *calls,
		 size_t n_calls, struct filter *ret, struct err *e);

/*
 * filter_eval() - Run a program as the kernel would.
 * Return: the SECCOMP_RET_ value; SECCOMP_RET_KILL_PROCESS for a program the kernel would refuse.
 */
uint32_t filter_eval(const struct sock_filter *prog, size_t len, const struct seccomp_data *d);

/*
 * filter_verify() - Compare a program with the policy it should express.
 *
 * Every number up to 2047 with several arguments, each checked call with arguments on and around
 * the values of its checks, and calls of other architectures.
 * Return: 0, or -EINVAL with the first call that is judged otherwise.
 */
int filter_verify(const struct policy *p, uint32_t arch, const struct filter_call *calls,
		  size_t n_calls, const struct sock_filter *prog, size_t len, struct err *e);

#endif
