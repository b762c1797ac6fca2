/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - A sandbox as a kernel: its id, its model, its restart and its end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "front/cell/cell.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/execution.h"
#include "front/support/front.h"
#include "front/support/random_id.h"
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

bool jkernel_is_ours(const struct sandbox *s)
{
	return is_uuid(s->name) && json_object_get(s->spec.labels, JUPYTER_LABEL);
}

struct sandbox *jkernel_find(struct front *f, const char *owner, const char *id)
{
	for (struct sandbox *s = f->sandboxes; s; s = s->next) {
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
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	char text[40] = "1970-01-01T00:00:00";

	if (gmtime_r(&t, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), ".%03u000Z",
		       (unsigned int)(ms % 1000));
	json_member_str(j, key, text);
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
	json_member_uint(j, "connections", k ? k->n_lines : 0);
	json_object_end(j);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Whoever asked for it hears of it, and what was asked since has its turn. */
static void on_tell(struct deferred *d)
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
	k->tell = (struct deferred){ .fn = on_tell, .arg = k };
	s->jupyter = k;
	return k;
}

static void tell_restarted(struct jkernel *k)
{
	if (k->restarting && k->old_over && !k->cut)
		loop_defer(&k->sandbox->f->loop, &k->tell);
}

void jkernel_cut_ended(struct jkernel *k)
{
	k->cut = NULL;
	tell_restarted(k);
}

static bool can_end(const struct kernel *kernel)
{
	return kernel && kernel->state != KERNEL_EMPTY && kernel->attached && kernel->pid > 0;
}

static void end_interpreter(struct jkernel *k)
{
	struct cell *r = k->sandbox->cell;
	struct kernel *kernel = r ? &r->kernels[k->language->id] : NULL;

	if (!can_end(kernel))
		return;
	cell_signal_group(r, kernel->pid, SIGKILL);
	if (kernel->state == KERNEL_IDLE)
		kernel->state = KERNEL_ENDING; /* whoever comes next must not be given it */
}

void jkernel_restart(struct jkernel *k, void (*fn)(struct jkernel *k, void *arg), void *arg)
{
	struct cell *r = k->sandbox->cell;
	struct kernel *kernel = r ? &r->kernels[k->language->id] : NULL;

	jrequest_abort_rest(k);
	k->count = 0;
	if (k->restarting) /* by another: it is the same one */
		return;
	k->restarted = fn;
	k->restarted_arg = arg;
	k->restarting = true;
	k->old_over = !can_end(kernel);
	k->cut = k->first && k->first->running ? k->first : NULL;
	if (k->cut && k->first->running->phase == X_QUEUED)
		execution_interrupt(k->first->running); /* the request is gone then */
	if (k->old_over) {
		tell_restarted(k);
		return;
	}
	end_interpreter(k);
}

void jupyter_kernel_ended(struct sandbox *s, const struct language *l)
{
	struct jkernel *k = s->jupyter;

	if (!k || k->language != l)
		return;
	k->count = 0;
	if (!k->restarting && !k->ended)
		jkernel_status(k, NULL, "restarting"); /* by itself: the next code finds a new one
							*/
	k->old_over = true;
	tell_restarted(k);
}

void jupyter_cell_gone(struct sandbox *s)
{
	struct jkernel *k = s->jupyter;

	if (!k || !k->restarting)
		return;
	k->old_over = true;
	tell_restarted(k);
}

/* Everybody hears of it, and nothing is left of what was asked. */
static void shut(struct jkernel *k)
{
	void (*fn)(struct jkernel *, void *) = k->restarted;

	jkernel_status(k, NULL, "dead");
	while (k->lines)
		jline_end(k->lines, 1001, "the kernel was ended");
	loop_undefer(&k->sandbox->f->loop, &k->tell);
	k->restarting = false;
	k->restarted = NULL;
	k->cut = NULL;
	if (fn)
		fn(NULL, k->restarted_arg);
	jrequest_free_all(k);
	jheld_free(k);
	jlate_free(k);
	jhistory_free(&k->history);
	k->count = 0;
}

void jkernel_end(struct sandbox *s, const char *why)
{
	struct jkernel *k = jkernel_is_ours(s) ? NULL : jkernel_of(s);

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
