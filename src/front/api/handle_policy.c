/* SPDX-License-Identifier: Apache-2.0 */
/* handle_policy.c - GET /v1/policy: the ceilings of the caller, and how much of them is in use. */
#include <string.h>

#include "base/json.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/policy/policy.h"
#include "front/policy/rules.h"
#include "front/sandbox/sandbox.h"
#include "front/support/time_text.h"

#define ANSWER_MAX (1u << 20)

static void write_ceiling(struct json *j, enum rule rule, const struct rule_value *v,
			  const char *name)
{
	json_member_object(j, rule_name(rule));
	json_member_str(j, "rule", name);
	json_key(j, "value");
	if (rule == RULE_CPUS) {
		json_double(j, (double)v->number / 1000, 3);
	} else if (rule < RULE_NUMBERS_) {
		json_uint(j, v->number);
	} else {
		json_array_begin(j);
		for (size_t i = 0; i < v->n; i++)
			json_str(j, v->words[i]);
		json_array_end(j);
	}
	json_object_end(j);
}

void handle_policy(struct services *services, struct http_exchange *x)
{
	const struct rules *r = services->sandboxes->admission->policy->rules;
	const char *owner = context_of(x)->owner;
	size_t sandboxes, executions;
	struct reply answer;
	struct json *j = reply_object(&answer, ANSWER_MAX);

	json_member_str(j, "owner", owner);
	json_member_str(j, "sha256", r ? r->sha256 : NULL);
	if (r)
		time_json(j, "loaded_at", services->sandboxes->admission->policy->loaded_ms);
	json_member_object(j, "ceilings");
	for (enum rule rule = 0; rule < RULE_MAX_; rule++) {
		char name[RULES_NAME_MAX];
		const struct rule_value *v = rules_of(r, owner, rule, name);

		if (v)
			write_ceiling(j, rule, v, name);
	}
	json_object_end(j);
	sandboxes_count(services->sandboxes, owner, &sandboxes, &executions);
	json_member_object(j, "use");
	json_member_uint(j, "sandboxes", sandboxes);
	json_member_uint(j, "executions", executions);
	json_object_end(j);
	reply_end(&answer, x, 200);
}
