/* SPDX-License-Identifier: Apache-2.0 */
/* life.c - `caisson create`, `rm`, `stop`, `kill`: the life of a sandbox. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "remote/list.h"
#include "remote/place.h"
#include "remote/session.h"
#include "remote/verbs.h"

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

static int put_servers(const struct remote_options *o, json_t *body, struct err *e)
{
	json_t *names = remote_options_list(o->server, false), *rules;
	json_error_t wrong;

	if (names)
		(void)json_object_set_new(body, "servers", names);
	if (!o->tool_rules)
		return 0;
	rules = json_loads(o->tool_rules, JSON_REJECT_DUPLICATES, &wrong);
	if (!rules)
		return err_say(e, -EINVAL, "--tool-rules: not JSON at character %d: %s",
			       wrong.position, wrong.text);
	(void)json_object_set_new(body, "tools", rules);
	return 0;
}

static int make_spec(const struct remote_options *o, json_t *body, struct err *e)
{
	int r = 0;

	(void)json_object_set_new(body, "name", json_string(o->rest[0]));
	if (o->image)
		(void)json_object_set_new(body, "image", json_string(o->image));
	if (o->workspace)
		(void)json_object_set_new(body, "workspace", json_string(o->workspace));
	if (options_given(&o->parsed, "--memory"))
		r = put_units(body, "memory_mib", "--memory", o->memory_bytes, MIB, "MiB", e);
	if (r == 0 && options_given(&o->parsed, "--disk"))
		r = put_units(body, "disk_mib", "--disk", o->disk_bytes, MIB, "MiB", e);
	if (r == 0 && options_given(&o->parsed, "--timeout"))
		r = put_units(body, "timeout_seconds", "--timeout", o->timeout_ms, 1000, "seconds",
			      e);
	if (r == 0 && options_given(&o->parsed, "--idle"))
		r = put_units(body, "idle_seconds", "--idle", o->idle_ms, 1000, "seconds", e);
	if (options_given(&o->parsed, "--cpus"))
		(void)json_object_set_new(body, "cpus", json_real((double)o->cpus_milli / 1000));
	if (options_given(&o->parsed, "--pids"))
		(void)json_object_set_new(body, "pids", json_integer((json_int_t)o->pids));
	if (o->env[0])
		(void)json_object_set_new(body, "env", remote_options_pairs(o->env));
	if (o->secrets[0])
		(void)json_object_set_new(body, "secrets", remote_options_list(o->secrets, false));
	if (o->egress[0])
		(void)json_object_set_new(body, "egress", remote_options_list(o->egress, true));
	if (o->mounts[0])
		(void)json_object_set_new(body, "mounts", remote_options_list(o->mounts, true));
	if (o->label[0])
		(void)json_object_set_new(body, "labels", remote_options_pairs(o->label));
	if (r == 0)
		r = put_servers(o, body, e);
	return r;
}

int verb_create(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_CREATE,
		.usage = "create NAME [OPTIONS]",
		.text = "Makes a sandbox that keeps files and variables under NAME until it is removed, and\n"
			"prints its name. One that is there already with the same options is fine.\n",
		.min = 1,
		.max = 1,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		json_t *body = json_object(), *made = NULL;
		struct err e = { 0 };

		if (place_check_name(s.o.rest[0], &e) < 0 || make_spec(&s.o, body, &e) < 0)
			session_fail_err(&s, &e);
		else if (!(made = api_json(&s.api, "POST", "/v1/sandboxes", body, &s.problem)))
			session_fail(&s);
		else if (s.o.json)
			session_json(made);
		else
			(void)printf("%s\n", s.o.rest[0]);
		json_decref(made);
		json_decref(body);
	}
	return session_end(&s);
}

/* ---- rm, stop, kill: the same for each of several names ------------------------------------ */

/* One call for one sandbox. With --json what the daemon said, or {"name","removed":true}. */
static int act(struct session *s, const char *name, const char *method, const char *rest,
	       json_t *body, uint64_t timeout_ms)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct api_answer answer = { 0 };
	struct err e = { 0 };

	if (place_check_name(name, &e) < 0)
		return problem_ours(&s->problem, &e);
	url_sandbox(&path, name, rest);
	struct api_call call = {
		.method = method, .path = buf_str(&path), .json = body, .timeout_ms = timeout_ms
	};
	int r = api_call(&s->api, &call, &answer, &s->problem);

	if (r == 0 && !s->o.json) {
		(void)printf("%s\n", name);
	} else if (r == 0) {
		json_t *root = json_loadb(buf_str(&answer.body), answer.body.len, 0, NULL);

		root = root ? root : json_pack("{s:s, s:b}", "name", name, "removed", 1);
		session_json(root);
		json_decref(root);
	}
	api_answer_free(&answer);
	return r;
}

static int act_on_all(const struct form *form, const char *method, const char *rest, int argc,
		      char **argv)
{
	struct session s;

	if (session_begin(&s, form, argc, argv)) {
		uint64_t timeout = 0;
		json_t *body = NULL;

		if (options_given(&s.o.parsed, "--grace")) {
			body = json_pack("{s:f}", "grace_seconds", (double)s.o.grace_ms / 1000);
			if (s.o.grace_ms % 1000 == 0)
				(void)json_object_set_new(
					body, "grace_seconds",
					json_integer((json_int_t)(s.o.grace_ms / 1000)));
			timeout = s.o.grace_ms + API_TIMEOUT_MS;
		}
		for (int i = 0; i < s.o.n_rest; i++) {
			if (act(&s, s.o.rest[i], method, rest, body, timeout) == 0)
				continue;
			if (!(s.o.force && s.problem.status == 404))
				session_fail(&s);
			if (s.problem.exit_code == EXIT_NO_DAEMON)
				break;
		}
		json_decref(body);
	}
	return session_end(&s);
}

int verb_rm(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_RM,
		.usage = "rm [-f] NAME...",
		.text = "Removes sandboxes, with everything that runs in them and all their files.\n",
		.min = 1,
		.max = -1,
	};

	return act_on_all(&form, "DELETE", "", argc, argv);
}

int verb_stop(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_STOP,
		.usage = "stop [--grace TIME] NAME...",
		.text = "Asks everything in the sandbox to end (SIGTERM), ends it after the grace, and keeps the\n"
			"name as stopped. Its variables and files are gone.\n",
		.min = 1,
		.max = -1,
	};

	return act_on_all(&form, "POST", "/stop", argc, argv);
}

int verb_kill(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_KILL,
		.usage = "kill NAME...",
		.text = "Ends everything in the sandbox at once and keeps the name as stopped.\n",
		.min = 1,
		.max = -1,
	};

	return act_on_all(&form, "POST", "/kill", argc, argv);
}
