/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_spec.h - The description of a sandbox by its client: limits, environment, secrets,
 * labels, lifetime.
 *
 * No field is accepted and then ignored: a field that this daemon does not support is refused by
 * its name.
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

struct admission;
struct json;
struct refusal;

struct sandbox_spec {
	struct cell_limits limits;
	bool own_limits;                  /* not the daemon's: no cell of the pool fits */
	char image[IMAGE_OPENER_REF_MAX]; /* "": the daemon's own image */
	char digest[72];                  /* of the image, once it was opened; "": it has none */
	bool fetcher;                     /* ours, for fetching packages (packages/fetcher.h) */
	json_t *env, *labels;             /* objects of strings; NULL: none */
	json_t *egress;  /* canonical entries (policy/egress_entry.h); NULL: it may reach nothing */
	json_t *servers; /* whose tools its code may call, names; NULL: it has no code mode */
	json_t *tools;   /* rules for that (mcp/tool_rules.h), or NULL */
	json_t *project; /* for the memory of its code; NULL: MEMORY_PROJECT */
	json_t *secrets; /* canonical entries (policy/secret_use.h), each once; NULL: none */
	struct workspace_use workspace;
	struct mount_use mounts; /* of the operator */
	uint64_t life_s;         /* 0: no end */
	uint64_t idle_ms;
	char policy[65]; /* hash of the operator's rules when it was made; "": there were none */
};

/* sandbox_spec_default() - The daemon's defaults, within the ceilings of @owner. */
void sandbox_spec_default(const struct admission *a, const char *owner, struct sandbox_spec *ret);

/*
 * sandbox_spec_parse() - @body: checked against the fields of a SandboxSpec; other members are
 * ignored. sandbox_create() checks the policy. 0, or -1 with @ret_why.
 */
int sandbox_spec_parse(const struct admission *a, const char *owner, const json_t *body,
		       struct sandbox_spec *ret, struct refusal *ret_why);
void sandbox_spec_free(struct sandbox_spec *s);

/* sandbox_spec_image() - `image` of @body as specs have it, "" for the daemon's own. 1; 0 when the
 * body has none, and @ret is not touched; -1 with @ret_why. */
int sandbox_spec_image(const struct admission *a, const json_t *body,
		       char ret[IMAGE_OPENER_REF_MAX], struct refusal *ret_why);

/* sandbox_spec_same() - Whether two requests of one name ask for the same sandbox. False: @ret
 * names the fields that differ. */
bool sandbox_spec_same(const struct sandbox_spec *a, const struct sandbox_spec *b,
		       struct refusal *ret);

/* sandbox_spec_json() - As an object, with every default filled in. Of env it has only the names:
 * the values may be secrets. */
void sandbox_spec_json(const struct admission *a, const struct sandbox_spec *s, struct json *j);

/* labels_match() - Whether @labels have all of @wanted: an array of KEY=VALUE, or NULL. */
bool labels_match(const json_t *labels, const json_t *wanted);

#endif
