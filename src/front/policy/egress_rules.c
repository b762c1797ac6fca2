/* SPDX-License-Identifier: Apache-2.0 */
/* egress_rules.c - Lists of entries: to their canonical form, and to rules of the gate. */
#include "front/policy/egress_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "front/policy/egress_entry.h"

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static json_t *to_json(char (*texts)[EGRESS_TEXT_MAX], size_t n)
{
	json_t *out = json_array();

	qsort(texts, n, EGRESS_TEXT_MAX, compare);
	for (size_t i = 0; i < n; i++)
		if ((i == 0 || strcmp(texts[i], texts[i - 1]) != 0) &&
		    json_array_append_new(out, json_string(texts[i])) < 0) {
			json_decref(out);
			return NULL; /* never a list that lacks an entry */
		}
	return out;
}

json_t *egress_list(const json_t *list, struct err *e)
{
	size_t n = json_array_size(list);
	char(*texts)[EGRESS_TEXT_MAX];
	json_t *out = NULL;

	if (n == 0)
		return NULL;
	texts = calloc(n, EGRESS_TEXT_MAX);
	if (!texts) {
		(void)err_set(e, -ENOMEM, "read the list");
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(list, i);
		struct egress_entry entry;

		if (egress_entry_parse(json_string_value(v), json_string_length(v), &entry, e) <
		    0) {
			free(texts);
			return NULL;
		}
		memcpy(texts[i], entry.text, EGRESS_TEXT_MAX);
	}
	out = to_json(texts, n);
	free(texts);
	if (!out)
		(void)err_set(e, -ENOMEM, "read the list");
	return out;
}

static int add_port(struct egress_rules *r, uint16_t port, struct err *e)
{
	for (size_t i = 0; i < r->n_ports; i++)
		if (r->ports[i] == port)
			return 0;
	if (r->n_ports == GATE_PORTS_MAX)
		return err_say(e, -EINVAL, "at most %u different ports are allowed",
			       GATE_PORTS_MAX);
	r->ports[r->n_ports++] = port;
	return 0;
}

int egress_rules(const json_t *list, struct egress_rules *ret, struct err *e)
{
	struct egress_entry entry;
	struct gate_rule two[2];
	size_t i;
	json_t *v;

	ret->n_rules = ret->n_ports = 0;
	json_array_foreach(list, i, v)
	{
		if (egress_entry_parse(json_string_value(v), json_string_length(v), &entry, e) < 0)
			return -EINVAL;
		size_t n = egress_entry_rules(&entry, two);

		if (ret->n_rules + n > GATE_RULES_MAX)
			return err_say(e, -EINVAL,
				       "too many entries: at most %u names and ports together",
				       GATE_RULES_MAX);
		for (size_t k = 0; k < n; k++) {
			if (add_port(ret, two[k].port, e) < 0)
				return -EINVAL;
			ret->rules[ret->n_rules++] = two[k];
		}
	}
	return 0;
}
