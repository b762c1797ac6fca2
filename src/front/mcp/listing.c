/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - Directories, as text and as data. */
#include "front/mcp/listing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "front/api/file_exchange.h"
#include "front/mcp/file_job.h"
#include "front/mcp/tool_list.h"

const char listing_schema[] =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
	"\"files\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
	"\"name\":{\"type\":\"string\"},\"type\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"}},\"required\":[\"name\",\"type\",\"size\"]}},"
	"\"truncated\":{\"type\":\"boolean\"},\"next_cursor\":{\"type\":\"string\"},"
	"\"left_out\":{\"type\":\"integer\",\"description\":\"names that are not UTF-8\"}},\"required\":[\"path\",\"files\",\"truncated\"]}";

struct listing *listing_new(const char *after, size_t max)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (!l || (after && !(l->after = strdup(after))))
		abort();
	l->max = max;
	return l;
}

void listing_free(void *arg)
{
	struct listing *l = arg;

	for (size_t i = 0; i < l->n; i++)
		free(l->files[i].name);
	free(l->after);
	free(l);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct listing_file *)a)->name,
		      ((const struct listing_file *)b)->name);
}

/* The first @max of them stay. */
static void cut(struct listing *l, size_t max)
{
	qsort(l->files, l->n, sizeof(l->files[0]), by_name);
	while (l->n > max) {
		free(l->files[--l->n].name);
		l->truncated = true;
	}
}

void listing_entry(struct file_job *j, const struct files_stat *st, struct files_text name)
{
	struct listing *l = j->arg;
	char *copy;

	if (!utf8_valid(name.data, name.len)) {
		l->left_out++;
		return;
	}
	if (!(copy = files_text_copy(name))) {
		l->truncated = true;
		return;
	}
	if (l->after && strcmp(copy, l->after) <= 0) {
		free(copy);
		return;
	}
	if (l->n == 2 * LISTING_MAX)
		cut(l, LISTING_MAX);
	l->files[l->n++] = (struct listing_file){ copy, *st };
}

void listing_sort(struct listing *l)
{
	/* Beyond LISTING_MAX some may be missing between those that are there. */
	cut(l, l->max && l->max < LISTING_MAX ? l->max : LISTING_MAX);
}

void listing_write(struct listing *l, const char *path, size_t max, struct json *j,
		   struct buf *text)
{
	struct mcp_list list;

	listing_sort(l);
	json_object_begin(j);
	json_member_str(j, "path", path);
	mcp_list_begin(&list, j, "files", max);
	for (size_t i = 0; i < l->n && mcp_list_entry(&list); i++) {
		const struct listing_file *f = &l->files[i];

		json_object_begin(j);
		file_json_brief(j, "name", (struct files_text){ f->name, strlen(f->name) },
				&f->stat);
		json_object_end(j);
		(void)buf_printf(&list.text, "%10" PRIu64 "  %s%s\n", f->stat.size, f->name,
				 f->stat.type == FILES_T_DIR ? "/" : "");
		(void)mcp_list_next(&list);
	}
	mcp_list_end(&list, l->truncated, list.n ? l->files[list.n - 1].name : NULL);
	if (l->left_out) {
		json_member_uint(j, "left_out", l->left_out);
		(void)buf_printf(&list.text, "[%zu names that are not UTF-8 left out]",
				 l->left_out);
	}
	json_object_end(j);
	if (text)
		(void)buf_append(text, buf_str(&list.text), list.text.len);
	mcp_list_free(&list);
}
