/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_policy.c - The policy parser, the filter compiler, and cell.policy itself.
 *
 * usage: test_policy [POLICY], by default policy/cell.policy below the working directory.
 */
#include "base/err.h"
#include "base/fd.h"
#include "policy/filter.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "default ENOSYS\nforeign-abi EPERM\n"

static const char *policy_file = "policy/cell.policy";
static struct policy pol;
static struct filter flt;
static struct filter_call calls[POLICY_RULES_MAX];
static struct err err;

static int parse(const char *text)
{
	err = (struct err){ 0 };
	return policy_parse(text, strlen(text), &pol, &err);
}

static void load_cell_policy(void)
{
	static char text[POLICY_TEXT_MAX + 1];
	ssize_t len = fd_read_file(AT_FDCWD, policy_file, text, sizeof(text));

	if (len < 0)
		fail_msg("cannot read %s: run from the source root or name it", policy_file);
	if (policy_parse(text, (size_t)len, &pol, &err) < 0)
		fail_msg("%s: %s", policy_file, err.msg);
}

static void test_empty_rules(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD), 0);
	assert_int_equal(pol.default_err, ENOSYS);
	assert_int_equal(pol.foreign_err, EPERM);
	assert_int_equal(pol.n_rules, 0);
	assert_null(policy_find(&pol, "read"));
}

static void test_layout_of_words(void **state)
{
	(void)state;
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

static void test_numbers(void **state)
{
	(void)state;
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

static void test_checks(void **state)
{
	(void)state;
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

/* Each error names the line and says what to do. */
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

static void test_bad_input(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse(bad[i].text) != -EINVAL || !strstr(err.msg, bad[i].want))
			fail_msg("'%s' gave '%s', not '%s'", bad[i].text, err.msg, bad[i].want);
	}
	assert_int_equal(policy_parse("default\0ENOSYS", 14, &pol, &err), -EINVAL);
	assert_int_equal(policy_parse("bad", 3, &pol, NULL), -EINVAL);
}

/* HEAD, then @unit @times with a number put in, and a table that must say it is full. */
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

static void test_tables_are_bounded(void **state)
{
	static char big[POLICY_TEXT_MAX + 1];

	(void)state;
	overflow("allow c%d\n", POLICY_RULES_MAX + 1, "line 643: more than 640 calls");
	overflow("number c%d 1\n", POLICY_NUMBERS_MAX + 1, "line 67: more than 64 numbers");
	overflow("check c arg0 in %d else EPERM\n", POLICY_CHECKS_MAX + 1, "more than 64 checks");
	overflow("check c arg0 in 1 2 3 4 5 6 7 8 9 %d else EPERM\n", 26, "more than 256 values");
	memset(big, '\n', sizeof(big));
	assert_int_equal(policy_parse(big, sizeof(big), &pol, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "longer than 262144 bytes"));
}

static void test_errno_names(void **state)
{
	(void)state;
	assert_string_equal(policy_errno_name(EPERM), "EPERM");
	assert_null(policy_errno_name(EXDEV));
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

static void test_filter_long_jumps(void **state)
{
	(void)state;
	make_alternating(POLICY_RULES_MAX);
	assert_int_equal(filter_build(&pol, AUDIT_ARCH_X86_64, calls, pol.n_rules, &flt, &err), 0);
	assert_true(flt.len > 1000);
	assert_int_equal(filter_verify(&pol, AUDIT_ARCH_X86_64, calls, pol.n_rules, flt.prog,
				       flt.len, &err),
			 0);
}

static void test_filter_refuses_bad_tables(void **state)
{
	(void)state;
	make_alternating(4);
	calls[2].nr = calls[1].nr;
	assert_int_equal(filter_build(&pol, AUDIT_ARCH_X86_64, calls, 4, &flt, &err), -EINVAL);
	make_alternating(1);
	calls[0].nr = FILTER_X32_BIT + 1;
	assert_int_equal(filter_build(&pol, AUDIT_ARCH_X86_64, calls, 1, &flt, &err), -EINVAL);
}

/* cell.policy against libseccomp's table for x86-64; returns the number of calls. */
static size_t resolve_cell_policy(void)
{
	size_t n = 0;

	load_cell_policy();
	for (uint32_t nr = 0; nr < 1024; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, (int)nr);
		const struct policy_rule *rule = name ? policy_find(&pol, name) : NULL;

		for (size_t i = 0; !name && i < pol.n_numbers; i++)
			if (pol.numbers[i].nr == nr)
				rule = policy_find(&pol, pol.numbers[i].name);
		if (name && !rule)
			print_error("%s: number %u, '%s', is not decided\n", policy_file, nr, name);
		if (name)
			assert_non_null(rule);
		free(name);
		if (rule)
			calls[n++] = (struct filter_call){ nr, rule };
	}
	return n;
}

static void test_cell_policy_is_complete(void **state)
{
	size_t n = resolve_cell_policy();

	(void)state;
	for (size_t i = 0; i < pol.n_rules; i++) {
		bool found = false;

		for (size_t j = 0; j < n; j++)
			found |= calls[j].rule == &pol.rules[i];
		if (!found)
			fail_msg("'%s' (line %u) is no x86-64 call: a misspelling decides nothing",
				 pol.rules[i].name, pol.rules[i].line);
	}
	assert_int_equal(n, pol.n_rules);
	assert_true(n >= 380);
}

static void test_cell_policy_numbers_are_right(void **state)
{
	(void)state;
	load_cell_policy();
	for (size_t i = 0; i < pol.n_numbers; i++) {
		const struct policy_number *own = &pol.numbers[i];
		int nr = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, own->name);

		if (nr >= 0)
			assert_int_equal(nr, own->nr);
		if (own->nr < 424)
			assert_string_equal(own->arch, "x86_64");
	}
}

/* Calls with the same checks may stand in for each other: no argument tells them apart. */
static bool same_checks(const struct policy_rule *a, const struct policy_rule *b)
{
	size_t i = 0, j = 0;

	if (!a || !b || a->action != POLICY_CHECK || b->action != POLICY_CHECK)
		return false;
	for (;; i++, j++) {
		while (i < pol.n_checks && &pol.rules[pol.checks[i].rule] != a)
			i++;
		while (j < pol.n_checks && &pol.rules[pol.checks[j].rule] != b)
			j++;
		if (i == pol.n_checks || j == pol.n_checks)
			return i == j;

		struct policy_check x = pol.checks[i], y = pol.checks[j];

		if (x.arg != y.arg || x.mask != y.mask || x.negate != y.negate || x.err != y.err ||
		    x.count != y.count ||
		    memcmp(&pol.values[x.first], &pol.values[y.first],
			   x.count * sizeof(pol.values[0])) != 0)
			return false;
	}
}

static const struct policy_rule *rule_of(size_t n, uint32_t nr)
{
	for (size_t i = 0; i < n; i++)
		if (calls[i].nr == nr)
			return calls[i].rule;
	return NULL;
}

static void test_cell_filter_means_the_policy(void **state)
{
	size_t n = resolve_cell_policy(), wrong = 0;

	(void)state;
	pol.foreign_err =
		EACCES; /* otherwise the same as the default: then no one can tell them apart */
	assert_int_equal(filter_build(&pol, AUDIT_ARCH_X86_64, calls, n, &flt, &err), 0);
	assert_int_equal(filter_verify(&pol, AUDIT_ARCH_X86_64, calls, n, flt.prog, flt.len, &err),
			 0);

	/* The verification sees any single change: of each return, and of each compared value. */
	for (size_t i = 0; i < flt.len; i++) {
		struct sock_filter saved = flt.prog[i];

		if (saved.code == (BPF_LD | BPF_W | BPF_ABS) || saved.code == (BPF_JMP | BPF_JA))
			continue;
		flt.prog[i].k ^= 1;
		if (filter_verify(&pol, AUDIT_ARCH_X86_64, calls, n, flt.prog, flt.len, &err) ==
			    0 &&
		    !(saved.code == (BPF_JMP | BPF_JGE | BPF_K) &&
		      same_checks(rule_of(n, saved.k), rule_of(n, saved.k ^ 1)))) {
			print_error("a change of instruction %zu goes unseen\n", i);
			wrong++;
		}
		flt.prog[i] = saved;
	}
	assert_int_equal(wrong, 0);
}

static void test_cell_policy_decisions(void **state)
{
	static const char *const init_needs[] = {
		"recvmsg",   "sendmsg",   "fork",
		"setresuid", "setresgid", "setgroups",
		"capset",    "execve",    "execveat",
		"wait4",     "waitid",    "kill",
		"statfs",    "openat",    "pidfd_send_signal",
		"dup3",      "prlimit64", "close_range",
		"poll",      "ppoll",     "landlock_restrict_self",
	};

	(void)state;
	load_cell_policy();
	for (size_t i = 0; i < ARRAY_SIZE(init_needs); i++)
		if (decide(init_needs[i], 0, 0, 0, 0) != 0)
			fail_msg("init needs '%s'", init_needs[i]);
	assert_int_equal(decide("clone", 0x3d0f00, 0, 0, 0), 0); /* what pthread_create uses */
	assert_int_equal(decide("clone", 0x01200011, 0, 0, 0), 0);
	for (unsigned bit = 0; bit < 32; bit++)
		if (0x7e020080 & 1u << bit)
			assert_int_equal(decide("clone", 1u << bit | 17, 0, 0, 0), EPERM);
	assert_int_equal(decide("clone3", 0, 0, 0, 0), ENOSYS);
	assert_int_equal(decide("socket", 16, 3, 0, 0), EAFNOSUPPORT);
	assert_int_equal(decide("socket", 2, 0x80003, 0, 0), EPERM);
	assert_int_equal(decide("socket", 10, 0x80801, 6, 0), 0);
	assert_int_equal(decide("socket", 2, 2, 1, 0), EPROTONOSUPPORT);
	assert_int_equal(decide("ioctl", 0, 0x100005412, 0, 0), EPERM);
	assert_int_equal(decide("ioctl", 0, 0x540e, 0, 0), 0); /* TIOCSCTTY */
	assert_int_equal(decide("ioctl", 0, 0x5414, 0, 0), 0); /* TIOCSWINSZ */
	assert_int_equal(decide("personality", 0x0040000, 0, 0, 0), EPERM);
	assert_int_equal(decide("personality", 0xffffffff, 0, 0, 0), 0);
	assert_int_equal(decide("prctl", 38, 1, 0, 0), 0);
	assert_int_equal(decide("prctl", 35, 0, 0, 0), EINVAL);
	assert_int_equal(decide("chmod", 0, 0755, 0, 0), 0);
	assert_int_equal(decide("chmod", 0, 04755, 0, 0), EPERM);
	assert_int_equal(decide("openat", 0, 0, 0, 02755), EPERM);
	assert_int_equal(decide("openat2", 0, 0, 0, 0), ENOSYS);
	assert_int_equal(decide("prlimit64", 1, 0, 0, 0), EPERM);
	assert_int_equal(decide("seccomp", 1, 0, 0, 0), 0);
	assert_int_equal(decide("seccomp", 1, 8, 0, 0), EINVAL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_rules),
		cmocka_unit_test(test_layout_of_words),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_checks),
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_tables_are_bounded),
		cmocka_unit_test(test_errno_names),
		cmocka_unit_test(test_filter_long_jumps),
		cmocka_unit_test(test_filter_refuses_bad_tables),
		cmocka_unit_test(test_cell_policy_is_complete),
		cmocka_unit_test(test_cell_policy_numbers_are_right),
		cmocka_unit_test(test_cell_filter_means_the_policy),
		cmocka_unit_test(test_cell_policy_decisions),
	};

	if (argc > 1)
		policy_file = argv[1];
	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
