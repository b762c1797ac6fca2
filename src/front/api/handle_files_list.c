/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_files_list.c - Lists of files, by name and page by page.
 *
 * A directory has its names in no order, so each page looks at all of them and keeps the first ones
 * after the cursor, in a heap. The top of the heap is the last of them, and is dropped when a name
 * before it comes. So a list needs the memory of one page, however long the directory is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "front/api/file_exchange.h"
#include "front/api/handlers.h"
#include "front/files/artifact.h"
#include "front/http/reply.h"
#include "front/http/serve.h"

#define ONE_MAX (256u << 10)
#define LIST_MAX (16u << 20) /* bytes of an answer */
#define LIST_LIMIT 1000u     /* entries of a page, unless the client asks for another number */
#define LOOKED_AT 1000000u   /* entries of a tree; the list of a larger one is cut */

/* ---- the heap ------------------------------------------------------------------------------ */

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int r = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return r ? r : (a_len > b_len) - (a_len < b_len);
}

static int by_name(const void *a, const void *b)
{
	const struct file_entry *x = *(struct file_entry *const *)a;
	const struct file_entry *y = *(struct file_entry *const *)b;

	return compare(x->text, x->name_len, y->text, y->name_len);
}

static void swap(struct file_entry **a, struct file_entry **b)
{
	struct file_entry *t = *a;

	*a = *b;
	*b = t;
}

static void sink(struct file_exchange *v)
{
	struct file_entry **h = v->entries;

	for (size_t i = 0, child; (child = 2 * i + 1) < v->n_entries; i = child) {
		if (child + 1 < v->n_entries && by_name(&h[child + 1], &h[child]) > 0)
			child++;
		if (by_name(&h[child], &h[i]) <= 0)
			break;
		swap(&h[child], &h[i]);
	}
}

/* The last of the kept names belongs to another page. */
static void drop_last(struct file_exchange *v)
{
	v->entries_bytes -= v->entries[0]->json_len + 2;
	free(v->entries[0]);
	v->entries[0] = v->entries[--v->n_entries];
	sink(v);
	v->more = true;
}

static bool push(struct file_exchange *v, struct file_entry *e)
{
	if (v->n_entries == v->cap_entries) {
		size_t cap = v->cap_entries ? v->cap_entries * 2 : 64;
		void *larger = realloc(v->entries, cap * sizeof(struct file_entry *));

		if (!larger)
			return false;
		v->entries = larger;
		v->cap_entries = cap;
	}
	size_t i = v->n_entries++;

	v->entries[i] = e;
	v->entries_bytes += e->json_len + 2;
	for (size_t up; i > 0 && by_name(&v->entries[up = (i - 1) / 2], &v->entries[i]) < 0; i = up)
		swap(&v->entries[up], &v->entries[i]);
	return true;
}

/* ---- entries ------------------------------------------------------------------------------- */

static struct file_entry *entry_new(const struct files_stat *st, struct files_text name,
				    struct files_text target)
{
	_buf_ struct buf b = BUF_INIT(ONE_MAX);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	file_json(&j, "name", name, st, target);
	json_object_end(&j);
	struct file_entry *e = json_finish(&j) < 0 ? NULL :
						     malloc(sizeof(*e) + name.len + b.len + 1);

	if (!e)
		return NULL;
	e->name_len = name.len;
	e->json_len = b.len;
	memcpy(e->text, name.data, name.len);
	memcpy(e->text + name.len, buf_str(&b), b.len + 1);
	return e;
}

static void on_entry(struct file_call *c, const struct files_stat *st, struct files_text name,
		     struct files_text target)
{
	struct file_exchange *v = file_exchange_of(c);

	if (v->after && compare(name.data, name.len, v->after, strlen(v->after)) <= 0)
		return;
	/* A name behind the kept ones is not on this page; also if bytes were what made it full. */
	if (v->n_entries == v->most_entries &&
	    compare(name.data, name.len, v->entries[0]->text, v->entries[0]->name_len) > 0) {
		v->more = true;
		return;
	}
	struct file_entry *e = entry_new(st, name, target);

	if (!e || !push(v, e)) {
		v->truncated = true;
		free(e);
		return;
	}
	if (v->n_entries > v->most_entries)
		drop_last(v);
	while (v->entries_bytes > LIST_MAX - ONE_MAX) {
		drop_last(v);
		v->most_entries = v->n_entries;
	}
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* The address of the next page. */
static void put_next(const struct file_exchange *v, const struct request_context *context,
		     struct json *j)
{
	_buf_ struct buf b = BUF_INIT(64u << 10);
	const struct files_request *q = &v->call.q;
	const struct file_entry *last = v->n_entries > 0 ? v->entries[v->n_entries - 1] : NULL;
	char *name = v->more && last ? strndup(last->text, last->name_len) : NULL;

	if (!name)
		return;
	(void)buf_printf(&b, "/v1/sandboxes/%s/files/list?path=", context->params.value[0]);
	artifact_escape(v->call.path, &b);
	if (q->flags & FILES_RECURSIVE)
		(void)buf_puts(&b, "&recursive=true");
	if (q->depth < FILES_DEPTH_MAX)
		(void)buf_printf(&b, "&depth=%u", q->depth + 1);
	(void)buf_printf(&b, "&limit=%zu&cursor=", v->page);
	artifact_escape(name, &b);
	free(name);
	json_member_str(j, "next", buf_str(&b));
}

static void done_list(struct file_call *c)
{
	struct reply answer;
	struct file_exchange *v = file_exchange_of(c);
	struct http_exchange *x = file_exchange_done(v);

	if (!x)
		return;
	if (v->n_entries > 0)
		qsort(v->entries, v->n_entries, sizeof(struct file_entry *), by_name);
	struct json *j = reply_object(&answer, LIST_MAX);

	json_member_str(j, "path", c->path);
	json_member_array(j, "entries");
	for (size_t i = 0; i < v->n_entries; i++)
		json_raw(j, v->entries[i]->text + v->entries[i]->name_len, v->entries[i]->json_len);
	json_array_end(j);
	json_member_bool(j, "truncated", v->more || v->truncated || c->end.flags & FILES_CUT);
	put_next(v, context_of(x), j);
	reply_end(&answer, x, 200);
	file_exchange_end(v);
}

static const struct file_call_ops list_ops = { .stat = on_entry, .done = done_list };

void handle_file_list(struct sandbox *s, struct http_exchange *x)
{
	struct file_exchange *v = file_exchange_new(s, x, "path", NULL);

	if (!v)
		return;
	v->page = context_number(x, "limit", LIST_LIMIT);
	v->most_entries = v->page;
	v->after = json_string_value(json_object_get(v->fields, "cursor"));
	v->call.q.flags = file_exchange_flag(v, "recursive", FILES_RECURSIVE);
	v->call.q.limit = LOOKED_AT;
	v->call.q.depth = (uint32_t)context_number(x, "depth", FILES_DEPTH_MAX + 1) - 1;
	file_exchange_run(v, FILES_LIST, &list_ops);
}
