/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_spec.h - What a client asked a sandbox to be: limits, environment, secrets, labels, life.
 *
 * No field is accepted and then ignored: what this daemon can not do is refused with the name of
 * the field.
 */
#ifndef CAISSON_FRONT_SANDBOX_SPEC_H
#define CAISSON_FRONT_SANDBOX_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/spec/mount_use.h"
#include "front/spec/workspace_use.h"
#include "wire/image_opener.h"
#include "wire/warden.h"

struct front;
struct json;
struct refusal;

struct sandbox_spec {
	struct cell_limits limits;
	bool own_limits;                  /* not the daemon's: no room of the pool fits */
	char image[IMAGE_OPENER_REF_MAX]; /* what it is made from; "": the daemon's own image */
	char digest[72];                  /* of that, once it was opened; "": it has none */
	bool fetcher;                     /* ours, for fetching packages (packages/fetcher.h) */
	json_t *env, *labels;             /* objects of strings; NULL: none */
	json_t *egress;  /* what it may reach: canonical entries (egress/entry.h); NULL: nothing */
	json_t *servers; /* whose tools its code may call, names; NULL: it has no code mode */
	json_t *tools;   /* rules for that (mcp/tool_rules.h), or NULL */
	json_t *project; /* where its code keeps things; NULL: MEMORY_PROJECT */
	json_t *secrets; /* array of names, as secrets_parse() leaves it; NULL: none */
	struct workspace_use workspace;
	struct mount_use mounts; /* of the operator's */
	uint64_t life_s;         /* 0: no end */
	uint64_t idle_ms;
	char policy[65]; /* hash of the operator's rules when it was made; "": there were none */
};

/* sandbox_spec_default() - The daemon's own, as far as the policy lets @owner have it. */
void sandbox_spec_default(const struct front *f, const char *owner, struct sandbox_spec *ret);

/*
 * sandbox_spec_parse() - @body: checked against the fields of a SandboxSpec; other members are not
 * looked at. Whether the policy allows it, sandbox_create() says. 0, or -1 with @ret_why.
 */
int sandbox_spec_parse(const struct front *f, const char *owner, const json_t *body,
		       struct sandbox_spec *ret, struct refusal *ret_why);
void sandbox_spec_free(struct sandbox_spec *s);

/* sandbox_spec_image() - `image` of @body as specs have it, "" for the daemon's own. 1; 0 when it
 * names none, and @ret is not touched; -1 with @ret_why. */
int sandbox_spec_image(const struct front *f, const json_t *body, char ret[IMAGE_OPENER_REF_MAX],
		       struct refusal *ret_why);

/* sandbox_spec_equal() - Whether a second request of the same name asks for the same. */
bool sandbox_spec_equal(const struct sandbox_spec *a, const struct sandbox_spec *b);

/* sandbox_spec_json() - As an object, every default filled in. Values of env are not shown: they
 * may be secrets, so only their names are. */
void sandbox_spec_json(const struct front *f, const struct sandbox_spec *s, struct json *j);

/* sandbox_spec_has_label() - Whether it has this label with this value. */
bool sandbox_spec_has_label(const struct sandbox_spec *s, const char *key, const char *value);

#endif
