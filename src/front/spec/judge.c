/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - Check requests against the rules in force.
 *
 * The sandboxes and executions of an owner are counted when a rule needs the number: a counter
 * would have to be right on every path that ends one of them.
 */
#include "front/spec/judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "front/policy/egress_pattern.h"
#include "front/policy/policy.h"
#include "front/policy/secret_use.h"
#include "front/spec/admission.h"
#include "front/spec/mount_use.h"
#include "front/spec/sandbox_spec.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/mounts.h"
#include "front/support/refusal.h"
#include "ledger/ledger.h"

#define MIB (UINT64_C(1) << 20)
#define BUSY_RETRY_S 1u

/* ---- refusals ------------------------------------------------------------------------------ */

struct finding {
	enum refusal_kind kind;
	const char *field; /* of the request */
	char rule[RULES_NAME_MAX];
};

__attribute__((format(printf, 5, 6))) static int refuse(struct admission *a, const char *owner,
							const struct finding *found,
							struct refusal *ret, const char *fmt, ...)
{
	char why[160];
	struct err e = { 0 };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	*ret = (struct refusal){
		.kind = found->kind,
		.code = found->kind == REFUSAL_TOO_MANY ? "policy_busy" : "policy_refused",
		.field = found->field,
		.hint = found->kind == REFUSAL_TOO_MANY ?
				"wait until one has ended; GET /v1/policy has your ceilings" :
				"GET /v1/policy has your ceilings",
		.retry_after_s = found->kind == REFUSAL_TOO_MANY ? BUSY_RETRY_S : 0
	};
	(void)snprintf(ret->message, sizeof(ret->message), "policy rule %s: %s", found->rule, why);
	metric_add(M_POLICY_REFUSALS, 1);
	if (ledger_record(a->cells->daemon->ledger, &e, "policy.refuse", owner, NULL,
			  L_STR("rule", found->rule), L_STR("why", why)) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("what", "policy.refuse"),
			  F_STR("why", e.msg));
	return -1;
}

/* ---- sandboxes ----------------------------------------------------------------------------- */

/* One number of a spec: its rule, and its field in a request. */
struct measure {
	enum rule rule;
	const char *field;
	uint64_t *at;  /* in the spec; NULL for cpus */
	uint64_t unit; /* of the rule, in the spec's */
};

#define MEASURES 6
#define MEASURES_OF(s)                                                                             \
	{                                                                                          \
		{ RULE_MEMORY_MIB, "memory_mib", &(s)->limits.memory_bytes, MIB },                 \
			{ RULE_DISK_MIB, "disk_mib", &(s)->limits.disk_bytes, MIB },               \
			{ RULE_PIDS, "pids", &(s)->limits.pids, 1 },                               \
			{ RULE_IDLE_SECONDS, "idle_seconds", &(s)->idle_ms, 1000 },                \
			{ RULE_LIFE_SECONDS, "timeout_seconds", &(s)->life_s, 1 },                 \
			{ RULE_CPUS, "cpus", NULL, 1 },                                            \
	}

void policy_lower(const struct admission *a, const char *owner, struct sandbox_spec *s)
{
	const struct measure all[MEASURES] = MEASURES_OF(s);
	const struct cell_limits before = s->limits;

	for (size_t i = 0; i < MEASURES; i++) {
		const struct rule_value *v = rules_of(a->policy->rules, owner, all[i].rule, NULL);
		uint64_t most = v ? v->number * all[i].unit : 0;

		if (v && !all[i].at && s->limits.cpu_milli > most)
			s->limits.cpu_milli = (uint32_t)most;
		else if (v && all[i].at &&
			 (*all[i].at > most || (all[i].rule == RULE_LIFE_SECONDS && !s->life_s)))
			*all[i].at = most;
	}
	s->own_limits |= before.memory_bytes != s->limits.memory_bytes ||
			 before.disk_bytes != s->limits.disk_bytes ||
			 before.pids != s->limits.pids || before.cpu_milli != s->limits.cpu_milli;
}

static int check_measures(struct admission *a, const char *owner, const struct sandbox_spec *s,
			  struct refusal *ret)
{
	struct sandbox_spec copy = *s;
	const struct measure all[MEASURES] = MEASURES_OF(&copy);
	struct finding found = { .kind = REFUSAL_FORBIDDEN };

	for (size_t i = 0; i < MEASURES; i++) {
		const struct rule_value *v =
			rules_of(a->policy->rules, owner, all[i].rule, found.rule);

		found.field = all[i].field;
		if (v && !all[i].at && s->limits.cpu_milli > v->number)
			return refuse(a, owner, &found, ret, "at most %.15g, and this is %.15g",
				      (double)v->number / 1000, (double)s->limits.cpu_milli / 1000);
		if (v && all[i].at && *all[i].at > v->number * all[i].unit)
			return refuse(a, owner, &found, ret,
				      "at most %" PRIu64 ", and this is %" PRIu64, v->number,
				      *all[i].at / all[i].unit);
		if (v && all[i].rule == RULE_LIFE_SECONDS && s->life_s == 0)
			return refuse(a, owner, &found, ret,
				      "at most %" PRIu64 ", and this has no end", v->number);
	}
	return 0;
}

/* One more sandbox or execution, of @owner and of all owners. */
static int check_count(struct admission *a, const char *owner, enum rule rule, const char *what,
		       struct refusal *ret)
{
	const char *const whose[] = { owner, NULL };
	struct finding found = { .kind = REFUSAL_TOO_MANY };

	for (size_t i = 0; i < 2; i++) {
		const struct rule_value *v = rules_of(a->policy->rules, whose[i], rule, found.rule);
		size_t sandboxes, executions;

		if (!v)
			continue;
		a->count(a->sandboxes, whose[i], &sandboxes, &executions);
		if (v->number == 0)
			found.kind = REFUSAL_FORBIDDEN;
		if ((rule == RULE_SANDBOXES ? sandboxes : executions) >= v->number)
			return refuse(a, owner, &found, ret, "at most %" PRIu64 " %s at once",
				      v->number, what);
	}
	return 0;
}

/* NULL: it may be reached. Otherwise the list that forbids it, with the rule's name in @ret_rule.
 * @ret_word: the word that denies it, or NULL. */
static const struct rule_value *unreachable(const struct admission *a, const char *owner,
					    const char *text, char ret_rule[RULES_NAME_MAX],
					    const char **ret_word)
{
	const struct rule_value *v =
		rules_of(a->policy->rules, owner, RULE_EGRESS_DENIED, ret_rule);
	struct egress_entry entry;
	struct egress_pattern p;

	*ret_word = NULL;
	bool good = egress_entry_parse(text, strlen(text), &entry, NULL) == 0;

	for (size_t i = 0; v && i < v->n; i++)
		if (!good || !egress_pattern_parse(v->words[i], &p) ||
		    egress_pattern_touches(&p, &entry)) {
			*ret_word = v->words[i];
			return v;
		}
	v = rules_of(a->policy->rules, owner, RULE_EGRESS, ret_rule);
	for (size_t i = 0; good && v && i < v->n; i++)
		if (egress_pattern_parse(v->words[i], &p) && egress_pattern_covers(&p, &entry))
			return NULL;
	return v;
}

bool policy_reaches(const struct admission *a, const char *owner, const char *entry)
{
	char rule[RULES_NAME_MAX];
	const char *word;

	return !unreachable(a, owner, entry, rule, &word);
}

int policy_egress(struct admission *a, const char *owner, const json_t *list, struct refusal *ret)
{
	struct finding found = { .kind = REFUSAL_FORBIDDEN, .field = "egress" };
	const char *word;
	size_t i;
	json_t *text;

	json_array_foreach(list, i, text)
	{
		const char *entry = json_string_value(text);

		if (!unreachable(a, owner, entry, found.rule, &word))
			continue;
		if (word)
			return refuse(a, owner, &found, ret,
				      "'%.64s' lets through what '%.64s' denies", entry, word);
		return refuse(a, owner, &found, ret, "'%.100s' is not within what you may reach",
			      entry);
	}
	return 0;
}

static int check_secrets(struct admission *a, const char *owner, const json_t *list,
			 struct refusal *ret)
{
	struct finding found = { .kind = REFUSAL_FORBIDDEN, .field = "secrets" };
	const struct rule_value *v = rules_of(a->policy->rules, owner, RULE_SECRETS, found.rule);
	struct secret_use use;
	size_t i;
	json_t *text;

	if (!v)
		return 0;
	json_array_foreach(list, i, text)
	{
		if (!secret_use_parse(json_string_value(text), &use) || !rule_lists(v, use.name))
			return refuse(a, owner, &found, ret, "'%.64s' is not among your secrets",
				      json_string_value(text));
	}
	return 0;
}

enum rule_mount policy_mount(const struct admission *a, const char *owner, const char *place)
{
	const struct rule_value *v = rules_of(a->policy->rules, owner, RULE_MOUNTS, NULL);

	return v ? rule_lists_mount(v, place) : RULE_MOUNT_WHOLE;
}

static int check_mount(struct admission *a, const char *owner, const char *place, bool write,
		       struct refusal *ret)
{
	struct finding found = { .kind = REFUSAL_FORBIDDEN, .field = "mounts" };
	enum rule_mount may = policy_mount(a, owner, place);

	if (may == RULE_MOUNT_WHOLE || (may == RULE_MOUNT_READ && !write))
		return 0;
	(void)rules_of(a->policy->rules, owner, RULE_MOUNTS, found.rule);
	if (may == RULE_MOUNT_READ)
		return refuse(a, owner, &found, ret, "'%.100s' is for you to read only", place);
	return refuse(a, owner, &found, ret, "'%.100s' is not among your mounts", place);
}

/* A mount that does not exist is checked as well, and first: see mount_use_parse(). */
static int check_mounts(struct admission *a, const char *owner, const struct mount_use *u,
			struct refusal *ret)
{
	if (u->missing.place[0] &&
	    check_mount(a, owner, u->missing.place, u->missing.mode == MOUNT_RW, ret) < 0)
		return -1;
	for (size_t i = 0; i < a->cells->mounts->n; i++)
		if (u->set.has & 1u << i && check_mount(a, owner, a->cells->mounts->row[i].dst,
							!(u->set.ro & 1u << i), ret) < 0)
			return -1;
	return 0;
}

bool policy_image(const struct admission *a, const char *owner, const char *image)
{
	const struct rule_value *v = rules_of(a->policy->rules, owner, RULE_IMAGES, NULL);

	return !v || rule_lists_image(v, image);
}

int policy_pull(struct admission *a, const char *owner, const char *image, struct refusal *ret)
{
	struct finding found = { .kind = REFUSAL_FORBIDDEN, .field = "image" };
	const struct rule_value *v =
		rules_of(a->policy->rules, owner, RULE_IMAGE_PULLS, found.rule);

	if (v && !rule_lists_image(v, image))
		return refuse(a, owner, &found, ret,
			      "'%.100s' is not in the image store, and not among those that are "
			      "pulled for you",
			      image);
	return 0;
}

/*
 * A fetcher belongs to the daemon and not to the owner: it runs no code of the owner, reaches only
 * the operator's index, and rules of packages bound its number, size and rate. So the ceilings of
 * sandboxes do not apply to it.
 */
int policy_sandbox(struct admission *a, const char *owner, const struct sandbox_spec *s,
		   struct refusal *ret)
{
	struct finding found = { .kind = REFUSAL_FORBIDDEN, .field = "image" };
	const struct rule_value *images =
		rules_of(a->policy->rules, owner, RULE_IMAGES, found.rule);

	if (!a->policy->rules || s->fetcher)
		return 0;
	const char *image = s->image[0] ? s->image : a->cells->daemon->config.image;

	if (images && !rule_lists_image(images, image))
		return refuse(a, owner, &found, ret, "'%.100s' is not among your images", image);
	if (check_measures(a, owner, s, ret) < 0 || check_secrets(a, owner, s->secrets, ret) < 0 ||
	    policy_egress(a, owner, s->egress, ret) < 0 ||
	    check_mounts(a, owner, &s->mounts, ret) < 0)
		return -1;
	return check_count(a, owner, RULE_SANDBOXES, "sandboxes", ret);
}

/* The ceiling counts from the beginning of the sandbox: otherwise extending would have no end. */
int policy_extend(struct admission *a, const char *owner, uint64_t age_s, uint64_t seconds,
		  struct refusal *ret)
{
	struct finding found = { .kind = REFUSAL_FORBIDDEN, .field = "seconds" };
	const struct rule_value *v =
		rules_of(a->policy->rules, owner, RULE_LIFE_SECONDS, found.rule);

	if (v && age_s + seconds > v->number)
		return refuse(a, owner, &found, ret,
			      "at most %" PRIu64 " from its beginning, and it is %" PRIu64 " s old",
			      v->number, age_s);
	return 0;
}

/* ---- what runs ----------------------------------------------------------------------------- */

int policy_process(struct admission *a, const char *owner, struct refusal *ret)
{
	return check_count(a, owner, RULE_EXECUTIONS, "executions, commands and processes", ret);
}

int policy_execution(struct admission *a, const char *owner, uint64_t asked_ms, uint64_t *ret_ms,
		     struct refusal *ret)
{
	struct finding found = { .kind = REFUSAL_FORBIDDEN, .field = "timeout" };
	const struct rule_value *v =
		rules_of(a->policy->rules, owner, RULE_EXECUTION_SECONDS, found.rule);
	uint64_t ms = asked_ms ? asked_ms : a->cells->daemon->config.timeout_ms;

	if (v && ms > v->number * 1000) {
		if (asked_ms)
			return refuse(a, owner, &found, ret,
				      "at most %" PRIu64 ", and this is %.15g", v->number,
				      (double)asked_ms / 1000);
		ms = v->number * 1000;
	}
	*ret_ms = ms;
	return policy_process(a, owner, ret);
}

int policy_queue(struct admission *a, const char *owner, uint64_t *timeout_ms, struct refusal *ret)
{
	const struct rule_value *v =
		rules_of(a->policy->rules, owner, RULE_EXECUTION_SECONDS, NULL);

	if (v && *timeout_ms > v->number * 1000)
		*timeout_ms = v->number * 1000;
	return policy_process(a, owner, ret);
}

/* ---- packages and tools -------------------------------------------------------------------- */

int policy_package(struct admission *a, const char *owner, const char *asked, struct refusal *ret)
{
	char name[256];
	struct finding found = { .kind = REFUSAL_FORBIDDEN, .field = "package" };
	const struct rule_value *v =
		rules_of(a->policy->rules, owner, RULE_PACKAGES_BLOCKED, found.rule);

	(void)snprintf(name, sizeof(name), "%s", asked);
	if (!rules_package(name))
		(void)snprintf(name, sizeof(name), "%s", asked); /* an invalid name: as it is */
	if (v && rule_lists(v, name))
		return refuse(a, owner, &found, ret, "the package '%.64s' is blocked", name);
	v = rules_of(a->policy->rules, owner, RULE_PACKAGES, found.rule);
	if (v && !rule_lists(v, name))
		return refuse(a, owner, &found, ret,
			      "the package '%.64s' is not among those allowed", name);
	return 0;
}

bool policy_tool(const struct admission *a, const char *owner, const char *tool)
{
	const struct rule_value *v = rules_of(a->policy->rules, owner, RULE_TOOLS, NULL);

	return !v || rule_lists(v, tool);
}

int policy_tool_call(struct admission *a, const char *owner, const char *tool, struct refusal *ret)
{
	struct finding found = { .kind = REFUSAL_FORBIDDEN };

	if (policy_tool(a, owner, tool))
		return 0;
	(void)rules_of(a->policy->rules, owner, RULE_TOOLS, found.rule);
	return refuse(a, owner, &found, ret, "the tool %.60s is not among yours", tool);
}
