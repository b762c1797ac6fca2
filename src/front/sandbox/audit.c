/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.c - Writes lines of the ledger, and records of the store.
 *
 * Each event is a line of the ledger. The store has one record for each named sandbox, with its
 * present state, from which audit_open() restores the sandbox after a restart.
 */
#include "front/sandbox/audit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "client/result.h"
#include "front/cell/command_line.h"
#include "front/cell/image_use.h"
#include "front/sandbox/adopt.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/open_executions.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "front/support/time_text.h"
#include "ledger/ledger.h"
#include "store/store.h"
#include "wire/gate.h"

#define RETRY_S 5u

struct ledger *audit_ledger(const struct sandbox *s)
{
	return s->sandboxes->daemon->ledger;
}

static int refuse(struct refusal *r, const char *what, const struct err *e)
{
	(void)refusal_set(r, REFUSAL_UNAVAILABLE, "not_recorded", NULL, NULL,
			  "%s cannot be written, so nothing is done: %.200s", what, e->msg);
	r->retry_after_s = RETRY_S;
	log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("what", what), F_STR("why", e->msg));
	return -1;
}

/* ---- records ------------------------------------------------------------------------------- */

/*
 * Write the record of a sandbox. Its spec has only the names of variables, because their values may
 * be secrets.
 */
static int put(struct sandbox *s, struct err *e)
{
	char *labels = json_dumps(s->spec.labels, JSON_COMPACT | JSON_ENCODE_ANY);
	_buf_ struct buf spec = BUF_INIT(STORE_JSON_MAX);
	struct json j;

	json_init(&j, &spec);
	sandbox_spec_json(s->sandboxes->admission, &s->spec, &j);
	const struct store_sandbox record = {
		.id = s->id,
		.owner = s->owner,
		.name = s->name,
		.spec = buf_str(&spec),
		.labels = labels,
		.reason = s->reason,
		.state = (enum store_state)s->state,
		.epoch = s->epoch,
		.executions = s->executions,
		.created_at = (int64_t)s->created_ms,
		.used_at = (int64_t)s->created_ms,
		.expires_at = (int64_t)s->expires_ms,
	};
	int r = json_finish(&j) < 0 ? err_say(e, -EMSGSIZE, "the spec is too large") :
				      store_sandbox_put(s->sandboxes->daemon->store, &record, e);

	json_alloc_free(labels);
	return r;
}

static int restore(const struct store_sandbox *b, void *arg)
{
	struct sandboxes *sandboxes = arg;
	json_t *body = json_alloc_load(b->spec, strlen(b->spec), 0, NULL),
	       *names = json_incref(json_object_get(body, "env"));
	struct sandbox_spec spec;
	struct refusal why;
	size_t i;
	json_t *name;

	(void)json_object_del(body, "env");
	struct workspace_use was = workspace_use_recall(json_object_get(body, "workspace"));
	int r = body ? sandbox_spec_parse(sandboxes->admission, b->owner, body, &spec, &why) : -1;

	/* The configuration may not have its servers any more: take the rest without them. */
	if (body && r < 0) {
		(void)json_object_del(body, "servers");
		(void)json_object_del(body, "tools");
		(void)json_object_del(body, "project");
		r = sandbox_spec_parse(sandboxes->admission, b->owner, body, &spec, &why);
	}
	if (r < 0)
		sandbox_spec_default(sandboxes->admission, b->owner, &spec);
	const char *digest = json_string_value(json_object_get(body, "image_digest"));

	(void)snprintf(spec.digest, sizeof(spec.digest), "%s", digest ? digest : "");
	(void)snprintf(spec.policy, sizeof(spec.policy), "%s",
		       json_object_get(body, "policy") ?
			       json_string_value(json_object_get(body, "policy")) :
			       "");
	memcpy(spec.workspace.tree, was.tree, sizeof(was.tree));
	memcpy(spec.workspace.base, was.base, sizeof(was.base));
	if (json_array_size(names) > 0)
		spec.env = json_object();
	json_array_foreach(names, i, name)(void)
		json_object_set_new(spec.env, json_string_value(name), json_string(""));
	json_decref(names);
	json_decref(body);
	struct sandbox *s = sandbox_restore(sandboxes, b->owner, b->name, &spec);

	if (!s) {
		sandbox_spec_free(&spec);
		return 0;
	}
	(void)snprintf(s->id, sizeof(s->id), "%s", b->id);
	(void)snprintf(s->reason, sizeof(s->reason), "%s", b->reason);
	s->state = b->state == STORE_STOPPED ? SANDBOX_STOPPED : SANDBOX_LOST;
	s->epoch = b->epoch;
	s->executions = b->executions;
	s->created_ms = (uint64_t)b->created_at;
	if (time_now_ms() > s->created_ms)
		s->aged_ns = (time_now_ms() - s->created_ms) * CLOCK_NS_PER_MS;
	if (b->state == STORE_RUNNING && adopt_sandbox(sandboxes, s))
		sandbox_resume(s);
	else /* its cell is gone, and with it the use of any tree */
		s->spec.workspace.tree[0] = s->spec.workspace.base[0] = '\0';
	return 0;
}

/* ---- life ---------------------------------------------------------------------------------- */

#define FORGET_NS (3600 * CLOCK_NS_PER_S)

static void on_forget(struct timer *t)
{
	struct sandboxes *sandboxes = t->arg;
	struct err e = { 0 };

	if (store_forget_old(sandboxes->daemon->store, (int64_t)time_now_ms(), &e) < 0)
		log_event(LOG_LEVEL_ERROR, "store", F_STR("why", e.msg));
	timer_after(sandboxes->loop, t, FORGET_NS);
}

int audit_open(struct sandboxes *sandboxes, struct err *e)
{
	int r = ledger_record(sandboxes->daemon->ledger, e, "daemon.start", NULL, NULL,
			      L_STR("version", CAISSON_VERSION),
			      L_STR("image", sandboxes->cells->images->own.name),
			      L_STR("image_digest", sandboxes->cells->images->own.digest));
	if (r == 0)
		open_executions_close(sandboxes->open_executions, sandboxes);
	if (r == 0)
		r = store_sandbox_each(sandboxes->daemon->store, restore, sandboxes, e);
	if (r == 0)
		adopt_close(sandboxes);
	sandboxes->forget_timer.fn = on_forget;
	sandboxes->forget_timer.arg = sandboxes;
	if (r == 0)
		timer_after(sandboxes->loop, &sandboxes->forget_timer, FORGET_NS);
	return r;
}

void audit_close(struct sandboxes *sandboxes)
{
	struct err e = { 0 };

	if (sandboxes->daemon->ledger &&
	    (ledger_record(sandboxes->daemon->ledger, &e, "daemon.stop", NULL, NULL,
			   L_UINT("sandboxes", sandboxes->n)) < 0 ||
	     ledger_sync(sandboxes->daemon->ledger, &e) < 0))
		log_event(LOG_LEVEL_ERROR, "ledger", F_STR("why", e.msg));
	ledger_close(sandboxes->daemon->ledger);
	sandboxes->daemon->ledger = NULL;
}

/* ---- sandboxes ----------------------------------------------------------------------------- */

#define OWN_FIELDS_MAX 8

static void dump_into(struct buf *b, const json_t *v, const char *none)
{
	char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;

	(void)buf_puts(b, text ? text : none);
	json_alloc_free(text);
}

/*
 * Append an event with its own fields and then the spec of the sandbox. Lists may be long: they
 * come last, so that a line that has no room for them has the rest.
 */
static int record_spec(const struct sandbox *s, const char *event, const struct ledger_field *own,
		       size_t n, struct err *e)
{
	const struct cell_limits *l = &s->spec.limits;
	_buf_ struct buf egress = BUF_INIT(STORE_JSON_MAX), labels = BUF_INIT(STORE_JSON_MAX),
			 mounts = BUF_INIT(STORE_JSON_MAX);
	struct json j;

	dump_into(&egress, s->spec.egress, "[]");
	dump_into(&labels, s->spec.labels, "{}");
	json_init(&j, &mounts);
	mount_use_json(s->sandboxes->admission, &s->spec.mounts, &j);
	const struct ledger_field spec[] = {
		L_STR("image", s->image->name),
		L_STR("image_digest", s->image->digest),
		L_OBJECT("limits"),
		L_UINT("memory_bytes", l->memory_bytes),
		L_UINT("cpu_milli", l->cpu_milli),
		L_UINT("pids", l->pids),
		L_UINT("disk_bytes", l->disk_bytes),
		L_END,
		L_PATH("egress", buf_str(&egress)),
		L_PATH("labels", buf_str(&labels)),
		L_PATH("mounts", buf_str(&mounts)),
	};
	struct ledger_field all[OWN_FIELDS_MAX + ARRAY_SIZE(spec)];

	memcpy(all, own, n * sizeof(*own));
	memcpy(all + n, spec, sizeof(spec));
	return ledger_append(audit_ledger(s),
			     &(struct ledger_event){ .event = event,
						     .owner = s->owner,
						     .sandbox = s->name,
						     .fields = all,
						     .n = n + ARRAY_SIZE(spec) },
			     e);
}

int audit_created(struct sandbox *s, struct refusal *ret)
{
	const struct ledger_field own[] = { L_STR("id", s->id) };
	struct err e = { 0 };

	if (record_spec(s, "sandbox.create", own, ARRAY_SIZE(own), &e) < 0)
		return refuse(ret, "the ledger", &e);
	if (put(s, &e) < 0)
		return refuse(ret, "the state", &e);
	return 0;
}

static void complain_of(const char *owner, const char *sandbox, const struct err *e)
{
	log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("owner", owner), F_STR("sandbox", sandbox),
		  F_STR("why", e->msg));
}

static void complain(const struct sandbox *s, const struct err *e)
{
	complain_of(s->owner, s->name, e);
}

void audit_adopted(struct sandbox *s)
{
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "sandbox.adopt", s->owner, s->name,
			  L_STR("id", s->id), L_UINT("epoch", s->epoch)) < 0)
		complain(s, &e);
}

void audit_changed(struct sandbox *s)
{
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "sandbox.change", s->owner, s->name,
			  L_STR("id", s->id), L_STR("state", sandbox_state_name(s->state)),
			  L_STR("reason", s->reason), L_UINT("expires_at", s->expires_ms)) < 0 ||
	    put(s, &e) < 0)
		complain(s, &e);
}

void audit_removed(struct sandbox *s, const char *why)
{
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "sandbox.remove", s->owner, s->name,
			  L_STR("id", s->id), L_STR("why", why),
			  L_UINT("executions", s->executions)) < 0)
		complain(s, &e);
	if (store_sandbox_del(s->sandboxes->daemon->store, s->id, &e) < 0)
		complain(s, &e);
}

/* ---- ports --------------------------------------------------------------------------------- */

int audit_port_open(struct sandbox *s, unsigned int port, struct refusal *ret)
{
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "port.open", s->owner, s->name, L_STR("id", s->id),
			  L_UINT("port", port)) < 0)
		return refuse(ret, "the ledger", &e);
	return 0;
}

void audit_port_closed(struct sandbox *s, unsigned int port, uint64_t requests, const char *why)
{
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "port.close", s->owner, s->name, L_STR("id", s->id),
			  L_UINT("port", port), L_UINT("requests", requests),
			  L_STR("why", why)) < 0)
		complain(s, &e);
}

/* ---- egress -------------------------------------------------------------------------------- */

int audit_egress(struct sandbox *s, const json_t *list, struct refusal *ret)
{
	char *text = list ? json_dumps(list, JSON_COMPACT) : NULL;
	struct err e = { 0 };
	int r = ledger_record(audit_ledger(s), &e, "egress.change", s->owner, s->name,
			      L_STR("id", s->id), L_PATH("egress", text ? text : "[]"));

	json_alloc_free(text);
	return r < 0 ? refuse(ret, "the ledger", &e) : 0;
}

void audit_spec(struct sandbox *s)
{
	struct err e = { 0 };

	if (s->name[0] && put(s, &e) < 0)
		complain(s, &e);
}

static const char *const egress_events[] = {
	[GATE_OPENED] = "egress.open",     [GATE_CLOSED] = "egress.close",
	[GATE_REFUSED] = "egress.refuse",  [GATE_NAME_REFUSED] = "egress.name",
	[GATE_SECRET_USED] = "secret.use", [GATE_SECRET_STRAY] = "secret.stray",
	[GATE_FAILED] = "egress.fail",     [GATE_FLOOD] = "egress.flood",
};

void audit_egress_event(struct ledger *ledger, const struct audit_whose *w,
			const struct gate_event *ev)
{
	struct err e = { 0 };

	if (ev->kind == 0 || ev->kind >= GATE_KIND_MAX_)
		return;
	if (ledger_record(ledger, &e, egress_events[ev->kind], w->owner, w->sandbox,
			  L_STR("id", w->id), L_STR("host", ev->host), L_UINT("port", ev->port),
			  L_STR("address", ev->address), L_STR("why", ev->why),
			  L_UINT("bytes_out", ev->up), L_UINT("bytes_in", ev->down),
			  L_UINT("count", ev->count)) < 0)
		complain_of(w->owner, w->sandbox, &e);
}

/* ---- executions ---------------------------------------------------------------------------- */

int audit_begin(struct sandbox *s, const char *id, const char *what, const char *text, size_t len,
		uint64_t timeout_ms, struct refusal *ret)
{
	const struct ledger_field own[] = { L_STR("id", id), L_STR("what", what),
					    L_SHA256("code_sha256", text, len),
					    L_UINT("timeout_ms", timeout_ms) };
	const struct ledger_event event = { .event = "execution.begin",
					    .owner = s->owner,
					    .sandbox = s->name,
					    .fields = own,
					    .n = ARRAY_SIZE(own) };
	struct err e = { 0 };
	/* A sandbox without a name was made for this execution alone, and no other line has its
	 * spec. */
	int r = s->name[0] ? ledger_append(audit_ledger(s), &event, &e) :
			     record_spec(s, "execution.begin", own, ARRAY_SIZE(own), &e);

	return r < 0 ? refuse(ret, "the ledger", &e) : 0;
}

void audit_refused(struct sandbox *s, const char *id, const char *what, const struct refusal *why)
{
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "execution.end", s->owner, s->name, L_STR("id", id),
			  L_STR("what", what), L_STR("status", "refused"),
			  L_STR("cause", why->code)) < 0)
		complain(s, &e);
}

int audit_command(struct sandbox *s, const char *id, const char *what,
		  const struct command_line *line, uint64_t timeout_ms, struct refusal *ret)
{
	_buf_ struct buf words = BUF_INIT(INIT_BLOB_MAX);

	for (char **word = line->argv; *word; word++)
		(void)buf_append(&words, *word, strlen(*word) + 1);
	return audit_begin(s, id, what, buf_str(&words), words.len, timeout_ms, ret);
}

void audit_end(struct sandbox *s, const char *id, const char *what, const struct result *r,
	       const struct outcome *o)
{
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "execution.end", s->owner, s->name, L_STR("id", id),
			  L_STR("what", what), L_STR("status", result_status_name(r->status)),
			  L_STR("cause", result_cause_name(r->cause)),
			  L_INT("exit_code", r->exit_code), L_OBJECT("usage"),
			  L_UINT("wall_ns", o->wall_ns), L_UINT("cpu_ns", o->usage.cpu_ns),
			  L_UINT("memory_peak", o->usage.memory_peak),
			  L_UINT("stdout_bytes", o->stdout_bytes),
			  L_UINT("stderr_bytes", o->stderr_bytes), L_END) < 0)
		complain(s, &e);
}

void audit_dropped(struct sandbox *s, const char *id, const char *what)
{
	struct err e = { 0 };

	if (ledger_record(audit_ledger(s), &e, "execution.end", s->owner, s->name, L_STR("id", id),
			  L_STR("what", what), L_STR("status", "removed"),
			  L_STR("cause", "signal")) < 0)
		complain(s, &e);
}

/* ---- files --------------------------------------------------------------------------------- */

int audit_file_begin(const struct audit_file *a, const char *path, const char *to,
		     struct refusal *ret)
{
	struct err e = { 0 };

	if (ledger_record(a->ledger, &e, "file.begin", a->owner, a->sandbox, L_STR("id", a->id),
			  L_STR("op", a->op), L_PATH("path", path), L_PATH("to", to)) < 0)
		return refuse(ret, "the ledger", &e);
	return 0;
}

void audit_file_end(const struct audit_file *a, const char *outcome, uint64_t bytes,
		    const char *sha256)
{
	struct err e = { 0 };

	if (ledger_record(a->ledger, &e, "file.end", a->owner, a->sandbox, L_STR("id", a->id),
			  L_STR("op", a->op), L_STR("outcome", outcome), L_UINT("bytes", bytes),
			  L_STR("content_sha256", sha256)) < 0)
		complain_of(a->owner, a->sandbox, &e);
}
