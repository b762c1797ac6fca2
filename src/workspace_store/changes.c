/* SPDX-License-Identifier: Apache-2.0 */
/* changes.c - Lines of JSON, and a set of paths. */
#include "workspace_store/changes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "workspace_store/tree.h"

void changes_init(struct changes *c)
{
	*c = (struct changes){ 0 };
	buf_init(&c->lines, CHANGES_BYTES);
}

void changes_free(struct changes *c)
{
	buf_free(&c->lines);
}

void changes_add(struct changes *c, enum change what, const char *path, const struct stat *was,
		 const struct stat *is)
{
	static const char *const names[] = { "added", "modified", "removed", "type", "mode" };
	const struct stat *st = is ? is : was;
	_buf_ struct buf b = BUF_INIT(64u << 10);
	char mode[8];
	struct json j;

	c->n++;
	json_init(&j, &b);
	json_object_begin(&j);
	json_key(&j, "path");
	if (json_str(&j, path)) { /* no text: the bytes beside it */
		json_key(&j, "path_base64");
		json_base64(&j, path, strlen(path));
	}
	json_member_str(&j, "change", names[what]);
	json_member_str(&j, "type", tree_kind(st->st_mode));
	if (what == CHANGE_TYPE)
		json_member_str(&j, "was", tree_kind(was->st_mode));
	if (S_ISREG(st->st_mode) && st->st_size >= 0)
		json_member_uint(&j, "size", (uint64_t)st->st_size);
	if (!S_ISLNK(st->st_mode)) {
		(void)snprintf(mode, sizeof(mode), "%04o", (unsigned int)(st->st_mode & 07777));
		json_member_str(&j, "mode", mode);
	}
	json_object_end(&j);
	if (json_finish(&j) < 0 || c->lines.len + b.len + 1 > c->lines.max) {
		c->cut = true;
		return;
	}
	(void)buf_append(&c->lines, b.data, b.len);
	if (buf_append(&c->lines, "\n", 1) < 0)
		c->cut = true;
}

int changes_memfd(const struct changes *c)
{
	return fd_memfd("caisson-changes", buf_str(&c->lines), c->lines.len);
}

/* ---- paths --------------------------------------------------------------------------------- */

static size_t place_of(const struct paths *p, const char *path)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (const char *s = path; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	size_t i = (size_t)(h ^ h >> 29) & (p->size - 1);

	while (p->table[i].path && strcmp(p->table[i].path, path) != 0)
		i = (i + 1) & (p->size - 1);
	return i;
}

static int grow(struct paths *p)
{
	struct paths wider = { .size = p->size ? 2 * p->size : 1024, .n = p->n };

	wider.table = calloc(wider.size, sizeof(*wider.table));
	if (!wider.table)
		return -ENOMEM;
	for (size_t i = 0; i < p->size; i++)
		if (p->table[i].path)
			wider.table[place_of(&wider, p->table[i].path)] = p->table[i];
	free(p->table);
	*p = wider;
	return 0;
}

int paths_put(struct paths *p, const char *path, enum path_mark mark)
{
	if (2 * p->n >= p->size && grow(p) < 0)
		return -ENOMEM;
	struct path_slot *s = &p->table[place_of(p, path)];

	if (!s->path) {
		s->path = strdup(path);
		if (!s->path)
			return -ENOMEM;
		p->n++;
	}
	s->mark = mark;
	return 0;
}

enum path_mark paths_get(const struct paths *p, const char *path)
{
	if (!p->size)
		return PATH_NONE;
	const struct path_slot *s = &p->table[place_of(p, path)];

	return s->path ? s->mark : PATH_NONE;
}

void paths_free(struct paths *p)
{
	for (size_t i = 0; i < p->size; i++)
		free(p->table[i].path);
	free(p->table);
	*p = (struct paths){ 0 };
}
