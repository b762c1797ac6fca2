/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_rules.c - Policies of any bytes.
 *
 * Refusals have lines of their own, with places that exist in the text, in its order where the
 * reader can keep it; accepted values are within every range.
 */
#include "front/policy/rules.h"
#include "fuzz.h"

static void check_place(const uint8_t *data, size_t size, struct toml_at at)
{
	unsigned int line = 1;
	size_t start = 0, end;

	for (size_t i = 0; i < size && line < at.line; i++)
		if (data[i] == '\n') {
			line++;
			start = i + 1;
		}
	for (end = start; end < size && data[end] != '\n'; end++)
		;
	require(at.line == line && at.column >= 1 && at.column - 1 <= end - start);
}

static void check_section(const struct rules_section *s)
{
	require(strlen(s->owner) < OWNER_MAX);
	require(!s->values[RULE_PIDS].at.line ||
		(s->values[RULE_PIDS].number >= 1 && s->values[RULE_PIDS].number <= 32768));
	require(!s->values[RULE_CPUS].at.line ||
		(s->values[RULE_CPUS].number >= 10 && s->values[RULE_CPUS].number <= 1024000));
	for (size_t i = 0; i < RULE_MAX_; i++) {
		require(s->values[i].n <= TOML_WORDS_MAX);
		for (size_t n = 0; n < s->values[i].n; n++)
			require(s->values[i].words[n][0] != '\0');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rules_report report;

	memset(&report, 0, sizeof(report));
	struct rules *r = rules_parse((const char *)data, size, &report);

	require((r == NULL) == (report.n > 0));
	for (size_t i = 0; i < report.n && i < RULES_ERRORS_MAX; i++) {
		require(report.errors[i].message[0] && !strchr(report.errors[i].message, '\n'));
		check_place(data, size, report.errors[i].at);
	}
	if (r) {
		check_section(&r->daemon);
		check_section(&r->fallback);
		for (size_t i = 0; i < r->n_owners; i++)
			check_section(&r->owners[i]);
		require(strlen(r->sha256) == 64);
	}
	rules_free(r);
	return 0;
}
