/* SPDX-License-Identifier: Apache-2.0 */
/* handle_health.c - GET /health. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/cell/image_use.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/packages/packages.h"
#include "front/policy/policy.h"
#include "front/support/time_text.h"

#define HEALTH_MAX 16384u

static const char *status_of(const struct services *services)
{
	if (services->daemon->draining)
		return "draining";
	if (services->cells->link->link.watch.fd < 0 ||
	    services->cells->images->own.pool.problem[0])
		return "broken";
	return services->cells->images->own.supply.settled ? "healthy" : "starting";
}

/* Over TCP. */
static const char *callers_of(const struct config *c)
{
	return c->token_file ? "tokens" : c->no_token ? "everyone" : "starter";
}

static void write_isolation(const struct services *services, struct json *j)
{
	json_member_object(j, "isolation");
	json_member_str(j, "level", services->cells->spec.without ? "reduced" : "full");
	json_member_str(j, "runtime", "native");
	json_member_bool(j, "seccomp", !(services->cells->spec.without & CELL_WITHOUT_SECCOMP));
	json_member_bool(j, "landlock", !(services->cells->spec.without & CELL_WITHOUT_LANDLOCK));
	json_member_bool(j, "cgroup", !(services->cells->spec.without & CELL_WITHOUT_CGROUP));
	json_member_object(j, "front");
	json_member_bool(j, "own_user", services->daemon->jail.user);
	json_member_bool(j, "seccomp", services->daemon->jail.seccomp);
	json_member_bool(j, "landlock", services->daemon->jail.landlock);
	json_object_end(j);
	json_object_end(j);
}

static void write_pool(const struct services *services, struct json *j)
{
	const struct pool_row *py = &services->cells->images->own.pool.rows[POOL_PYTHON];
	const struct pool_row *plain = &services->cells->images->own.pool.rows[POOL_PLAIN];

	json_member_object(j, "pool");
	json_member_uint(j, "kernels_ready", py->n_ready);
	json_member_uint(j, "cells_ready", plain->n_ready);
	json_member_uint(j, "making", py->n_making + plain->n_making);
	json_member_uint(j, "target", pool_target(&services->cells->images->own.pool));
	json_member_bool(j, "zygote", services->cells->images->own.supply.zygote != 0);
	if (services->cells->images->own.supply.problem[0])
		json_member_str(j, "zygote_problem", services->cells->images->own.supply.problem);
	if (services->cells->images->own.supply.preload_failed[0])
		json_member_str(j, "preload_failed",
				services->cells->images->own.supply.preload_failed);
	json_object_end(j);
}

/* Without the error in the file: anybody may ask, and the log has it. */
static void write_policy(const struct services *services, struct json *j)
{
	const struct policy_now *now = services->sandboxes->admission->policy;

	if (!now->rules)
		return;
	json_member_object(j, "policy");
	json_member_str(j, "sha256", now->rules->sha256);
	time_json(j, "loaded_at", now->loaded_ms);
	json_member_bool(j, "stale", now->stale);
	if (now->stale) {
		json_member_uint(j, "line", now->wrong.line);
		json_member_uint(j, "column", now->wrong.column);
	}
	json_object_end(j);
}

void handle_health(struct services *services, struct http_exchange *x)
{
	const char *status = status_of(services);
	struct reply answer;
	struct json *j = reply_object(&answer, HEALTH_MAX);

	json_member_str(j, "status", status);
	json_member_str(j, "version", CAISSON_VERSION);
	json_key(j, "uptime_seconds");
	json_double(
		j, (double)(clock_now_ns() - services->daemon->started_ns) / (double)CLOCK_NS_PER_S,
		3);
	json_member_str(j, "listen", services->daemon->config.listen);
	json_member_str(j, "callers", callers_of(&services->daemon->config));
	write_isolation(services, j);
	write_pool(services, j);
	write_policy(services, j);
	json_key(j, "packages");
	packages_health(services->packages, j);
	json_member_object(j, "sandboxes");
	json_member_uint(j, "live", services->sandboxes->n);
	json_member_uint(j, "busy", services->sandboxes->n_busy);
	json_member_uint(j, "queued", services->sandboxes->n_queued - services->sandboxes->n_busy);
	json_member_uint(j, "max", services->daemon->config.max_sandboxes);
	json_object_end(j);
	json_member_array(j, "languages");
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (services->cells->images->own.has_language[i])
			json_str(j, languages[i].name);
	json_array_end(j);
	reply_end(&answer, x, strcmp(status, "healthy") == 0 ? 200 : 503);
}
