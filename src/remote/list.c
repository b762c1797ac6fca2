/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - Tables from JSON; `caisson ps`, and the list of sandboxes that `top` shares with it. */
#include "remote/list.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/num.h"
#include "remote/tty.h"
#include "remote/verb.h"

#define PAGES_MAX 1000 /* a daemon whose cursor never ends must not keep us in the loop */
#define OUT_MAX (64u << 20)

const char *list_text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

uint64_t list_uint(const json_t *object, const char *key)
{
	double v = json_number_value(json_object_get(object, key));

	return v > 0 && v < 1e18 ? (uint64_t)v : 0;
}

/* ---- tables -------------------------------------------------------------------------------- */

static void put_cell(struct table *t, const struct list_column *c, const json_t *row)
{
	const json_t *object = c->in ? json_object_get(row, c->in) : row;
	uint64_t v = c->key ? list_uint(object, c->key) : 0;
	char text[NUM_FORMAT_MAX] = "0";

	if (c->put) {
		c->put(t, row);
		return;
	}
	switch (c->kind) {
	case LIST_TEXT:
		table_cell(t, c->style, list_text(object, c->key));
		return;
	case LIST_NUMBER:
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
		break;
	case LIST_SIZE:
		if (v)
			(void)num_format_size(v, text, sizeof(text));
		break;
	case LIST_MIB:
		(void)num_format_size(v << 20, text, sizeof(text));
		break;
	case LIST_MS:
		(void)num_format_ms(v, text, sizeof(text));
		break;
	case LIST_SECONDS:
		(void)snprintf(text, sizeof(text), "0 s");
		if (v)
			(void)num_format_ms(v * 1000, text, sizeof(text));
		break;
	case LIST_COUNT:
		(void)snprintf(text, sizeof(text), "%zu",
			       json_array_size(json_object_get(object, c->key)));
		break;
	}
	table_cell(t, c->style, text);
}

void list_render(const struct list_column *columns, size_t n, const json_t *rows, size_t width,
		 struct buf *out)
{
	struct table_column titles[TABLE_COLUMNS_MAX];
	struct table t;
	const json_t *row;
	size_t i;

	for (size_t k = 0; k < n; k++)
		titles[k] = (struct table_column){ columns[k].title, columns[k].kind != LIST_TEXT };
	table_init(&t, titles, n);
	json_array_foreach(rows, i, row)
	{
		for (size_t k = 0; k < n; k++)
			put_cell(&t, &columns[k], row);
	}
	table_render(&t, tty_color(), width, out);
	table_free(&t);
}

void list_print(const struct list_column *columns, size_t n, const json_t *rows)
{
	_buf_ struct buf out = BUF_INIT(OUT_MAX);

	list_render(columns, n, rows, 0, &out);
	(void)fwrite(buf_str(&out), 1, out.len, stdout);
}

int list_show(const struct session *s, json_t *v, const char *key,
	      const struct list_column *columns, size_t n)
{
	if (v && !s->o.json)
		list_print(columns, n, json_object_get(v, key));
	return session_show(s, v, NULL);
}

/* ---- sandboxes ----------------------------------------------------------------------------- */

json_t *list_fetch(struct session *s)
{
	json_auto_t *all = json_array();
	json_auto_t *root = NULL; /* the page at hand; it has the cursor */
	const char *cursor = NULL;

	for (int n = 0; n < PAGES_MAX && (n == 0 || cursor); n++) {
		_buf_ struct buf path = BUF_INIT(64u << 10);
		size_t i;
		json_t *v;

		(void)buf_puts(&path, "/v1/sandboxes");
		for (size_t k = 0; s->o.label[k]; k++)
			url_query(&path, "label", s->o.label[k]);
		if (cursor)
			url_query(&path, "cursor", cursor);
		json_decref(root);
		root = api_json(&s->api, "GET", buf_str(&path), NULL, &s->problem);
		if (!root)
			return NULL;
		json_array_foreach(json_object_get(root, "sandboxes"), i, v)
		{
			if (s->o.all || strcmp(list_text(v, "state"), "running") == 0)
				(void)json_array_append(all, v);
		}
		cursor = json_string_value(json_object_get(root, "next_cursor"));
	}
	return json_incref(all);
}

void list_put_state(struct table *t, const json_t *sandbox)
{
	const char *state = list_text(sandbox, "state");

	table_cell(t,
		   strcmp(state, "running") == 0 ? STYLE_GOOD :
		   strcmp(state, "lost") == 0    ? STYLE_BAD :
						   STYLE_DIM,
		   state);
}

static void put_cpus(struct table *t, const json_t *sandbox)
{
	table_printf(t, "%g",
		     json_number_value(json_object_get(json_object_get(sandbox, "spec"), "cpus")));
}

static void put_labels(struct table *t, const json_t *sandbox)
{
	json_t *labels = json_object_get(json_object_get(sandbox, "spec"), "labels"), *v;
	_buf_ struct buf b = BUF_INIT(4096);
	const char *key;

	json_object_foreach(labels, key, v)
	{
		(void)buf_printf(&b, "%s%s=%s", b.len ? "," : "", key,
				 json_is_string(v) ? json_string_value(v) : "?");
	}
	table_cell(t, STYLE_PLAIN, buf_str(&b));
}

int remote_ps(struct session *s)
{
	static const struct list_column columns[] = {
		{ "NAME", .key = "name" },
		{ "STATE", .put = list_put_state },
		{ "AGE", LIST_SECONDS, .key = "age_seconds" },
		{ "IDLE", LIST_SECONDS, .key = "idle_seconds" },
		{ "RUNS", LIST_NUMBER, .key = "executions" },
		{ "MEMORY", LIST_MIB, .key = "memory_mib", .in = "spec" },
		{ "CPUS", LIST_NUMBER, .put = put_cpus },
		{ "LABELS", .put = put_labels },
		{ "REASON", LIST_TEXT, .key = "reason", .style = STYLE_DIM },
	};
	json_t *all = list_fetch(s);

	return list_show(s, all ? json_pack("{s:o}", "sandboxes", all) : NULL, "sandboxes", columns,
			 ARRAY_SIZE(columns));
}
