/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_life.c - How sandboxes begin: admission, names, deadlines.
 *
 * Every function that makes a sandbox, or lets a lost one begin anew, applies the same checks
 * first: the number of sandboxes, the policy, mounts, workspace, image, secrets. A sandbox that is
 * refused is not made, or stays lost. Ends are in sandbox_end.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "front/cell/image_use.h"
#include "front/policy/policy.h"
#include "front/sandbox/audit.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/record.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/spec/judge.h"
#include "front/support/log.h"
#include "front/support/metrics.h"
#include "front/support/name.h"
#include "front/support/time_text.h"

/* ---- the beginning ------------------------------------------------------------------------- */

static void on_idle(struct timer *t)
{
	metric_add(M_REAPED_IDLE, 1);
	sandbox_end(t->arg, "it was idle for too long");
}

static void on_end(struct timer *t)
{
	struct sandbox *s = t->arg;

	s->expired = true;
	sandbox_end(s, "its time was over");
}

void sandbox_deadline(const struct sandbox *s, char *text, size_t size)
{
	char at[STAMP_MAX];

	time_text(at, s->expires_ms);
	(void)snprintf(text, size, "the sandbox reached its deadline, %s, and was removed", at);
}

void sandbox_expire(struct sandbox *s, uint64_t seconds)
{
	s->end_timer.fn = on_end;
	s->end_timer.arg = s;
	s->expires_ms = seconds ? time_now_ms() + seconds * 1000 : 0;
	if (seconds)
		timer_after(s->sandboxes->loop, &s->end_timer, seconds * CLOCK_NS_PER_S);
	else
		timer_cancel(&s->end_timer);
	sandbox_note(s);
}

static struct sandbox *sandbox_new(struct sandboxes *sandboxes, const char *owner, const char *name,
				   struct sandbox_spec *spec)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->sandboxes = sandboxes;
	s->image = &sandboxes->cells->images->own;
	image_hold(s->image);
	s->slot = -1;
	random_id(s->id);
	(void)snprintf(s->name, sizeof(s->name), "%s", name ? name : "");
	(void)snprintf(s->owner, sizeof(s->owner), "%s", owner);
	s->spec = *spec;
	s->tail = &s->head;
	s->created_ns = s->used_ns = clock_now_ns();
	s->created_ms = time_now_ms();
	s->idle_timer.fn = on_idle;
	s->idle_timer.arg = s;
	records_init(&s->records, sandboxes->loop, sandboxes->spools, sandboxes->streams);
	LIST_PUSH(sandboxes->first, s);
	return s;
}

void sandbox_set_image(struct sandbox *s, struct image_use *g)
{
	image_hold(g);
	image_release(s->image);
	s->image = g;
	(void)snprintf(s->spec.digest, sizeof(s->spec.digest), "%s", g->digest);
}

void sandbox_count(const struct sandbox *s, bool one_more)
{
	struct sandboxes *sandboxes = s->sandboxes;

	if (s->name[0])
		sandboxes->hooks->wires.changed(sandboxes->hooks->wires.mcp, s->owner);
	if (one_more)
		sandboxes->n++;
	else
		sandboxes->n--;
	metric_set(G_SANDBOXES, sandboxes->n);
}

void sandbox_unlist(struct sandbox *s)
{
	LIST_DROP(s->sandboxes->first, s);
}

static bool is_full(const struct sandboxes *sandboxes)
{
	return sandboxes->n >= sandboxes->daemon->config.max_sandboxes ||
	       sandboxes->n_queued >= SANDBOXES_QUEUE_MAX;
}

static void refuse_busy(struct sandboxes *sandboxes, struct refusal *ret)
{
	uint64_t idle_s = sandboxes->daemon->config.idle_ms / 1000;

	for (const struct sandbox *s = sandboxes->first; s; s = s->next)
		if (s->head) /* an execution ends sooner than an idle sandbox does */
			idle_s = 1;
	metric_add(M_REJECTED_BUSY, 1);
	(void)refusal_set(ret, REFUSAL_TOO_MANY, "busy", NULL, NULL,
			  "%zu sandboxes exist and %zu executions wait already; try again later",
			  sandboxes->n, sandboxes->n_queued);
	ret->retry_after_s = idle_s > 5 ? 5 : (unsigned int)idle_s;
}

static void note_policy(struct sandbox *s)
{
	const struct rules *r = s->sandboxes->admission->policy->rules;

	(void)snprintf(s->spec.policy, sizeof(s->spec.policy), "%s", r ? r->sha256 : "");
}

struct sandbox *sandbox_create(struct sandboxes *sandboxes, const char *owner, const char *name,
			       struct sandbox_spec *spec, struct refusal *ret)
{
	struct sandbox_spec plain;

	if (is_full(sandboxes)) {
		refuse_busy(sandboxes, ret);
		return NULL;
	}
	if (!spec) {
		sandbox_spec_default(sandboxes->admission, owner, &plain);
		spec = &plain;
	}
	if (policy_sandbox(sandboxes->admission, owner, spec, ret) < 0 ||
	    mount_use_admit(sandboxes->admission, owner, &spec->mounts, ret) < 0 ||
	    sandboxes->hooks->workspace.admit(sandboxes->hooks->workspace.part, owner,
					      &spec->workspace, NULL, ret) < 0)
		return NULL;
	/* A spec has a digest if it needs the very image of another sandbox
	 * (packages/fetcher.c). */
	struct image_use *image = image_get(sandboxes->cells, spec->image,
					    spec->digest[0] ? spec->digest : NULL, ret);

	if (!image)
		return NULL;
	struct sandbox *s = sandbox_new(sandboxes, owner, name, spec);

	if (s)
		sandbox_set_image(s, image);
	image_release(image);
	if (!s) {
		(void)refusal_no_memory(ret);
		return NULL;
	}
	note_policy(s);
	if (s->spec.life_s)
		s->expires_ms = s->created_ms + s->spec.life_s * 1000; /* for its record */
	if (s->sandboxes->hooks->secrets.give(s, ret) < 0 || (name && audit_created(s, ret) < 0)) {
		sandbox_unlist(s);
		s->sandboxes->hooks->secrets.take(s);
		image_release(s->image);
		free(s); /* the spec is still the caller's */
		return NULL;
	}
	log_event(LOG_LEVEL_DEBUG, "sandbox_create", F_STR("owner", owner), F_STR("name", s->name),
		  F_STR("image", s->image->name));
	sandbox_count(s, true);
	sandbox_keep(s);
	if (s->spec.life_s)
		sandbox_expire(s, s->spec.life_s);
	return s;
}

/* ---- sandboxes that do not run ------------------------------------------------------------- */

#define REMEMBER_NS (24 * 3600 * CLOCK_NS_PER_S)

static void on_forget(struct timer *t)
{
	sandbox_end(t->arg, "it did not run for a day");
}

void sandbox_forget_later(struct sandbox *s)
{
	s->end_timer.fn = on_forget;
	s->end_timer.arg = s;
	timer_after(s->sandboxes->loop, &s->end_timer, REMEMBER_NS);
}

struct sandbox *sandbox_restore(struct sandboxes *sandboxes, const char *owner, const char *name,
				struct sandbox_spec *spec)
{
	struct sandbox *s = sandbox_new(sandboxes, owner, name, spec);

	if (s) {
		s->state = SANDBOX_LOST;
		sandbox_forget_later(s);
	}
	return s;
}

void sandbox_resume(struct sandbox *s)
{
	uint64_t now = time_now_ms();
	uint64_t left = s->expires_ms > now ? s->expires_ms - now : 1;

	s->state = SANDBOX_RUNNING;
	s->adopted_ms = now;
	s->reason[0] = '\0';
	sandbox_count(s, true);
	timer_cancel(&s->end_timer);
	s->end_timer.fn = on_end;
	if (s->expires_ms)
		timer_set(s->sandboxes->loop, &s->end_timer,
			  clock_now_ns() + left * CLOCK_NS_PER_MS);
	sandbox_step(s);
}

/* ---- finding or making a sandbox ----------------------------------------------------------- */

/*
 * Let a lost sandbox begin anew, for a client that just goes on with its session. It is empty,
 * which its epoch shows.
 */
static bool revive(struct sandbox *s, struct refusal *ret)
{
	if (is_full(s->sandboxes)) {
		refuse_busy(s->sandboxes, ret);
		return false;
	}
	if (policy_sandbox(s->sandboxes->admission, s->owner, &s->spec, ret) < 0 ||
	    mount_use_admit(s->sandboxes->admission, s->owner, &s->spec.mounts, ret) < 0 ||
	    s->sandboxes->hooks->workspace.admit(s->sandboxes->hooks->workspace.part, s->owner,
						 &s->spec.workspace, s, ret) < 0)
		return false;
	struct image_use *image = image_get(s->sandboxes->cells, s->spec.image, NULL, ret);

	if (!image)
		return false;
	sandbox_set_image(s, image);
	image_release(image);
	if (s->sandboxes->hooks->secrets.give(s, ret) < 0)
		return false;
	note_policy(s);
	timer_cancel(&s->end_timer);
	s->state = SANDBOX_RUNNING;
	s->reason[0] = '\0';
	s->epoch++;
	sandbox_count(s, true);
	sandbox_keep(s);
	audit_changed(s);
	return true;
}

/* Whether @s has what @asked names. */
static bool is_as_asked(const struct sandbox *s, const json_t *asked, struct refusal *ret)
{
	const char *own = s->sandboxes->cells->images->own.name;
	const json_t *servers = json_object_get(asked, "servers");
	char image[IMAGE_OPENER_REF_MAX] = "";
	int has_image = sandbox_spec_image(s->sandboxes->admission, asked, image, ret);

	if (has_image < 0)
		return false;
	if (has_image && strcmp(s->spec.image, image) != 0) {
		(void)refusal_set(ret, REFUSAL_CONFLICT, "spec_conflict", "image",
				  "leave 'image' out, or take another session_id",
				  "this session is of the image %.100s, not of %.100s",
				  s->spec.image[0] ? s->spec.image : own, image[0] ? image : own);
		return false;
	}
	if (!servers || json_equal(servers, s->spec.servers))
		return true;
	(void)refusal_set(ret, REFUSAL_CONFLICT, "spec_conflict", "servers",
			  "leave 'servers' out, or take another session_id",
			  "this session was made %s",
			  s->spec.servers ? "with other servers" : "without servers");
	return false;
}

struct sandbox *sandbox_obtain(struct sandboxes *sandboxes, const char *owner, const char *name,
			       const json_t *asked, struct refusal *ret)
{
	struct sandbox *s = name ? sandbox_find(sandboxes, owner, name) : NULL;
	bool plain = !json_object_get(asked, "image") && !json_object_get(asked, "servers");
	struct sandbox_spec spec;

	if (s && !plain && !is_as_asked(s, asked, ret))
		return NULL;
	if (s)
		return s->state == SANDBOX_LOST && !revive(s, ret) ? NULL : s;
	if (plain)
		return sandbox_create(sandboxes, owner, name, NULL, ret);
	if (sandbox_spec_parse(sandboxes->admission, owner, asked, &spec, ret) < 0)
		return NULL;
	s = sandbox_create(sandboxes, owner, name, &spec, ret);
	if (!s)
		sandbox_spec_free(&spec);
	return s;
}
