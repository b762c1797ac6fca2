/* SPDX-License-Identifier: Apache-2.0 */
/* changes.c - Changes as lines of JSON, and a set of paths in a search tree of libc. */
#include "workspace_store/changes.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

void changes_init(struct changes *c)
{
	*c = (struct changes){ 0 };
	buf_init(&c->lines, CHANGES_BYTES);
}

void changes_free(struct changes *c)
{
	buf_free(&c->lines);
}

static const char *kind_of(mode_t mode)
{
	return S_ISREG(mode)  ? "file" :
	       S_ISDIR(mode)  ? "dir" :
	       S_ISLNK(mode)  ? "symlink" :
	       S_ISFIFO(mode) ? "fifo" :
	       S_ISSOCK(mode) ? "socket" :
				"other";
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
	json_member_str(&j, "type", kind_of(st->st_mode));
	if (what == CHANGE_TYPE)
		json_member_str(&j, "was", kind_of(was->st_mode));
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

/* ---- paths --------------------------------------------------------------------------------- */

/* The tree of tsearch(3) holds pointers to the text. */
struct path {
	enum path_mark mark;
	char text[];
};

static struct path *path_of(const char *text)
{
	return (struct path *)((uintptr_t)text - offsetof(struct path, text));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

int paths_put(void **paths, const char *text, enum path_mark mark)
{
	char **found = tfind(text, paths, by_text);
	size_t size = strlen(text) + 1;
	struct path *p = found ? path_of(*found) : malloc(sizeof(*p) + size);

	if (!p)
		return -ENOMEM;
	p->mark = mark;
	if (found)
		return 0;
	memcpy(p->text, text, size);
	if (tsearch(p->text, paths, by_text))
		return 0;
	free(p);
	return -ENOMEM;
}

enum path_mark paths_get(void *const *paths, const char *text)
{
	char **found = tfind(text, paths, by_text);

	return found ? path_of(*found)->mark : PATH_NONE;
}

static void free_path(void *text)
{
	free(path_of(text));
}

void paths_free(void **paths)
{
	tdestroy(*paths, free_path);
	*paths = NULL;
}
