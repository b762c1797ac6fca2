/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_keep.c - Stores what the next front needs of a named sandbox, and takes it over there.
 *
 * Sandboxes without a name store nothing: their client is gone with the front. Data that is in the
 * store (name, owner, limits, labels, life) is not stored twice; data that must not be there
 * (values of variables) is in a memfd that the keeper holds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/foreign.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/cell/keep.h"
#include "front/policy/secret_use.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"

#define VARIABLES_MAX (4u << 20)

/* ---- storing ------------------------------------------------------------------------------- */

void sandbox_keep_vars(struct sandbox *s)
{
	struct keeper_slot *to = keep_slot(s->sandboxes->cells->keep, s->slot);
	char *text = json_object_size(s->vars) > 0 ? json_dumps(s->vars, JSON_COMPACT) : NULL;
	_fd_ int fd = text ? fd_memfd("caisson-env", text, strlen(text)) : -1;

	if (to)
		to->has_env = text != NULL;
	if (text)
		explicit_bzero(text, strlen(text));
	json_alloc_free(text);
	if (to && fd >= 0)
		keep_put(s->sandboxes->cells->keep, keep_key(s->slot, KEEPER_VARIABLES), &fd, 1);
}

void sandbox_keep(struct sandbox *s)
{
	if (!s->name[0] || s->slot >= 0)
		return;
	s->slot = keep_slot_new(s->sandboxes->cells->keep, s->id);
	if (s->slot < 0)
		return;
	sandbox_keep_vars(s);
	sandbox_note(s);
}

void sandbox_note(struct sandbox *s)
{
	struct keeper_slot *to = keep_slot(s->sandboxes->cells->keep, s->slot);

	if (!to)
		return;
	to->executions = s->executions;
	to->tool_calls = s->tool_calls;
	to->expires_ms = s->expires_ms;
	to->before = s->before;
	__atomic_store_n(&to->epoch, s->epoch, __ATOMIC_RELEASE);
	if (s->cell && s->cell->slot >= 0) {
		cell_note(s->cell);
	} else {
		memset(to->kernels, 0, sizeof(to->kernels));
		__atomic_store_n(&to->cell, 0, __ATOMIC_RELEASE);
	}
}

/* From now on the slot is incomplete: the next front must not take it for a sandbox. */
void sandbox_keep_end(struct sandbox *s)
{
	struct keeper_slot *to = keep_slot(s->sandboxes->cells->keep, s->slot);

	if (to)
		__atomic_store_n(&to->ending, 1, __ATOMIC_RELEASE);
}

void sandbox_unkeep(struct sandbox *s)
{
	const struct keeper_slot *slot = keep_slot(s->sandboxes->cells->keep, s->slot);

	if (!slot)
		return;
	if (slot->has_env)
		keep_drop(s->sandboxes->cells->keep, keep_key(s->slot, KEEPER_VARIABLES));
	keep_slot_free(s->sandboxes->cells->keep, s->slot);
	s->slot = -1;
}

/* ---- taking over --------------------------------------------------------------------------- */

static json_t *read_variables(int fd)
{
	struct stat st;
	json_t *env = NULL;

	if (foreign_check(fd, FOREIGN_MEMORY) < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 ||
	    st.st_size > VARIABLES_MAX)
		return NULL;
	_mem_ char *text = malloc((size_t)st.st_size);

	if (text && pread(fd, text, (size_t)st.st_size, 0) == st.st_size)
		env = json_loadb(text, (size_t)st.st_size, JSON_REJECT_DUPLICATES, NULL);
	return env;
}

/*
 * Whether @vars has all secrets. Placeholders are there, too: kernels that live on have them in
 * their variables.
 */
static bool has_secrets(const struct sandbox *s, const json_t *vars)
{
	struct secret_use u;
	size_t i;
	json_t *v;

	json_array_foreach(s->spec.secrets, i,
			   v) if (!secret_use_parse(json_string_value(v), &u) ||
				  !json_is_string(json_object_get(vars, u.name))) return false;
	return true;
}

/* Take over the variables: the store has the names, the keeper has the values. */
static bool take_variables(struct sandbox *s)
{
	_fd_ int fd = keep_take_one(s->sandboxes->cells->keep, keep_key(s->slot, KEEPER_VARIABLES));
	json_t *env = fd >= 0 ? read_variables(fd) : NULL;
	const char *name;
	json_t *ignored;
	bool good = has_secrets(s, env);

	json_object_foreach(s->spec.env, name, ignored)
	{
		json_t *kept = json_object_get(env, name);

		good = good && json_is_string(kept) &&
		       json_object_set_new(s->spec.env, name, json_copy(kept)) == 0;
	}
	s->vars = env;
	return good;
}

/* Take the image that the sandbox was made from, not the one that the name means now. */
static bool take_image(struct sandbox *s)
{
	struct refusal ignored;
	const char *digest = s->spec.digest;
	struct image_use *g =
		image_get(s->sandboxes->cells, s->spec.image, digest[0] ? digest : NULL, &ignored);

	if (!g) /* its cell has all of the image, and goes on */
		g = image_lost(s->sandboxes->cells, s->spec.image, digest);
	if (!g)
		return false;
	sandbox_set_image(s, g);
	image_release(g);
	return true;
}

const char *sandbox_adopt(struct sandbox *s, int slot, const struct keeper_slot *was)
{
	unsigned int lost = 0;

	s->slot = slot;
	s->epoch = was->epoch;
	s->executions = was->executions;
	s->tool_calls = was->tool_calls;
	s->expires_ms = was->expires_ms;
	s->before = was->before;
	if (!take_variables(s))
		return "its variables were not kept";
	if (!take_image(s))
		return "there was no memory";
	if (was->cell) {
		struct cell *r = NULL;
		int code = cell_adopt(s->image, &s->spec.limits, slot, was, &r, &lost);

		if (code == -ENOENT)
			return "its cell was not kept";
		if (r)
			sandbox_use(s, r);
		for (size_t i = 0; !r && i < KEEPER_KERNELS; i++)
			lost |= was->kernels[i].state != KEPT_EMPTY;
	}
	s->epoch += lost;
	sandbox_note(s);
	return NULL;
}
