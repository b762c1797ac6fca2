/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_policy.c - Any bytes as a policy: the parser stays inside its tables, and an accepted policy
 * compiles to a filter that means the same.
 */
#include "base/err.h"
#include "fuzz.h"
#include "seccomp/policy.h"

#include <linux/audit.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy p;
	static struct filter f;
	static struct filter_call calls[POLICY_RULES_MAX];
	struct err e = { 0 };

	if (policy_parse((const char *)data, size, &p, &e) < 0) {
		require(e.code < 0 && e.msg[0] != '\0');
		return 0;
	}
	for (size_t i = 0; i < p.n_rules; i++)
		calls[i] = (struct filter_call){ (uint32_t)(i + i / 3), &p.rules[i] };
	if (filter_build(&p, AUDIT_ARCH_X86_64, calls, p.n_rules, &f, &e) < 0)
		return 0; /* too long, and reported as such */
	for (size_t i = 0; i < p.n_rules; i++) {
		struct seccomp_data d = { .nr = (int)calls[i].nr, .arch = AUDIT_ARCH_X86_64 };
		uint64_t args[6];
		uint32_t got;
		int want;

		for (size_t a = 0; a < 6; a++)
			d.args[a] = args[a] = p.n_values ? p.values[(i + a) % p.n_values] : a;
		want = policy_decide(&p, &p.rules[i], args);
		got = filter_eval(f.prog, f.len, &d);
		require(got == (want ? SECCOMP_RET_ERRNO | (uint32_t)want : SECCOMP_RET_ALLOW));
	}
	return 0;
}
