/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_egress_entry.c - Entries of egress over arbitrary text.
 *
 * Checked for every input: a refusal has a reason; an accepted entry is canonical: it is accepted
 * again, unchanged, and the gate accepts its rules.
 */
#include "base/err.h"
#include "front/policy/egress_entry.h"
#include "fuzz.h"
#include "gate/gate_sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct egress_entry n, again;
	struct gate_rule rules[2];
	struct host_map names = { 0 };
	struct err e = { 0 };

	if (egress_entry_parse((const char *)data, size, &n, &e) < 0) {
		require(e.code < 0 && e.msg[0]);
		return 0;
	}
	require(egress_entry_parse(n.text, strlen(n.text), &again, &e) == 0);
	require(strcmp(n.text, again.text) == 0 && n.port == again.port && n.wild == again.wild);
	size_t count = egress_entry_rules(&n, rules);

	require(count == (n.port ? 1 : 2) && host_map_set(&names, rules, count) == 0);
	host_map_free(&names);
	return 0;
}
