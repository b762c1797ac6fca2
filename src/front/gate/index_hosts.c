/* SPDX-License-Identifier: Apache-2.0 */
/* index_hosts.c - From the settings of package indexes to entries of `egress`; see index_hosts.h.
 */
#include "front/gate/index_hosts.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "front/policy/egress_entry.h"
#include "front/policy/egress_rules.h"
#include "front/support/config.h"

bool index_of(const struct config *c, enum index_kind kind, struct index_url *ret)
{
	const char *url = kind == INDEX_PIP ? c->pip_index : c->npm_registry;

	return url && index_url_parse(kind, url, ret, NULL, NULL) == 0;
}

static void add_place(json_t *list, const char *methods, const char *host, unsigned int port)
{
	char entry[EGRESS_TEXT_MAX];

	(void)snprintf(entry, sizeof(entry), "%s%s:%u", methods, host, port);
	(void)json_array_append_new(list, json_string(entry));
}

/* Hosts of files of the best known indexes. */
static const struct {
	const char *index, *files;
} companions[] = { { "pypi.org", "files.pythonhosted.org" },
		   { "test.pypi.org", "test-files.pythonhosted.org" } };

void index_hosts_add(json_t *list, const struct config *c, const struct index_url *u, bool looked)
{
	add_place(list, looked ? "GET,HEAD " : "", u->name, u->port);
	for (size_t i = 0; i < ARRAY_SIZE(companions); i++)
		if (strcmp(u->host, companions[i].index) == 0)
			add_place(list, "", companions[i].files, 443);
	for (size_t i = 0; c->package_hosts[i]; i++)
		(void)json_array_append_new(list, json_string(c->package_hosts[i]));
}

json_t *index_hosts(const struct config *c, struct err *e)
{
	json_t *hosts = json_array(), *list;
	struct index_url u;

	for (int kind = 0; kind < INDEX_KINDS; kind++)
		if (index_of(c, (enum index_kind)kind, &u))
			index_hosts_add(hosts, c, &u, false);
	list = egress_list(hosts, e);
	json_decref(hosts);
	return list;
}

const char *index_server(const struct config *c, const char *host)
{
	static struct index_url u;

	for (int kind = 0; kind < INDEX_KINDS; kind++)
		if (index_of(c, (enum index_kind)kind, &u) && u.is_address &&
		    strcmp(u.name, host) == 0)
			return u.host;
	return NULL;
}
