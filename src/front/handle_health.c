/* SPDX-License-Identifier: Apache-2.0 */
/* handle_health.c - GET /health, and POST /pip_install as far as it goes today. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "front/front.h"
#include "front/handlers.h"
#include "front/metrics.h"
#include "front/reply.h"
#include "front/request.h"
#include "front/serve.h"
#include "net/http.h"

#define HEALTH_MAX 16384u
#define PACKAGE_MAX 128

static const char *word(const struct front *f)
{
	if (f->draining)
		return "draining";
	if (f->link.watch.fd < 0 || f->pool.problem[0])
		return "broken";
	return f->nursery.settled ? "healthy" : "starting";
}

/* What stands between the code and the machine, in one word: all layers, or fewer by choice. */
static const char *isolation(const struct front *f)
{
	return f->spec.without ? "reduced" : "full";
}

static void write_isolation(const struct front *f, struct json *j)
{
	json_key(j, "isolation");
	json_object_begin(j);
	json_member_str(j, "level", isolation(f));
	json_member_str(j, "runtime", "native");
	json_member_bool(j, "seccomp", !(f->spec.without & CELL_WITHOUT_SECCOMP));
	json_member_bool(j, "landlock", !(f->spec.without & CELL_WITHOUT_LANDLOCK));
	json_member_bool(j, "cgroup", !(f->spec.without & CELL_WITHOUT_CGROUP));
	json_key(j, "front");
	json_object_begin(j);
	json_member_bool(j, "own_user", f->jail.user);
	json_member_bool(j, "seccomp", f->jail.seccomp);
	json_member_bool(j, "landlock", f->jail.landlock);
	json_object_end(j);
	json_object_end(j);
}

static void write_pool(const struct front *f, struct json *j)
{
	const struct pool_shelf *py = &f->pool.shelves[POOL_PYTHON];
	const struct pool_shelf *plain = &f->pool.shelves[POOL_PLAIN];

	json_key(j, "pool");
	json_object_begin(j);
	json_member_uint(j, "kernels_ready", py->n_ready);
	json_member_uint(j, "cells_ready", plain->n_ready);
	json_member_uint(j, "making", py->n_making + plain->n_making);
	json_member_uint(j, "target", pool_target(&f->pool));
	json_member_bool(j, "zygote", f->nursery.zygote != 0);
	if (f->nursery.problem[0])
		json_member_str(j, "zygote_problem", f->nursery.problem);
	if (f->nursery.preload_failed[0])
		json_member_str(j, "preload_failed", f->nursery.preload_failed);
	json_object_end(j);
}

void handle_health(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	_buf_ struct buf b = BUF_INIT(HEALTH_MAX);
	const char *status = word(f);
	struct json j;

	(void)p;
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "status", status);
	json_member_str(&j, "version", CAISSON_VERSION);
	json_key(&j, "uptime_seconds");
	json_double(&j, (double)(clock_now_ns() - f->started_ns) / (double)CLOCK_NS_PER_S, 3);
	json_member_str(&j, "listen", f->config.listen);
	write_isolation(f, &j);
	write_pool(f, &j);
	json_key(&j, "sandboxes");
	json_object_begin(&j);
	json_member_uint(&j, "live", f->n_sandboxes);
	json_member_uint(&j, "busy", f->n_busy);
	json_member_uint(&j, "queued", f->n_queued - f->n_busy);
	json_member_uint(&j, "max", f->config.max_sandboxes);
	json_object_end(&j);
	json_key(&j, "languages");
	json_array_begin(&j);
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (f->has_language[i])
			json_str(&j, languages[i].name);
	json_array_end(&j);
	json_object_end(&j);
	if (json_finish(&j) < 0)
		reply_error(x, 500, "internal", NULL, NULL, "the answer could not be written");
	else
		reply_json(x, strcmp(status, "healthy") == 0 ? 200 : 503, &b);
}

/* As PEP 503: lower case, runs of "-_." are one "-". */
static void canonical(const char *name, char out[PACKAGE_MAX + 1])
{
	size_t n = 0;

	for (; *name && n < PACKAGE_MAX; name++) {
		char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;

		if (c == '_' || c == '.')
			c = '-';
		if (c == '-' && n > 0 && out[n - 1] == '-')
			continue;
		out[n++] = c;
	}
	out[n] = '\0';
}

void handle_pip_install(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *body = request_json(x, visit_of(x)->route);
	char name[PACKAGE_MAX + 1];
	bool blocked = false;

	(void)p;
	if (!body)
		return;
	canonical(json_string_value(json_object_get(body, "package")), name);
	json_decref(body);
	for (size_t i = 0; f->config.blocked_packages[i]; i++)
		blocked |= strcmp(f->config.blocked_packages[i], name) == 0;
	metric_package(blocked ? "blocked" : "unsupported");
	if (blocked)
		reply_error(x, 403, "package_blocked", "package", "see BLOCKED_PACKAGES",
			    "the package '%s' is blocked", name);
	else
		reply_error(x, 501, "not_implemented", NULL,
			    "what the image has is there: numpy and pandas where python3-numpy and "
			    "python3-pandas are installed on this machine",
			    "this version can not install packages yet");
}
