/* SPDX-License-Identifier: Apache-2.0 */
/* mount_use.c - The field `mounts` of a SandboxSpec: parse and write. */
#include "front/spec/mount_use.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/spec/admission.h"
#include "front/spec/judge.h"
#include "front/support/mounts.h"
#include "front/support/refusal.h"

static bool writable(const struct admission *a, size_t i)
{
	return a->cells->mounts->row[i].flags & CELL_MOUNT_RW;
}

void mount_use_default(const struct admission *a, const char *owner, struct mount_use *ret)
{
	*ret = (struct mount_use){ 0 };
	for (size_t i = 0; i < a->cells->mounts->n; i++) {
		enum rule_mount may = policy_mount(a, owner, a->cells->mounts->row[i].dst);

		if (may == RULE_MOUNT_NONE)
			continue;
		ret->set.has |= 1u << i;
		if (may == RULE_MOUNT_READ || !writable(a, i))
			ret->set.ro |= 1u << i;
	}
}

/* No owner has the name "": so this is what [default] gives. */
void mounts_pool(struct admission *a)
{
	struct mount_use each;

	mount_use_default(a, "", &each);
	a->cells->mounts->pooled = each.set;
}

/* ---- parsing ------------------------------------------------------------------------------- */

static int refuse(struct refusal *r, const char *hint, const char *message)
{
	return refusal_set(r, REFUSAL_INVALID, "invalid_value", "mounts", hint, "%.300s", message);
}

/* False: the request names it twice. */
static bool take(const struct admission *a, const char *owner, const struct mount_word *w,
		 struct mount_use *ret)
{
	size_t i = 0;

	while (i < a->cells->mounts->n && strcmp(a->cells->mounts->row[i].dst, w->place) != 0)
		i++;
	if (i == a->cells->mounts->n || (w->mode == MOUNT_RW && !writable(a, i))) {
		if (!ret->missing.place[0])
			ret->missing = *w;
		return true;
	}
	if (ret->set.has & 1u << i)
		return false;
	ret->set.has |= 1u << i;
	if (w->mode == MOUNT_RO || !writable(a, i) ||
	    (w->mode == MOUNT_ANY && policy_mount(a, owner, w->place) == RULE_MOUNT_READ))
		ret->set.ro |= 1u << i;
	return true;
}

int mount_use_parse(const struct admission *a, const char *owner, const json_t *value,
		    struct mount_use *ret, struct refusal *why)
{
	struct mount_word w;
	size_t i;
	json_t *v;

	mount_use_default(a, owner, ret);
	if (!value || json_is_null(value))
		return 0;
	*ret = (struct mount_use){ 0 };
	json_array_foreach((json_t *)value, i, v)
	{
		if (!json_is_string(v) || !mount_word_parse(json_string_value(v), &w))
			return refuse(why, "as in [\"/data\", \"/models:ro\"]",
				      "'mounts' has an invalid place");
		if (!take(a, owner, &w, ret))
			return refuse(why, "name each once", "'mounts' has a place twice");
	}
	return 0;
}

int mount_use_admit(const struct admission *a, const char *owner, const struct mount_use *u,
		    struct refusal *why)
{
	_buf_ struct buf there = BUF_INIT(sizeof(why->message));
	struct mount_use may;

	if (!u->missing.place[0])
		return 0;
	mount_use_default(a, owner, &may);
	for (size_t i = 0; i < a->cells->mounts->n; i++)
		if (may.set.has & 1u << i)
			(void)buf_printf(&there, "%s%s%s", there.len ? ", " : "",
					 a->cells->mounts->row[i].dst,
					 mount_suffix[may.set.ro & 1u << i ? MOUNT_RO : MOUNT_RW]);
	return refusal_set(why, REFUSAL_INVALID, "invalid_value", "mounts",
			   "leave 'mounts' out for all of these; a sandbox that was made with "
			   "another can only be removed",
			   "'%.100s%s' is not among your mounts (%.150s)", u->missing.place,
			   mount_suffix[u->missing.mode],
			   there.len ? buf_str(&there) : "you have no mounts");
}

bool mount_use_equal(const struct mount_use *a, const struct mount_use *b)
{
	return mount_set_equal(&a->set, &b->set) &&
	       strcmp(a->missing.place, b->missing.place) == 0 &&
	       a->missing.mode == b->missing.mode;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void write_word(struct json *j, const char *place, enum mount_mode mode)
{
	char word[CELL_DST_MAX + 8];

	(void)snprintf(word, sizeof(word), "%s%s", place, mount_suffix[mode]);
	json_str(j, word);
}

/* With the missing one: a record that comes from a daemon with other mounts must not lose it. */
void mount_use_json(const struct admission *a, const struct mount_use *u, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < a->cells->mounts->n; i++)
		if (u->set.has & 1u << i)
			write_word(j, a->cells->mounts->row[i].dst,
				   u->set.ro & 1u << i ? MOUNT_RO : MOUNT_RW);
	if (u->missing.place[0])
		write_word(j, u->missing.place, u->missing.mode);
	json_array_end(j);
}
