/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_policy.c - The policy parser and the filter compiler. The policies are in test_policies.c.
 */
#include "base/err.h"
#include "base/fd.h"
#include "seccomp/policy.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"

#define HEAD "default ENOSYS\nforeign-abi EPERM\n"

static struct policy pol;
static struct filter flt;
static struct filter_call calls[POLICY_RULES_MAX];
static struct err err;

static int parse(const char *text)
{
	err = (struct err){ 0 };
	return policy_parse(text, strlen(text), &pol, &err);
}

TEST(empty_rules)
{
	assert_int_equal(parse(HEAD), 0);
	assert_int_equal(pol.default_err, ENOSYS);
	assert_int_equal(pol.foreign_err, EPERM);
	assert_int_equal(pol.n_rules, 0);
	assert_null(policy_find(&pol, "read"));
}

TEST(layout_of_words)
{
	assert_int_equal(parse("# \xc3\xa9 \x01 anything\n\n" HEAD
			       "allow read # one\n\twrite\n\n  # between\n    close#glued\n"
			       "deny EPERM\n\tmount\nallow dup"),
			 0);
	assert_int_equal(pol.n_rules, 5);
	assert_int_equal(policy_find(&pol, "close")->action, POLICY_ALLOW);
	assert_int_equal(policy_find(&pol, "mount")->action, POLICY_DENY);
	assert_int_equal(policy_find(&pol, "mount")->err, EPERM);
	assert_int_equal(policy_find(&pol, "mount")->line, 11);
	assert_int_equal(policy_find(&pol, "dup")->line, 12);
}

TEST(numbers)
{
	assert_int_equal(parse(HEAD "number a 0x1c0\nnumber b 335 x86_64\nallow a b"), 0);
	assert_int_equal(policy_find_number(&pol, "a", "aarch64")->nr, 448);
	assert_int_equal(policy_find_number(&pol, "b", "x86_64")->nr, 335);
	assert_null(policy_find_number(&pol, "b", "aarch64"));
	assert_null(policy_find_number(&pol, "c", "x86_64"));
}

static int decide(const char *name, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	const uint64_t args[6] = { a0, a1, a2, a3, 0, 0 };

	return policy_decide(&pol, policy_find(&pol, name), args);
}

TEST(checks)
{
	assert_int_equal(parse(HEAD
			       "check s arg0 in 1 2 10 else EAFNOSUPPORT\n"
			       "check s arg1 & 0xf in\n\t1\n\t5 else EPERM\n"
			       "check i arg1 not in 0x5412 else EPERM\nallow r\ndeny EACCES d"),
			 0);
	assert_int_equal(pol.n_checks, 3);
	assert_int_equal(decide("s", 1, 0x80001, 0, 0), 0);
	assert_int_equal(decide("s", 3, 3, 0, 0), EAFNOSUPPORT); /* the first that fails decides */
	assert_int_equal(decide("s", 10, 3, 0, 0), EPERM);
	assert_int_equal(decide("i", 0, 0x5413, 0, 0), 0);
	assert_int_equal(decide("i", 0, 0x5412, 0, 0), EPERM);
	assert_int_equal(decide("i", 0, 0x100005412, 0, 0), EPERM);
	assert_int_equal(decide("r", 9, 9, 9, 9), 0);
	assert_int_equal(decide("d", 0, 0, 0, 0), EACCES);
	assert_int_equal(decide("unlisted", 0, 0, 0, 0), ENOSYS);
}

/* Each error names the line and the remedy. */
static const struct {
	const char *text, *want;
} bad[] = {
	{ "", "line 1: no 'default'; add" },
	{ "default ENOSYS\n", "line 2: no 'foreign-abi'; add" },
	{ HEAD "default EPERM", "line 3: a second 'default'; remove" },
	{ "default\n" HEAD, "line 2: the directive ends before an errno; add" },
	{ "default EWHAT", "line 1: 'EWHAT' is not an errno of policies; use EPERM" },
	{ "default 38", "line 1: '38' is not an errno" },
	{ "default ENOSYS EPERM", "line 1: 'EPERM' is too much for 'default'; remove" },
	{ " default ENOSYS", "line 1: 'default' belongs to no directive; begin" },
	{ HEAD "permit read", "line 3: unknown directive 'permit'; use" },
	{ HEAD "allow", "line 3: the directive ends before the name of a call; add" },
	{ HEAD "allow\nread", "line 4: the directive ends before the name of a call" },
	{ HEAD "allow Read", "line 3: 'Read' is not a name; use" },
	{ HEAD "allow 9p", "line 3: '9p' is not a name" },
	{ HEAD "allow a_name_that_is_far_too_long_for_a_call", "is not a name" },
	{ HEAD "allow read\nallow x\n read",
	  "line 5: 'read' was decided in line 3 already; remove" },
	{ HEAD "allow read\ndeny EPERM read", "line 4: 'read' was decided in line 3" },
	{ HEAD "allow s\ncheck s arg0 in 1 else EPERM", "line 4: 's' was decided in line 3" },
	{ HEAD "check s arg0 in 1 else EPERM\nallow s", "line 4: 's' was decided in line 3" },
	{ HEAD "deny read", "line 3: 'read' is not an errno" },
	{ HEAD "deny EPERM", "line 3: the directive ends before the name of a call" },
	{ HEAD "check s", "line 3: the directive ends before an argument" },
	{ HEAD "check s arg6 in 1 else EPERM", "line 3: 'arg6' is not an argument; use arg0" },
	{ HEAD "check s arg0 1 else EPERM", "line 3: '1' where 'in' should be; write check" },
	{ HEAD "check s arg0 in else EPERM", "line 3: 'else' is not a number of 32 bits; write" },
	{ HEAD "check s arg0 in 1 2", "line 3: the directive ends before 'else ERRNO'" },
	{ HEAD "check s arg0 in 1\nelse EPERM", "line 4: the directive ends before 'else ERRNO'" },
	{ HEAD "check s arg0 in 1 else", "line 3: the directive ends before an errno" },
	{ HEAD "check s arg0 in -1 else EPERM", "line 3: '-1' is not a number" },
	{ HEAD "check s arg0 in 0x100000000 else EPERM", "is not a number of 32 bits" },
	{ HEAD "check s arg0 in 0x else EPERM", "'0x' is not a number" },
	{ HEAD "check s arg0 in 1f else EPERM", "'1f' is not a number" },
	{ HEAD "check s arg0 & 0xf in 16 else EPERM",
	  "line 3: '16' has bits outside the mask 0xf" },
	{ HEAD "number a", "line 3: the directive ends before its number" },
	{ HEAD "number a 1\nnumber a 2\nallow a", "line 4: 'a' has a number since line 3; remove" },
	{ HEAD "number a 1 x86_64\nnumber a 1\nallow a", "line 4: 'a' has a number since line 3" },
	{ HEAD "number a 1", "line 3: 'a' has a number and no decision; allow or deny" },
	{ HEAD "allow read\r\n", "line 3: byte 0x0d outside a comment; use" },
	{ HEAD "allow r\xc3\xa9", "line 3: byte 0xc3 outside a comment" },
};

TEST(bad_input)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse(bad[i].text) != -EINVAL || !strstr(err.msg, bad[i].want))
			fail_msg("'%s' gave '%s', not '%s'", bad[i].text, err.msg, bad[i].want);
	}
	assert_int_equal(policy_parse("default\0ENOSYS", 14, &pol, &err), -EINVAL);
	assert_int_equal(policy_parse("bad", 3, &pol, NULL), -EINVAL);
}

/* HEAD, then @unit @times with a number put in, and a table that must report that it is full. */
static void overflow(const char *unit, int times, const char *want)
{
	static char text[POLICY_TEXT_MAX];
	size_t len = (size_t)snprintf(text, sizeof(text), HEAD);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	for (int i = 0; i < times; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, unit, i);
#pragma GCC diagnostic pop
	assert_int_equal(policy_parse(text, len, &pol, &err), -EINVAL);
	assert_non_null(strstr(err.msg, want));
	assert_non_null(strstr(err.msg, "; raise POLICY_"));
}

TEST(tables_are_bounded)
{
	static char big[POLICY_TEXT_MAX + 1];

	overflow("allow c%d\n", POLICY_RULES_MAX + 1, "line 643: more than 640 calls");
	overflow("number c%d 1\n", POLICY_NUMBERS_MAX + 1, "line 67: more than 64 numbers");
	overflow("check c arg0 in %d else EPERM\n", POLICY_CHECKS_MAX + 1, "more than 64 checks");
	overflow("check c arg0 in 1 2 3 4 5 6 7 8 9 %d else EPERM\n", 26, "more than 256 values");
	memset(big, '\n', sizeof(big));
	assert_int_equal(policy_parse(big, sizeof(big), &pol, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "longer than 262144 bytes"));
}

/* A policy with as many changes of answer as there can be, so that the tree needs long jumps. */
static void make_alternating(size_t n)
{
	parse(HEAD);
	for (size_t i = 0; i < n; i++) {
		struct policy_rule *r = &pol.rules[i];

		*r = (struct policy_rule){ .action = i % 2 ? POLICY_ALLOW : POLICY_DENY,
					   .err = EACCES };
		(void)snprintf(r->name, sizeof(r->name), "c%zu", i);
		calls[i] = (struct filter_call){ (uint32_t)(3 * i), r };
	}
	pol.n_rules = n;
}

TEST(filter_long_jumps)
{
	make_alternating(POLICY_RULES_MAX);
	assert_int_equal(filter_build(&pol, AUDIT_ARCH_X86_64, calls, pol.n_rules, &flt, &err), 0);
	assert_true(flt.len > 1000);
	assert_int_equal(filter_verify(&pol, AUDIT_ARCH_X86_64, calls, pol.n_rules, flt.prog,
				       flt.len, &err),
			 0);
}

TEST(filter_refuses_bad_tables)
{
	make_alternating(4);
	calls[2].nr = calls[1].nr;
	assert_int_equal(filter_build(&pol, AUDIT_ARCH_X86_64, calls, 4, &flt, &err), -EINVAL);
	make_alternating(1);
	calls[0].nr = FILTER_X32_BIT + 1;
	assert_int_equal(filter_build(&pol, AUDIT_ARCH_X86_64, calls, 1, &flt, &err), -EINVAL);
}
