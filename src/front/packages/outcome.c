/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.c - How an install ended: for the ledger, the metrics and the client. */
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "front/packages/closure.h"
#include "front/packages/install_int.h"
#include "front/packages/packages.h"
#include "front/packages/trees.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "ledger/ledger.h"

static void record(const struct install *in)
{
	char names[CHAIN_VALUE_MAX] = "";
	struct err e = { 0 };
	size_t at = 0, i;
	json_t *p;

	json_array_foreach(in->tree ? in->tree->packages : NULL, i, p)
	{
		struct err one = { 0 };

		if (at < sizeof(names) - 1 && !closure_of_image(p))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       at ? " " : "", closure_text(p, "name"));
		if (!in->cached && !closure_of_image(p) &&
		    ledger_record(in->packages->daemon->ledger, &one, "package", in->owner,
				  in->sandbox, L_STR("id", in->id),
				  L_STR("name", closure_text(p, "name")),
				  L_STR("version", closure_text(p, "version")),
				  L_STR("digest", closure_text(p, "hash")),
				  L_BOOL("built", json_is_true(json_object_get(p, "built")))) < 0)
			e = one;
	}
	if (ledger_record(in->packages->daemon->ledger, &e, "packages.end", in->owner, in->sandbox,
			  L_STR("id", in->id),
			  L_STR("outcome", in->refusal.kind ? in->refusal.code : "installed"),
			  L_BOOL("cached", in->cached), L_STR("packages", names),
			  L_STR("installer", in->tree ? in->tree->installer : NULL),
			  L_STR("tree", in->tree ? in->tree->sha256 : NULL)) < 0 ||
	    e.code)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("owner", in->owner),
			  F_STR("why", e.msg));
}

static const char *outcome_of(const struct install *in)
{
	if (!in->refusal.kind)
		return "installed";
	return in->refusal.kind == 403 ? "blocked" : "failed";
}

void outcome_record(const struct install *in)
{
	metric_package(outcome_of(in));
	record(in);
}

void install_message(const struct install *in, char *ret, size_t size)
{
	const char *version = closure_version(in->tree->packages, in->first);

	if (closure_of_image(closure_find(in->tree->packages, in->first)))
		(void)snprintf(ret, size, "%s %s is there already: the image has it", in->first,
			       version ? version : "");
	else
		(void)snprintf(ret, size, "%s %s is installed%s%s", in->first,
			       version ? version : "", in->sandbox[0] ? " in " : "",
			       in->sandbox[0] ? in->sandbox : " for all of your sandboxes");
}

void install_json(const struct install *in, struct json *j)
{
	size_t i;
	json_t *p;

	json_key(j, "packages");
	json_array_begin(j);
	json_array_foreach(in->tree->packages, i, p)
	{
		json_object_begin(j);
		closure_members(p, j);
		json_object_end(j);
	}
	json_array_end(j);
	json_member_str(j, "language", ecosystem_name(in->eco));
	json_member_str(j, "installer", in->tree->installer);
	json_member_bool(j, "cached", in->cached);
	json_member_uint(j, "bytes", in->tree->bytes);
	json_member_uint(j, "files", in->tree->files);
	json_key(j, "seconds");
	json_double(j, (double)(in->ended_ns - in->began_ns) / (double)CLOCK_NS_PER_S, 3);
}
