/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - `caisson ps`, and the listing that `top` shares with it. */
#include "remote/list.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/num.h"
#include "remote/session.h"
#include "remote/verbs.h"

#define PAGES_MAX 1000 /* a cursor that never ends is the daemon's fault, not our loop */
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

/* One page into @all. The next cursor, owned by @ret_page; NULL at the end or with the problem. */
static int page(struct session *s, const char *cursor, json_t *all, json_t **ret_page)
{
	_buf_ struct buf path = BUF_INIT(64u << 10);
	size_t i;
	json_t *v;

	(void)buf_puts(&path, "/v1/sandboxes");
	for (size_t k = 0; s->o.label[k]; k++)
		url_query(&path, "label", s->o.label[k]);
	if (cursor)
		url_query(&path, "cursor", cursor);
	json_t *root = api_json(&s->api, "GET", buf_str(&path), NULL, &s->problem);

	*ret_page = root;
	if (!root)
		return -1;
	json_array_foreach(json_object_get(root, "sandboxes"), i,
			   v) if (s->o.all || strcmp(list_text(v, "state"), "running") == 0)(void)
		json_array_append(all, v);
	return 0;
}

json_t *list_fetch(struct session *s)
{
	json_t *all = json_array(), *root = NULL;
	const char *cursor = NULL;

	for (int i = 0; i < PAGES_MAX; i++) {
		json_t *before = root;
		int r = page(s, cursor, all, &root);

		json_decref(before); /* held the cursor */
		if (r < 0) {
			json_decref(all);
			return NULL;
		}
		cursor = json_string_value(json_object_get(root, "next_cursor"));
		if (!cursor)
			break;
	}
	json_decref(root);
	return all;
}

enum table_style list_style(const char *state)
{
	return strcmp(state, "running") == 0 ? STYLE_GOOD :
	       strcmp(state, "lost") == 0    ? STYLE_BAD :
					       STYLE_DIM;
}

/* ---- ps ------------------------------------------------------------------------------------ */

static void put_time(struct table *t, uint64_t seconds)
{
	char text[NUM_FORMAT_MAX];

	table_cell(t, STYLE_PLAIN,
		   seconds ? num_format_ms(seconds * 1000, text, sizeof(text)) : "0 s");
}

static void put_labels(struct table *t, const json_t *labels)
{
	_buf_ struct buf b = BUF_INIT(4096);
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)labels, key, v)(void)
		buf_printf(&b, "%s%s=%s", b.len ? "," : "", key,
			   json_is_string(v) ? json_string_value(v) : "?");
	table_cell(t, STYLE_PLAIN, buf_str(&b));
}

static void put_row(struct table *t, const json_t *v)
{
	const json_t *spec = json_object_get(v, "spec");
	const char *state = list_text(v, "state");
	char text[NUM_FORMAT_MAX];

	table_cell(t, STYLE_PLAIN, list_text(v, "name"));
	table_cell(t, list_style(state), state);
	put_time(t, list_uint(v, "age_seconds"));
	put_time(t, list_uint(v, "idle_seconds"));
	table_printf(t, "%llu", (unsigned long long)list_uint(v, "executions"));
	table_cell(t, STYLE_PLAIN,
		   num_format_size(list_uint(spec, "memory_mib") << 20, text, sizeof(text)));
	table_printf(t, "%g", json_number_value(json_object_get(spec, "cpus")));
	put_labels(t, json_object_get(spec, "labels"));
	table_cell(t, STYLE_DIM, list_text(v, "reason"));
}

static void print_table(const json_t *all)
{
	static const struct table_column columns[] = {
		{ "NAME", false }, { "STATE", false },  { "AGE", true },
		{ "IDLE", true },  { "RUNS", true },    { "MEMORY", true },
		{ "CPUS", true },  { "LABELS", false }, { "REASON", false },
	};
	_buf_ struct buf out = BUF_INIT(OUT_MAX);
	struct table t;
	size_t i;
	const json_t *v;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach(all, i, v) put_row(&t, v);
	table_render(&t, session_color(), 0, &out);
	(void)fwrite(buf_str(&out), 1, out.len, stdout);
	table_free(&t);
}

int verb_ps(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_PS,
		.usage = "ps [-a] [--label KEY=VALUE] [OPTIONS]",
		.text = "Lists your sandboxes: those that run, with -a also those that were stopped or "
			"lost.\n",
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		json_t *all = list_fetch(&s);

		if (!all) {
			session_fail(&s);
		} else if (s.o.json) {
			json_t *root = json_pack("{s:o}", "sandboxes", all);

			session_json(root);
			json_decref(root);
		} else {
			print_table(all);
			json_decref(all);
		}
	}
	return session_end(&s);
}
