/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jkernel.c - A sandbox as a Jupyter kernel: its id, its model, its restart and its end.
 *
 * In this directory "kernel" is what a Jupyter client sees, and the process that runs the code
 * (struct kernel of cell/cell.h) is its interpreter.
 *
 * A restart kills the interpreter. Until the interpreter is dead and the execution that it ran is
 * answered, no request begins; then the restart is reported, after the sandbox has put the
 * execution away.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "front/cell/cell.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/name.h"
#include "front/support/time_text.h"

/* ---- names --------------------------------------------------------------------------------- */

static void with_dashes(const char hex[33], char id[JUPYTER_ID_MAX])
{
	(void)snprintf(id, JUPYTER_ID_MAX, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
		       hex + 16, hex + 20);
}

void jupyter_uuid(char id[JUPYTER_ID_MAX])
{
	char hex[33];

	random_id(hex);
	hex[12] = '4'; /* RFC 9562: random */
	hex[16] = "89ab"[hex[16] & 3];
	with_dashes(hex, id);
}

static bool is_uuid(const char *s)
{
	for (size_t i = 0; i < JUPYTER_ID_MAX - 1; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s[i] != '-' : !s[i] || !strchr("0123456789abcdef", s[i]))
			return false;
	}
	return s[JUPYTER_ID_MAX - 1] == '\0';
}

void jkernel_id(const struct sandbox *s, char id[JUPYTER_ID_MAX])
{
	if (is_uuid(s->name))
		memcpy(id, s->name, JUPYTER_ID_MAX);
	else
		with_dashes(s->id, id);
}

bool jkernel_is(const struct sandbox *s, const char *owner)
{
	return s->name[0] && s->state == SANDBOX_RUNNING && !s->ending &&
	       strcmp(s->owner, owner) == 0 && !(s->jupyter && s->jupyter->ended);
}

bool jkernel_is_made_here(const struct sandbox *s)
{
	return is_uuid(s->name) && json_object_get(s->spec.labels, JUPYTER_LABEL);
}

struct sandbox *jkernel_find(struct sandboxes *sandboxes, const char *owner, const char *id)
{
	for (struct sandbox *s = sandboxes->first; s; s = s->next) {
		char other[JUPYTER_ID_MAX];

		if (!jkernel_is(s, owner))
			continue;
		jkernel_id(s, other);
		if (strcmp(id, other) == 0)
			return s;
	}
	return NULL;
}

const char *jkernel_spec_name(const struct language *l)
{
	static const char *const names[LANG_MAX_] = { "python3", "bash", "javascript", "ir" };

	return names[l->id];
}

const struct language *jkernel_language(const struct sandbox *s)
{
	const char *name = json_string_value(json_object_get(s->spec.labels, JUPYTER_LABEL));

	if (s->jupyter)
		return s->jupyter->language;
	for (size_t i = 0; name && i < LANG_MAX_; i++)
		if (strcmp(name, jkernel_spec_name(&languages[i])) == 0)
			return &languages[i];
	return &languages[LANG_PYTHON];
}

/* ---- the model ----------------------------------------------------------------------------- */

void jupyter_stamp(struct json *j, const char *key, uint64_t ms)
{
	char text[STAMP_MAX], stamp[STAMP_MAX + 4];

	time_text(text, ms); /* "2026-01-31T23:59:59.123Z" */
	(void)snprintf(stamp, sizeof(stamp), "%.23s000Z", text);
	json_member_str(j, key, stamp);
}

static const char *state_of(const struct sandbox *s)
{
	if (s->jupyter && s->jupyter->restarting)
		return "restarting";
	if (!s->cell || !s->cell->sealed)
		return "starting";
	return s->running ? "busy" : "idle";
}

void jkernel_json(const struct sandbox *s, struct json *j)
{
	const struct jkernel *k = s->jupyter;
	char id[JUPYTER_ID_MAX];

	jkernel_id(s, id);
	json_object_begin(j);
	json_member_str(j, "id", id);
	json_member_str(j, "name", jkernel_spec_name(jkernel_language(s)));
	jupyter_stamp(j, "last_activity",
		      k && k->active_ms > s->created_ms ? k->active_ms : s->created_ms);
	json_member_str(j, "execution_state", state_of(s));
	json_member_uint(j, "connections", k ? k->n_clients : 0);
	json_object_end(j);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Answer the request for the restart, and begin the requests that came since. */
static void on_restarted(struct deferred *d)
{
	struct jkernel *k = d->arg;
	void (*fn)(struct jkernel *, void *) = k->restarted;

	k->restarting = false;
	k->restarted = NULL;
	if (fn)
		fn(k, k->restarted_arg);
	jrequest_next(k);
}

struct jkernel *jkernel_of(struct sandbox *s)
{
	struct jkernel *k = s->jupyter;

	if (k)
		return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->sandbox = s;
	k->language = jkernel_language(s);
	k->last = &k->first;
	k->active_ms = time_now_ms();
	k->report = (struct deferred){ .fn = on_restarted, .arg = k };
	s->jupyter = k;
	return k;
}

static void report_restart(struct jkernel *k)
{
	if (k->restarting && k->old_over && !k->cut)
		loop_defer(k->sandbox->sandboxes->loop, &k->report);
}

void jkernel_cut_ended(struct jkernel *k)
{
	k->cut = NULL;
	report_restart(k);
}

/* NULL: none, or it cannot be killed yet. */
static struct kernel *interpreter_of(const struct jkernel *k)
{
	struct cell *r = k->sandbox->cell;
	struct kernel *i = r ? &r->kernels[k->language->id] : NULL;

	return i && i->state != KERNEL_EMPTY && i->attached && i->pid > 0 ? i : NULL;
}

static void end_interpreter(struct jkernel *k)
{
	struct kernel *i = interpreter_of(k);

	if (!i)
		return;
	cell_signal_group(k->sandbox->cell, i->pid, SIGKILL);
	if (i->state == KERNEL_IDLE)
		i->state = KERNEL_ENDING; /* the next execution must not get it */
}

void jkernel_restart(struct jkernel *k, void (*fn)(struct jkernel *k, void *arg), void *arg)
{
	jrequest_abort_rest(k);
	k->count = 0;
	if (k->restarting) /* another client has asked for the same restart */
		return;
	k->restarted = fn;
	k->restarted_arg = arg;
	k->restarting = true;
	k->old_over = !interpreter_of(k);
	k->cut = k->first && k->first->running ? k->first : NULL;
	if (k->cut && k->first->running->phase == X_QUEUED)
		execution_interrupt(k->first->running); /* the request is gone then */
	if (k->old_over)
		report_restart(k);
	else
		end_interpreter(k);
}

void jupyter_kernel_ended(struct sandbox *s, const struct language *l)
{
	struct jkernel *k = s->jupyter;

	if (!k || k->language != l)
		return;
	k->count = 0;
	if (!k->restarting && !k->ended)
		jkernel_status(k, NULL, "restarting"); /* by itself: the next code gets a new one */
	k->old_over = true;
	report_restart(k);
}

void jupyter_cell_gone(struct sandbox *s)
{
	struct jkernel *k = s->jupyter;

	if (!k || !k->restarting)
		return;
	k->old_over = true;
	report_restart(k);
}

/* Tell all clients, and drop their requests. */
static void shut(struct jkernel *k)
{
	void (*fn)(struct jkernel *, void *) = k->restarted;

	jkernel_status(k, NULL, "dead");
	while (k->clients)
		jclient_end(k->clients, 1001, "the kernel was ended");
	loop_undefer(k->sandbox->sandboxes->loop, &k->report);
	k->restarting = false;
	k->restarted = NULL;
	k->cut = NULL;
	if (fn)
		fn(NULL, k->restarted_arg);
	jrequest_free_all(k);
	jbacklog_free(k);
	jbackground_free(k);
	jhistory_free(&k->history);
	k->count = 0;
}

void jkernel_end(struct sandbox *s, const char *why)
{
	struct jkernel *k = jkernel_is_made_here(s) ? NULL : jkernel_of(s);

	if (!k) {
		sandbox_end(s, why);
		return;
	}
	k->ended = true;
	shut(k);
	end_interpreter(k);
}

void jupyter_sandbox_ended(struct sandbox *s)
{
	struct jkernel *k = s->jupyter;

	if (!k)
		return;
	shut(k);
	s->jupyter = NULL;
	free(k);
}
