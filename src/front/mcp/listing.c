/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - Directories, as text and as data. */
#include "front/mcp/listing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "front/file_visit.h"
#include "front/mcp/file_job.h"

const char listing_schema[] =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
	"\"files\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
	"\"name\":{\"type\":\"string\"},\"type\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"}},\"required\":[\"name\",\"type\",\"size\"]}},"
	"\"truncated\":{\"type\":\"boolean\"}},\"required\":[\"path\",\"files\",\"truncated\"]}";

struct listing *listing_new(void)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	return l;
}

void listing_free(void *arg)
{
	struct listing *l = arg;

	for (size_t i = 0; i < l->n; i++)
		free(l->files[i].name);
	free(l);
}

void listing_entry(struct file_job *j, const struct files_stat *st, struct files_text name)
{
	struct listing *l = j->arg;
	char *copy;

	if (l->n == LISTING_MAX || !utf8_valid(name.data, name.len) ||
	    !(copy = strndup(name.data, name.len))) {
		l->truncated = true;
		return;
	}
	l->files[l->n++] = (struct listing_file){ copy, *st };
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct listing_file *)a)->name,
		      ((const struct listing_file *)b)->name);
}

void listing_sort(struct listing *l)
{
	qsort(l->files, l->n, sizeof(l->files[0]), by_name);
}

void listing_text(const struct listing *l, struct buf *out)
{
	for (size_t i = 0; i < l->n; i++)
		(void)buf_printf(out, "%10" PRIu64 "  %s%s\n", l->files[i].stat.size,
				 l->files[i].name, l->files[i].stat.type == FILES_T_DIR ? "/" : "");
	if (l->n == 0)
		(void)buf_puts(out, "(empty)");
	if (l->truncated)
		(void)buf_puts(out, "[there are more]");
}

void listing_json(const struct listing *l, const char *path, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_member_str(&j, "path", path);
	json_key(&j, "files");
	json_array_begin(&j);
	for (size_t i = 0; i < l->n; i++) {
		const struct listing_file *f = &l->files[i];

		json_object_begin(&j);
		file_json(&j, "name", (struct files_text){ f->name, strlen(f->name) }, &f->stat,
			  (struct files_text){ "", 0 });
		json_object_end(&j);
	}
	json_array_end(&j);
	json_member_bool(&j, "truncated", l->truncated);
	json_object_end(&j);
	(void)json_finish(&j);
}
