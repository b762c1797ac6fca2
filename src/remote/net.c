/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - `caisson net`: what a sandbox may reach, what it is connected to, what was refused. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "remote/list.h"
#include "remote/place.h"
#include "remote/session.h"
#include "remote/verbs.h"

#define OUT_MAX (4u << 20)

static void put_size(struct table *t, uint64_t bytes)
{
	char text[NUM_FORMAT_MAX];

	table_cell(t, STYLE_PLAIN, bytes ? num_format_size(bytes, text, sizeof(text)) : "0");
}

static void print_connections(const json_t *net, struct buf *out)
{
	static const struct table_column titles[] = {
		{ "HOST", false }, { "PORT", true }, { "ADDRESS", false }, { "STATE", false },
		{ "OUT", true },   { "IN", true },   { "AGE", true },
	};
	struct table t;
	char text[NUM_FORMAT_MAX];
	size_t i;
	const json_t *c;

	table_init(&t, titles, ARRAY_SIZE(titles));
	json_array_foreach(json_object_get(net, "connections"), i, c)
	{
		table_cell(&t, STYLE_PLAIN, list_text(c, "host"));
		table_printf(&t, "%llu", (unsigned long long)list_uint(c, "port"));
		table_cell(&t, STYLE_DIM, list_text(c, "address"));
		table_cell(&t, STYLE_PLAIN, list_text(c, "state"));
		put_size(&t, list_uint(c, "bytes_out"));
		put_size(&t, list_uint(c, "bytes_in"));
		table_cell(&t, STYLE_PLAIN,
			   num_format_ms(list_uint(c, "age_ms"), text, sizeof(text)));
	}
	table_render(&t, session_color(), 0, out);
	table_free(&t);
}

static void print_names(const json_t *net, struct buf *out)
{
	static const struct table_column titles[] = { { "ASKED FOR", false },
						      { "TIMES", true },
						      { "", false } };
	struct table t;
	size_t i;
	const json_t *n;

	if (json_array_size(json_object_get(net, "names")) == 0)
		return;
	table_init(&t, titles, ARRAY_SIZE(titles));
	json_array_foreach(json_object_get(net, "names"), i, n)
	{
		bool allowed = json_is_true(json_object_get(n, "allowed"));

		table_cell(&t, allowed ? STYLE_PLAIN : STYLE_BAD, list_text(n, "host"));
		table_printf(&t, "%llu", (unsigned long long)list_uint(n, "count"));
		table_cell(&t, STYLE_DIM, allowed ? "allowed" : "refused");
	}
	(void)buf_puts(out, "\n");
	table_render(&t, session_color(), 0, out);
	table_free(&t);
}

static void print_refusals(const json_t *net, struct buf *out)
{
	static const struct table_column titles[] = {
		{ "REFUSED", false }, { "PORT", true }, { "WHY", false }, { "WHEN", false }
	};
	struct table t;
	size_t i;
	const json_t *r;

	if (json_array_size(json_object_get(net, "refusals")) == 0)
		return;
	table_init(&t, titles, ARRAY_SIZE(titles));
	json_array_foreach(json_object_get(net, "refusals"), i, r)
	{
		table_cell(&t, STYLE_BAD, list_text(r, "host"));
		if (list_uint(r, "port"))
			table_printf(&t, "%llu", (unsigned long long)list_uint(r, "port"));
		else
			table_cell(&t, STYLE_DIM, "-");
		table_cell(&t, STYLE_PLAIN, list_text(r, "why"));
		table_cell(&t, STYLE_DIM, list_text(r, "at"));
	}
	(void)buf_puts(out, "\n");
	table_render(&t, session_color(), 0, out);
	table_free(&t);
}

static void print_net(const json_t *net)
{
	_buf_ struct buf out = BUF_INIT(OUT_MAX);

	print_connections(net, &out);
	print_names(net, &out);
	print_refusals(net, &out);
	(void)buf_printf(
		&out,
		"\n%llu connections opened, %llu refused, %llu failed; %llu names asked for, "
		"%llu refused; %llu bytes out, %llu in\n",
		(unsigned long long)list_uint(net, "opened"),
		(unsigned long long)list_uint(net, "refused"),
		(unsigned long long)list_uint(net, "failed"),
		(unsigned long long)list_uint(net, "names_asked"),
		(unsigned long long)list_uint(net, "names_refused"),
		(unsigned long long)list_uint(net, "bytes_out"),
		(unsigned long long)list_uint(net, "bytes_in"));
	(void)fwrite(buf_str(&out), 1, out.len, stdout);
}

static void print_egress(const json_t *v)
{
	size_t i;
	const json_t *entry;

	json_array_foreach(json_object_get(v, "egress"), i, entry)(void)
		printf("%s\n", json_string_value(entry));
}

/* `--egress none` is an empty list. */
static json_t *body_of(const struct remote_options *o)
{
	json_t *list = remote_options_list(o->egress, true);

	return list ? json_pack("{s:o}", "egress", list) : NULL;
}

int verb_net(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_NET,
		.usage = "net NAME [--egress HOST]...",
		.text = "Shows the connections that go out of a sandbox now, names it asked for, what was refused, and how much was moved.\n"
			"With --egress: from now on it may reach these hosts and no others; none stands for nothing.\n",
		.min = 1,
		.max = 1,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		_buf_ struct buf path = BUF_INIT(1024);
		json_t *body = body_of(&s.o), *v = NULL;
		struct err e = { 0 };

		url_sandbox(&path, s.o.rest[0], body ? "/egress" : "/net");
		if (place_check_name(s.o.rest[0], &e) < 0)
			session_fail_err(&s, &e);
		else if (!(v = api_json(&s.api, body ? "PUT" : "GET", buf_str(&path), body,
					&s.problem)))
			session_fail(&s);
		else if (s.o.json)
			session_json(v);
		else if (body)
			print_egress(v);
		else
			print_net(v);
		json_decref(v);
		json_decref(body);
	}
	return session_end(&s);
}
