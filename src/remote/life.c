/* SPDX-License-Identifier: Apache-2.0 */
/* life.c - `caisson create`, `rm`, `stop`, `kill`: the life of a sandbox. */
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/sandbox_path.h"
#include "remote/verb.h"

#define MIB (UINT64_C(1) << 20)

/* ---- create -------------------------------------------------------------------------------- */

/* Whole units only: a daemon that is asked for MiB must not be given less than was typed. */
static int put_units(json_t *body, const char *key, const char *option, uint64_t value,
		     uint64_t unit, const char *what, struct err *e)
{
	if (value == 0 || value % unit)
		return err_say(e, -EINVAL, "%s: must be a whole number of %s, and at least one",
			       option, what);
	(void)json_object_set_new(body, key, json_integer((json_int_t)(value / unit)));
	return 0;
}

static int put_rules(const struct remote_options *o, json_t *body, struct err *e)
{
	json_error_t wrong;
	json_t *rules;

	if (!o->tool_rules)
		return 0;
	rules = json_loads(o->tool_rules, JSON_REJECT_DUPLICATES, &wrong);
	if (!rules)
		return err_say(e, -EINVAL, "--tool-rules: not JSON at character %d: %s",
			       wrong.position, wrong.text);
	(void)json_object_set_new(body, "tools", rules);
	return 0;
}

/* Options with a unit: the daemon takes whole ones. */
static int put_numbers(const struct remote_options *o, json_t *body, struct err *e)
{
	const struct {
		const char *key, *option;
		uint64_t value, unit;
		const char *what;
	} rows[] = {
		{ "memory_mib", "--memory", o->memory_bytes, MIB, "MiB" },
		{ "disk_mib", "--disk", o->disk_bytes, MIB, "MiB" },
		{ "timeout_seconds", "--timeout", o->timeout_ms, 1000, "seconds" },
		{ "idle_seconds", "--idle", o->idle_ms, 1000, "seconds" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (options_given(&o->parsed, rows[i].option) &&
		    put_units(body, rows[i].key, rows[i].option, rows[i].value, rows[i].unit,
			      rows[i].what, e) < 0)
			return e->code;
	if (options_given(&o->parsed, "--cpus"))
		(void)json_object_set_new(body, "cpus", json_real((double)o->cpus_milli / 1000));
	if (options_given(&o->parsed, "--pids"))
		(void)json_object_set_new(body, "pids", json_integer((json_int_t)o->pids));
	return 0;
}

/* Members whose option was not given are left out. */
static json_t *make_spec(const struct remote_options *o)
{
	return json_pack("{s:s, s:s*, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "name",
			 o->rest[0], "image", o->image, "workspace", o->workspace, "env",
			 o->env[0] ? remote_options_pairs(o->env) : NULL, "labels",
			 o->label[0] ? remote_options_pairs(o->label) : NULL, "secrets",
			 remote_options_list(o->secrets, false), "egress",
			 remote_options_list(o->egress, true), "mounts",
			 remote_options_list(o->mounts, true), "servers",
			 remote_options_list(o->server, false));
}

static void print_name(const struct session *s, const json_t *made)
{
	(void)made;
	(void)printf("%s\n", s->o.rest[0]);
}

int remote_create(struct session *s)
{
	json_t *body = make_spec(&s->o);
	struct err e = { 0 };

	if (put_numbers(&s->o, body, &e) < 0 || put_rules(&s->o, body, &e) < 0) {
		json_decref(body);
		return problem_ours(&s->problem, &e);
	}
	return session_show(s, api_json(&s->api, "POST", "/v1/sandboxes", body, &s->problem),
			    print_name);
}

/* ---- rm, stop, kill: the same for each of several names ------------------------------------ */

/* One call for one sandbox. With --json the daemon's answer, or {"name","removed":true}. */
static int act(struct session *s, const char *name, const char *method, const char *rest,
	       json_t *body, uint64_t timeout_ms)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct err e = { 0 };

	if (sandbox_name_check(name, &e) < 0)
		return problem_ours(&s->problem, &e);
	url_sandbox(&path, name, rest);
	json_t *answer = api_json_ms(&s->api, method, buf_str(&path), json_incref(body), timeout_ms,
				     &s->problem);

	if (!answer)
		return -1;
	if (json_object_size(answer) == 0) {
		(void)json_object_set_new(answer, "name", json_string(name));
		(void)json_object_set_new(answer, "removed", json_true());
	}
	if (s->o.json)
		session_json(answer);
	else
		(void)printf("%s\n", name);
	json_decref(answer);
	return 0;
}

static int act_on_all(struct session *s, const char *method, const char *rest)
{
	uint64_t timeout = 0;
	json_t *body = NULL;

	if (options_given(&s->o.parsed, "--grace")) {
		body = json_pack("{s:o}", "grace_seconds", remote_options_seconds(s->o.grace_ms));
		timeout = s->o.grace_ms + API_TIMEOUT_MS;
	}
	for (int i = 0; i < s->o.n_rest; i++) {
		if (act(s, s->o.rest[i], method, rest, body, timeout) == 0)
			continue;
		if (!(s->o.force && s->problem.status == 404))
			session_fail(s);
		if (s->problem.exit_code == EXIT_NO_DAEMON)
			break;
	}
	json_decref(body);
	return 0;
}

int remote_rm(struct session *s)
{
	return act_on_all(s, "DELETE", "");
}

int remote_stop(struct session *s)
{
	return act_on_all(s, "POST", "/stop");
}

int remote_kill(struct session *s)
{
	return act_on_all(s, "POST", "/kill");
}
