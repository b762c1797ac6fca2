/* SPDX-License-Identifier: Apache-2.0 */
/* workspace_use.c - The field `workspace` of a SandboxSpec: parse, write, and turn into mounts. */
#include "front/spec/workspace_use.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "cell/spec.h"
#include "front/support/json_alloc.h"
#include "front/support/name.h"
#include "front/support/refusal.h"
#include "wire/warden.h"
#include "workspace_store/pattern.h"

static const char *const modes[] = { "cow", "ro", "rw" };

const char *workspace_mode_name(enum workspace_mode mode)
{
	return modes[mode];
}

static int refuse(struct refusal *r, const char *hint, const char *message)
{
	return refusal_set(r, REFUSAL_INVALID, "invalid_value", "workspace", hint, "%.300s",
			   message);
}

/* ---- parsing ------------------------------------------------------------------------------- */

static int take_mode(const char *text, struct workspace_use *ret, struct refusal *why)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (strcmp(text, modes[i]) == 0) {
			ret->mode = (enum workspace_mode)i;
			return 0;
		}
	return refuse(why, "cow (copy on write), ro or rw", "unknown mode of a workspace");
}

static int take_name(const char *text, size_t len, struct workspace_use *ret, struct refusal *why)
{
	if (len > WORKSPACE_NAME_MAX || !name_ok(text, len))
		return refuse(
			why,
			"1 to 64 of letters, digits, '.', '_' and '-', as in notes or notes:ro",
			"invalid workspace name");
	memcpy(ret->name, text, len);
	ret->name[len] = '\0';
	return 0;
}

static int take_text(const char *text, struct workspace_use *ret, struct refusal *why)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	if (colon && take_mode(colon + 1, ret, why) < 0)
		return -1;
	return take_name(text, len, ret, why);
}

static int take_patterns(const json_t *object, const char *name, json_t **ret, struct refusal *why)
{
	json_t *list = json_object_get(object, name), *v;
	size_t i;

	if (!list)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > PATTERN_RULES_MAX / 2)
		return refuse(why, "at most 32 patterns, as in [\"*.pem\", \"secrets/\"]",
			      "'allow' and 'deny' are lists of patterns");
	json_array_foreach(list, i, v)
	{
		if (!json_is_string(v) || !pattern_ok(json_string_value(v), json_string_length(v)))
			return refuse(why, "a relative path, in which *, ? and ** are wildcards",
				      "'allow' or 'deny' has an invalid pattern");
	}
	if (json_array_size(list) > 0)
		*ret = json_incref(list);
	return 0;
}

/* A prefix has no wildcards: it becomes a mount. */
static bool part_ok(const char *text, char dst[CELL_DST_MAX])
{
	size_t len = strlen(text);

	while (len > 0 && text[len - 1] == '/')
		len--;
	return len > 0 && text[0] != '/' && strpbrk(text, "*?") == NULL &&
	       (size_t)snprintf(dst, CELL_DST_MAX, WORKSPACE_PATH "/%.*s", (int)len, text) <
		       CELL_DST_MAX &&
	       spec_path_normal(dst, CELL_DST_MAX);
}

static int take_parts(const json_t *object, struct workspace_use *ret, struct refusal *why)
{
	json_t *list = json_object_get(object, "write"), *v;
	char dst[CELL_DST_MAX];
	size_t i;

	if (!list)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > WORKSPACE_PARTS_MAX)
		return refuse(why, "at most 8 directories, as in [\"out\", \"notes/today\"]",
			      "'write' is a list of directories");
	json_array_foreach(list, i, v)
	{
		if (!json_is_string(v) || !part_ok(json_string_value(v), dst))
			return refuse(why, "a relative path without wildcards, '.' or '..'",
				      "'write' has an invalid directory");
	}
	if (json_array_size(list) > 0 && ret->mode == WORKSPACE_RO)
		return refuse(
			why, "leave 'write' out, or use mode cow or rw",
			"'write' contradicts the mode ro, which mounts the workspace read-only");
	if (json_array_size(list) > 0)
		ret->write = json_incref(list);
	return 0;
}

static int take_object(const json_t *o, struct workspace_use *ret, struct refusal *why)
{
	static const char *const known[] = { "name", "mode", "allow", "deny", "write" };
	const json_t *name = json_object_get(o, "name"), *mode = json_object_get(o, "mode");
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v)
	{
		size_t i = 0;

		while (i < ARRAY_SIZE(known) && strcmp(key, known[i]) != 0)
			i++;
		if (i == ARRAY_SIZE(known))
			return refuse(why, "name, mode, allow, deny and write are known",
				      "'workspace' has an unknown field");
	}
	if (!json_is_string(name) || (mode && !json_is_string(mode)))
		return refuse(why, "as in {\"name\": \"notes\", \"mode\": \"cow\"}",
			      "'workspace' needs a name, and its mode must be a string");
	if (take_name(json_string_value(name), json_string_length(name), ret, why) < 0 ||
	    (mode && take_mode(json_string_value(mode), ret, why) < 0) ||
	    take_patterns(o, "allow", &ret->allow, why) < 0 ||
	    take_patterns(o, "deny", &ret->deny, why) < 0)
		return -1;
	if (ret->mode == WORKSPACE_RW && (ret->allow || ret->deny))
		return refuse(
			why, "use mode cow or ro",
			"'allow' and 'deny' need a tree of the sandbox's own, which mode rw does "
			"not have");
	return take_parts(o, ret, why);
}

int workspace_use_parse(const json_t *value, struct workspace_use *ret, struct refusal *ret_why)
{
	int r;

	*ret = (struct workspace_use){ .mode = WORKSPACE_COW };
	if (!value || json_is_null(value) || (json_is_string(value) && !json_string_length(value)))
		return 0;
	if (json_is_string(value))
		r = take_text(json_string_value(value), ret, ret_why);
	else if (json_is_object(value))
		r = take_object(value, ret, ret_why);
	else
		r = refuse(ret_why, "as in \"notes\" or {\"name\": \"notes\", \"mode\": \"ro\"}",
			   "'workspace' is a name or an object");
	if (r < 0)
		workspace_use_free(ret);
	return r;
}

void workspace_use_free(struct workspace_use *u)
{
	json_decref(u->allow);
	json_decref(u->deny);
	json_decref(u->write);
	u->allow = u->deny = u->write = NULL;
}

static bool same(const json_t *a, const json_t *b)
{
	return a == b || (a && b && json_equal(a, b));
}

bool workspace_use_equal(const struct workspace_use *a, const struct workspace_use *b)
{
	return strcmp(a->name, b->name) == 0 && (!a->name[0] || a->mode == b->mode) &&
	       same(a->allow, b->allow) && same(a->deny, b->deny) && same(a->write, b->write);
}

/* ---- writing ------------------------------------------------------------------------------- */

static void write_list(struct json *j, const char *name, const json_t *list)
{
	if (list)
		json_member_list(j, name, list);
}

void workspace_use_json(const struct workspace_use *u, struct json *j)
{
	if (!u->name[0])
		return;
	json_member_object(j, "workspace");
	json_member_str(j, "name", u->name);
	json_member_str(j, "mode", modes[u->mode]);
	write_list(j, "allow", u->allow);
	write_list(j, "deny", u->deny);
	write_list(j, "write", u->write);
	if (u->tree[0]) {
		json_member_str(j, "tree", u->tree);
		json_member_str(j, "base", u->base);
	}
	json_object_end(j);
}

struct workspace_use workspace_use_recall(json_t *value)
{
	const char *tree = json_string_value(json_object_get(value, "tree"));
	const char *base = json_string_value(json_object_get(value, "base"));
	struct workspace_use u = { 0 };

	(void)snprintf(u.tree, sizeof(u.tree), "%.23s", tree ? tree : "");
	(void)snprintf(u.base, sizeof(u.base), "%.23s", base ? base : "");
	(void)json_object_del(value, "tree");
	(void)json_object_del(value, "base");
	return u;
}

size_t workspace_use_mounts(const struct workspace_use *u, struct cell_spec *spec, int *fds)
{
	static const uint32_t flags[] = {
		[WORKSPACE_COW] = CELL_MOUNT_WORKSPACE | CELL_MOUNT_COW,
		[WORKSPACE_RO] = CELL_MOUNT_WORKSPACE,
		[WORKSPACE_RW] = CELL_MOUNT_WORKSPACE | CELL_MOUNT_RW,
	};
	struct cell_mount *m = &spec->mounts[spec->n_mounts];
	size_t i;
	json_t *v;

	if (!u || !u->name[0] || !u->fd)
		return 0;
	(void)snprintf(m->dst, sizeof(m->dst), WORKSPACE_PATH);
	m->flags = flags[u->mode];
	json_array_foreach(u->write, i, v)
	{
		(void)part_ok(json_string_value(v), m[1 + i].dst);
		m[1 + i].flags = CELL_MOUNT_PART;
	}
	spec->n_mounts += 1 + (uint32_t)json_array_size(u->write);
	*fds = u->fd - 1;
	return 1;
}

/* ---- for the workspace store --------------------------------------------------------------- */

static void put_lines(struct buf *b, const char *before, const json_t *list)
{
	size_t i;
	json_t *v;

	json_array_foreach((json_t *)list, i, v)(void)
		buf_printf(b, "%s%s\n", before, json_string_value(v));
}

/* The text as a memfd; -1 in *@ret_fd when it is empty. 0 or -errno. */
static int to_memfd(const struct buf *b, int *ret_fd)
{
	*ret_fd = -1;
	if (b->err || b->len == 0)
		return b->err;
	*ret_fd = fd_memfd("caisson-rules", b->data, b->len);
	return *ret_fd < 0 ? *ret_fd : 0;
}

int workspace_use_rules(const struct workspace_use *u, int *ret_fd)
{
	_buf_ struct buf b = BUF_INIT(WORKSPACE_STORE_RULES_BYTES);

	put_lines(&b, "+", u->allow);
	put_lines(&b, "-", u->deny);
	return to_memfd(&b, ret_fd);
}

int workspace_use_parts(const struct workspace_use *u, int *ret_fd)
{
	_buf_ struct buf b = BUF_INIT(WORKSPACE_STORE_RULES_BYTES);
	char dst[CELL_DST_MAX];
	size_t i;
	json_t *v;

	json_array_foreach(u->write, i, v)
	{
		if (part_ok(json_string_value(v), dst))
			(void)buf_printf(&b, "%s\n", dst + sizeof(WORKSPACE_PATH));
	}
	return to_memfd(&b, ret_fd);
}
