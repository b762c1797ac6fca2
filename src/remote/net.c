/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - `caisson net`: hosts that a sandbox may reach, its connections, and what was refused. */
#include <stdio.h>

#include "base/fd.h"
#include "remote/list.h"
#include "remote/verb.h"

static bool is_allowed(const json_t *name)
{
	return json_is_true(json_object_get(name, "allowed"));
}

static void put_host(struct table *t, const json_t *name)
{
	table_cell(t, is_allowed(name) ? STYLE_PLAIN : STYLE_BAD, list_text(name, "host"));
}

static void put_allowed(struct table *t, const json_t *name)
{
	table_cell(t, STYLE_DIM, is_allowed(name) ? "allowed" : "refused");
}

static void put_port(struct table *t, const json_t *refusal)
{
	unsigned long long port = list_uint(refusal, "port");

	if (port)
		table_printf(t, "%llu", port);
	else
		table_cell(t, STYLE_DIM, "-");
}

static const struct list_column connections[] = {
	{ "HOST", .key = "host" },
	{ "PORT", LIST_NUMBER, .key = "port" },
	{ "ADDRESS", .key = "address", .style = STYLE_DIM },
	{ "STATE", .key = "state" },
	{ "OUT", LIST_SIZE, .key = "bytes_out" },
	{ "IN", LIST_SIZE, .key = "bytes_in" },
	{ "AGE", LIST_MS, .key = "age_ms" },
};

static const struct list_column names[] = {
	{ "ASKED FOR", .put = put_host },
	{ "TIMES", LIST_NUMBER, .key = "count" },
	{ "", .put = put_allowed },
};

static const struct list_column refusals[] = {
	{ "REFUSED", .key = "host", .style = STYLE_BAD },
	{ "PORT", LIST_NUMBER, .put = put_port },
	{ "WHY", .key = "why" },
	{ "WHEN", .key = "at", .style = STYLE_DIM },
};

static void print_more(const struct list_column *columns, size_t n, const json_t *rows)
{
	if (json_array_size(rows) == 0)
		return;
	(void)printf("\n");
	list_print(columns, n, rows);
}

static void print_net(const struct session *s, const json_t *net)
{
	static const struct {
		const char *key, *text;
	} totals[] = {
		{ "opened", "connections opened, " },
		{ "refused", "refused, " },
		{ "failed", "failed; " },
		{ "names_asked", "names asked for, " },
		{ "names_refused", "refused; " },
		{ "bytes_out", "bytes out, " },
		{ "bytes_in", "in\n" },
	};

	(void)s;
	list_print(connections, ARRAY_SIZE(connections), json_object_get(net, "connections"));
	print_more(names, ARRAY_SIZE(names), json_object_get(net, "names"));
	print_more(refusals, ARRAY_SIZE(refusals), json_object_get(net, "refusals"));
	(void)printf("\n");
	for (size_t i = 0; i < ARRAY_SIZE(totals); i++)
		(void)printf("%llu %s", (unsigned long long)list_uint(net, totals[i].key),
			     totals[i].text);
}

static void print_egress(const struct session *s, const json_t *v)
{
	const json_t *entry;
	size_t i;

	(void)s;
	json_array_foreach(json_object_get(v, "egress"), i, entry)
	{
		(void)printf("%s\n", json_string_value(entry));
	}
}

int remote_net(struct session *s)
{
	/* `--egress none` is an empty list. */
	json_t *list = remote_options_list(s->o.egress, true);
	json_t *body = list ? json_pack("{s:o}", "egress", list) : NULL;

	return session_show(s,
			    api_sandbox(&s->api, body ? "PUT" : "GET", s->o.rest[0],
					body ? "/egress" : "/net", body, &s->problem),
			    list ? print_egress : print_net);
}
