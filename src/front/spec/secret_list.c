/* SPDX-License-Identifier: Apache-2.0 */
/* secret_list.c - The member `secrets` of a SandboxSpec, from a request's list to its canonical
 * form. */
#include "front/spec/secret_list.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "front/policy/secret_use.h"
#include "front/support/refusal.h"

/* Compare with the secrets taken already: the same again is known, the same name in both ways is a
 * contradiction. */
static int check_before(const json_t *taken, const struct secret_use *u, bool *ret_known,
			struct refusal *r)
{
	size_t i;
	json_t *v;

	*ret_known = false;
	json_array_foreach((json_t *)taken, i, v)
	{
		struct secret_use w;

		if (!secret_use_parse(json_string_value(v), &w) || strcmp(w.name, u->name) != 0)
			continue;
		if (!w.host[0] != !u->host[0])
			return refusal_set(
				r, REFUSAL_INVALID, "invalid_value", "secrets",
				"ask for it in one way",
				"the secret '%.64s' is asked for both plain and bound to a host",
				u->name);
		*ret_known |= strcmp(w.host, u->host) == 0;
	}
	return 0;
}

static int take_one(json_t *to, const char *text, const json_t *env, struct refusal *r)
{
	struct secret_use u;
	char canonical[VAULT_NAME_MAX + VAULT_HOST_MAX + 2];
	bool known;

	if (!secret_use_parse(text, &u))
		return refusal_set(r, REFUSAL_INVALID, "invalid_value", "secrets",
				   "write NAME, or NAME@api.example.com to bind it to a host",
				   "'%.80s' names no secret", text);
	if (json_object_get(env, u.name))
		return refusal_set(r, REFUSAL_INVALID, "invalid_value", "secrets",
				   "leave it out of one of them",
				   "the variable '%.64s' is in 'env' and in 'secrets'", u.name);
	if (check_before(to, &u, &known, r) < 0)
		return -1;
	(void)snprintf(canonical, sizeof(canonical), "%s%s%s", u.name, u.host[0] ? "@" : "",
		       u.host);
	if (!known && json_array_append_new(to, json_string(canonical)) < 0)
		return refusal_no_memory(r);
	return 0;
}

int secrets_parse(const json_t *list, const json_t *env, json_t **ret, struct refusal *ret_why)
{
	json_t *taken = json_array_size(list) > 0 ? json_array() : NULL;
	size_t i;
	json_t *v;

	*ret = NULL;
	json_array_foreach((json_t *)list, i, v)
	{
		if (take_one(taken, json_string_value(v), env, ret_why) < 0) {
			json_decref(taken);
			return -1;
		}
	}
	*ret = taken;
	return 0;
}
