/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_spec.h - What a client asked a sandbox to be: limits, environment, labels, life.
 *
 * No field is accepted and then ignored: what this daemon can not do (another image, egress, secrets, a
 * workspace) is refused with the name of the field.
 */
#ifndef CAISSON_FRONT_SANDBOX_SPEC_H
#define CAISSON_FRONT_SANDBOX_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/warden.h"

struct front;
struct json;
struct refusal;

struct sandbox_spec {
	struct cell_limits limits;
	bool own_limits;      /* not the daemon's: no room of the pool fits */
	json_t *env, *labels; /* objects of strings; NULL: none */
	uint64_t life_s;      /* 0: no end */
	uint64_t idle_ms;
};

/* sandbox_spec_default() - The daemon's own. */
void sandbox_spec_default(const struct front *f, struct sandbox_spec *ret);

/*
 * sandbox_spec_parse() - @body: checked against the fields of a SandboxSpec; other members are not looked
 * at. 0, or -1 with @ret_why.
 */
int sandbox_spec_parse(const struct front *f, const json_t *body, struct sandbox_spec *ret,
		       struct refusal *ret_why);
void sandbox_spec_free(struct sandbox_spec *s);

/* sandbox_spec_equal() - Whether a second request of the same name asks for the same. */
bool sandbox_spec_equal(const struct sandbox_spec *a, const struct sandbox_spec *b);

/* sandbox_spec_json() - As an object, every default filled in. Values of env are not shown: they may be
 * secrets, so only their names are. */
void sandbox_spec_json(const struct front *f, const struct sandbox_spec *s, struct json *j);

/* sandbox_spec_has_label() - Whether it has this label with this value. */
bool sandbox_spec_has_label(const struct sandbox_spec *s, const char *key, const char *value);

#endif
