/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_agree.c - A policy and the options of the daemon that it is for.
 *
 * What every owner gets who asks for nothing must be within [default]: the operator has said two
 * things that can not both be true, and only he knows which he meant. An owner's own table may be
 * below it: then that owner's defaults are lowered (judge.h), because nothing else could have been
 * meant.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/num.h"
#include "front/mcp/tool.h"
#include "front/policy/rules.h"
#include "front/support/config.h"

#define MIB (UINT64_C(1) << 20)

static void check_defaults(const struct rules *r, const struct config *c,
			   struct rules_report *report)
{
	const struct {
		enum rule rule;
		uint64_t given, unit; /* in the daemon's unit, and how many of those the rule's is
				       */
		const char *flag;
	} defaults[] = {
		{ RULE_MEMORY_MIB, c->memory_bytes, MIB, "--memory" },
		{ RULE_CPUS, c->cpu_milli, 1, "--cpus" },
		{ RULE_PIDS, c->pids, 1, "--pids" },
		{ RULE_DISK_MIB, c->disk_bytes, MIB, "--disk" },
		{ RULE_EXECUTION_SECONDS, c->timeout_ms, 1000, "--timeout" },
		{ RULE_IDLE_SECONDS, c->idle_ms, 1000, "--idle-timeout" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		const struct rule_value *v = &r->fallback.values[defaults[i].rule];
		char have[NUM_FORMAT_MAX];

		if (!v->at.line || v->number * defaults[i].unit >= defaults[i].given)
			continue;
		if (defaults[i].unit == MIB)
			(void)num_format_size(defaults[i].given, have, sizeof(have));
		else if (defaults[i].unit == 1000)
			(void)num_format_ms(defaults[i].given, have, sizeof(have));
		else if (defaults[i].rule == RULE_CPUS)
			(void)snprintf(have, sizeof(have), "%.3g",
				       (double)defaults[i].given / 1000);
		else
			(void)snprintf(have, sizeof(have), "%" PRIu64, defaults[i].given);
		rules_complain(
			report, v->at,
			"%s: is below what who asks for nothing gets, %s: raise it, or start "
			"the daemon with a lower %s",
			rule_name(defaults[i].rule), have, defaults[i].flag);
	}
}

static void check_section(const struct rules_section *s, const struct config *c,
			  struct rules_report *report)
{
	const struct rule_value *images = &s->values[RULE_IMAGES], *tools = &s->values[RULE_TOOLS];
	char unknown[64];

	if (images->at.line && !rule_lists_image(images, c->image))
		rules_complain(
			report, images->at,
			"images: '%.100s' is not in it, the image of who asks for none (--image)",
			c->image);
	for (size_t i = 0; i < tools->n; i++)
		if (strcmp(tools->words[i], "default") == 0 ||
		    strcmp(tools->words[i], "all") == 0 ||
		    !mcp_tools_check(tools->words[i], unknown, sizeof(unknown)))
			rules_complain(
				report, tools->at,
				"tools: there is no tool '%.60s'; tools/list of an MCP client "
				"has those that there are",
				tools->words[i]);
}

bool rules_agree(const struct rules *r, const struct config *c, struct rules_report *report)
{
	size_t before = report->n;

	check_defaults(r, c, report);
	check_section(&r->fallback, c, report);
	for (size_t i = 0; i < r->n_owners; i++)
		check_section(&r->owners[i], c, report);
	return report->n == before;
}
