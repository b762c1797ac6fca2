/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_spec.c - A SandboxSpec, from a request's JSON and back. */
#include "front/spec/sandbox_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h" /* ARRAY_SIZE */
#include "base/json.h"
#include "cell/spec.h"
#include "front/cell/command_line.h"
#include "front/cell/image_use.h"
#include "front/policy/egress_rules.h"
#include "front/spec/admission.h"
#include "front/spec/code_spec.h"
#include "front/spec/judge.h"
#include "front/spec/secret_list.h"
#include "front/support/json_alloc.h"
#include "front/support/refusal.h"
#include "store/store.h"

#define MIB (1024ull * 1024)

void sandbox_spec_default(const struct admission *a, const char *owner, struct sandbox_spec *ret)
{
	*ret = (struct sandbox_spec){ .limits = a->cells->spec.limits,
				      .idle_ms = a->cells->daemon->config.idle_ms };
	policy_lower(a, owner, ret);
	mount_use_default(a, owner, &ret->mounts);
}

static int refuse(struct refusal *r, const char *code, const char *field, const char *hint,
		  const char *message)
{
	return refusal_set(r, REFUSAL_INVALID, code, field, hint, "%.300s", message);
}

/* Its name only: whether it is in the store is found out when the policy has allowed it. */
int sandbox_spec_image(const struct admission *a, const json_t *body,
		       char ret[IMAGE_OPENER_REF_MAX], struct refusal *ret_why)
{
	const char *image = json_string_value(json_object_get(body, "image"));
	struct err e = { 0 };

	if (!image)
		return 0;
	if (image_name(a->cells, image, ret, &e) == 0)
		return 1;
	return refuse(ret_why, "image_unavailable", "image",
		      "leave it out for the daemon's own image, or name one as in python:3.11-slim",
		      e.msg);
}

static bool take_integer(const json_t *body, const char *name, uint64_t unit, uint64_t *ret)
{
	const json_t *v = json_object_get(body, name);

	if (!json_is_integer(v))
		return false;
	uint64_t value = (uint64_t)json_integer_value(v) * unit;
	bool differs = value != *ret;

	*ret = value;
	return differs;
}

static const char *const oom_names[] = {
	[CELL_OOM_PROCESS] = "process", [CELL_OOM_CELL] = "sandbox"
};

static int take_oom(const json_t *body, struct sandbox_spec *ret, struct refusal *r)
{
	const char *text = json_string_value(json_object_get(body, "oom"));
	uint32_t oom = 0;

	if (!text)
		return 0;
	while (oom < ARRAY_SIZE(oom_names) && strcmp(oom_names[oom], text) != 0)
		oom++;
	if (oom == ARRAY_SIZE(oom_names))
		return refuse(r, "invalid_value", "oom", "process or sandbox",
			      "'oom' names what ends when its memory is used up");
	ret->own_limits |= oom != ret->limits.oom;
	ret->limits.oom = oom;
	return 0;
}

/* One sandbox may be promised at most what the whole machine has. */
static int check_machine(const struct cell_limits *l, struct refusal *r)
{
	uint64_t memory = spec_machine_memory();
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (spec_check_memory(l->memory_bytes, NULL) < 0)
		return refusal_set(r, REFUSAL_INVALID, "out_of_range", "memory_mib", "ask for less",
				   "this machine has less memory: %llu MiB",
				   (unsigned long long)(memory / MIB));
	if (cpus > 0 && l->cpu_milli > (uint64_t)cpus * 1000)
		return refusal_set(r, REFUSAL_INVALID, "out_of_range", "cpus", "ask for fewer",
				   "this machine has fewer processors: %ld", cpus);
	return 0;
}

/* Fields that take a cgroup. */
static int check_without(const struct admission *a, const json_t *body, struct refusal *r)
{
	const json_t *oom = json_object_get(body, "oom");
	const char *field = json_object_get(body, "cpus") ? "cpus" :
			    oom && strcmp(json_string_value(oom), oom_names[CELL_OOM_CELL]) == 0 ?
							    "oom" :
							    NULL;

	if (!(a->cells->spec.without & CELL_WITHOUT_CGROUP) || !field)
		return 0;
	return refusal_set(r, REFUSAL_INVALID, "not_supported", field, "leave it out",
			   "this daemon runs without cgroup, and cannot enforce '%s'", field);
}

static int check_env(const json_t *env, struct refusal *r)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)env, name, value)
	{
		if (!command_env_name(name))
			return refuse(r, "invalid_value", "env",
				      "a name is not empty and has no '=' in it",
				      "'env' has a name that no variable can have");
	}
	return 0;
}

/* Names in their one form, and no more of them than the gate takes. */
static int take_egress(const json_t *body, struct sandbox_spec *ret, struct refusal *r)
{
	static struct egress_rules rules;
	struct err e = { 0 };

	ret->egress = egress_list(json_object_get(body, "egress"), &e);
	if (e.code == 0 && egress_rules(ret->egress, &rules, &e) == 0)
		return 0;
	if (e.code == -ENOMEM)
		return refusal_no_memory(r);
	return refuse(r, "invalid_value", "egress",
		      "an entry is a host name, *.DOMAIN or HOST:PORT, as in api.example.com",
		      e.msg);
}

/* Refuse a spec that the store cannot keep while the refusal can still name a field. */
static int check_size(const struct admission *a, const struct sandbox_spec *s, struct refusal *r)
{
	_buf_ struct buf b = BUF_INIT(STORE_JSON_MAX);
	struct json j;

	json_init(&j, &b);
	sandbox_spec_json(a, s, &j);
	int n = json_finish(&j);

	if (n == -ENOMEM)
		return refusal_no_memory(r);
	if (n < 0)
		return refuse(
			r, "out_of_range", "labels", "use fewer, or shorter ones",
			"'labels', 'egress', 'secrets' and the names in 'env' together are larger than 64 KiB");
	return 0;
}

int sandbox_spec_parse(const struct admission *a, const char *owner, const json_t *body,
		       struct sandbox_spec *ret, struct refusal *ret_why)
{
	const json_t *cpus = json_object_get(body, "cpus");
	struct cell_spec whole = a->cells->spec;
	struct err e = { 0 };
	uint64_t idle_s = 0;

	sandbox_spec_default(a, owner, ret);
	if (sandbox_spec_image(a, body, ret->image, ret_why) < 0)
		return -1;
	struct cell_limits *l = &ret->limits;

	ret->own_limits |= take_integer(body, "memory_mib", MIB, &l->memory_bytes);
	ret->own_limits |= take_integer(body, "disk_mib", MIB, &l->disk_bytes);
	ret->own_limits |= take_integer(body, "pids", 1, &l->pids);
	if (json_is_number(cpus)) {
		uint32_t milli = (uint32_t)(json_number_value(cpus) * 1000 + 0.5);

		ret->own_limits |= milli != l->cpu_milli;
		l->cpu_milli = milli;
	}
	if (take_oom(body, ret, ret_why) < 0 || check_without(a, body, ret_why) < 0)
		return -1;
	(void)take_integer(body, "timeout_seconds", 1, &ret->life_s);
	if (take_integer(body, "idle_seconds", 1, &idle_s))
		ret->idle_ms = idle_s * 1000;
	whole.limits = *l;
	if (spec_check(&whole, &e) < 0)
		return refuse(ret_why, "out_of_range", NULL, NULL, e.msg);
	if (ret->own_limits && check_machine(l, ret_why) < 0)
		return -1;
	if (check_env(json_object_get(body, "env"), ret_why) < 0)
		return -1;
	if (secrets_parse(json_object_get(body, "secrets"), json_object_get(body, "env"),
			  &ret->secrets, ret_why) < 0)
		return -1;
	ret->env = json_incref(json_object_get(body, "env"));
	ret->labels = json_incref(json_object_get(body, "labels"));
	if (workspace_use_parse(json_object_get(body, "workspace"), &ret->workspace, ret_why) < 0 ||
	    mount_use_parse(a, owner, json_object_get(body, "mounts"), &ret->mounts, ret_why) < 0 ||
	    take_egress(body, ret, ret_why) < 0 || code_spec_parse(a, body, ret, ret_why) < 0 ||
	    check_size(a, ret, ret_why) < 0) {
		sandbox_spec_free(ret);
		return -1;
	}
	return 0;
}

void sandbox_spec_free(struct sandbox_spec *s)
{
	workspace_use_free(&s->workspace);
	json_decref(s->env);
	json_decref(s->labels);
	json_decref(s->egress);
	json_decref(s->servers);
	json_decref(s->tools);
	json_decref(s->project);
	json_decref(s->secrets);
	s->env = s->labels = s->egress = s->servers = s->tools = s->project = s->secrets = NULL;
}

static bool same_list(const json_t *a, const json_t *b)
{
	return json_array_size(a) == 0 ? json_array_size(b) == 0 : json_equal(a, b);
}

static bool same_map(const json_t *a, const json_t *b)
{
	if (json_object_size(a) == 0 || json_object_size(b) == 0)
		return json_object_size(a) == json_object_size(b);
	return json_equal(a, b);
}

bool sandbox_spec_same(const struct sandbox_spec *a, const struct sandbox_spec *b,
		       struct refusal *ret)
{
	const struct cell_limits *l = &a->limits, *m = &b->limits;
	const struct {
		const char *field;
		bool same;
	} rows[] = {
		{ "image", strcmp(a->image, b->image) == 0 },
		{ "memory_mib", l->memory_bytes == m->memory_bytes },
		{ "cpus", l->cpu_milli == m->cpu_milli },
		{ "pids", l->pids == m->pids },
		{ "disk_mib", l->disk_bytes == m->disk_bytes },
		{ "oom", l->oom == m->oom },
		{ "timeout_seconds", a->life_s == b->life_s },
		{ "idle_seconds", a->idle_ms == b->idle_ms },
		{ "env", same_map(a->env, b->env) },
		{ "labels", same_map(a->labels, b->labels) },
		{ "egress", same_list(a->egress, b->egress) },
		{ "servers", code_same(a->servers, b->servers) },
		{ "tools", code_same(a->tools, b->tools) },
		{ "project", code_same(a->project, b->project) },
		{ "secrets", same_list(a->secrets, b->secrets) },
		{ "workspace", workspace_use_equal(&a->workspace, &b->workspace) },
		{ "mounts", mount_use_equal(&a->mounts, &b->mounts) },
	};
	_buf_ struct buf names = BUF_INIT(256);
	const char *first = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!rows[i].same) {
			(void)buf_printf(&names, "%s%s", first ? ", " : "", rows[i].field);
			first = first ? first : rows[i].field;
		}
	if (!first)
		return true;
	(void)refusal_set(ret, REFUSAL_CONFLICT, "spec_conflict", first,
			  "remove it first, take another name, or ask for the same",
			  "a sandbox of this name exists, with another value of %s",
			  buf_str(&names));
	return false;
}

static void write_map(struct json *j, const char *name, const json_t *map)
{
	const char *key;
	json_t *value;

	json_key(j, name);
	json_object_begin(j);
	json_object_foreach((json_t *)map, key, value)
		json_member_str(j, key, json_string_value(value));
	json_object_end(j);
}

void sandbox_spec_json(const struct admission *a, const struct sandbox_spec *s, struct json *j)
{
	const char *key;
	json_t *value;

	json_object_begin(j);
	json_member_str(j, "image", s->image[0] ? s->image : a->cells->images->own.name);
	if (s->digest[0])
		json_member_str(j, "image_digest", s->digest);
	json_member_uint(j, "memory_mib", s->limits.memory_bytes / MIB);
	json_key(j, "cpus");
	json_double(j, (double)s->limits.cpu_milli / 1000, 3);
	json_member_uint(j, "pids", s->limits.pids);
	json_member_uint(j, "disk_mib", s->limits.disk_bytes / MIB);
	json_member_str(j, "oom", oom_names[s->limits.oom]);
	if (s->life_s)
		json_member_uint(j, "timeout_seconds", s->life_s);
	json_member_uint(j, "idle_seconds", s->idle_ms / 1000);
	json_key(j, "env");
	json_array_begin(j);
	json_object_foreach(s->env, key, value) json_str(j, key);
	json_array_end(j);
	json_member_list(j, "secrets", s->secrets);
	write_map(j, "labels", s->labels);
	json_member_list(j, "egress", s->egress);
	if (s->policy[0])
		json_member_str(j, "policy", s->policy);
	code_spec_json(s, j);
	workspace_use_json(&s->workspace, j);
	json_key(j, "mounts");
	mount_use_json(a, &s->mounts, j);
	json_object_end(j);
}

bool labels_match(const json_t *labels, const json_t *wanted)
{
	size_t i;
	json_t *one;

	json_array_foreach((json_t *)wanted, i, one)
	{
		const char *text = json_string_value(one), *equals = strchrnul(text, '=');
		char key[256];

		(void)snprintf(key, sizeof(key), "%.*s", (int)(equals - text), text);
		const char *have = json_string_value(json_object_get(labels, key));

		if (!have || strcmp(have, *equals ? equals + 1 : "") != 0)
			return false;
	}
	return true;
}
