/* SPDX-License-Identifier: Apache-2.0 */
/* bindings.c - The bindings of one sandbox: checked against the vault, looked up by host. */
#include "gate/bindings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate/ca.h"
#include "gate/placeholder.h"
#include "vault/vault.h"

static bool ends(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

static bool is_good(const struct gate_bind *b, const struct vault *v)
{
	if (!ends(b->host, sizeof(b->host)) || !ends(b->name, sizeof(b->name)) ||
	    !ends(b->owner, sizeof(b->owner)) || !ends(b->placeholder, sizeof(b->placeholder)) ||
	    !b->placeholder[0])
		return false;
	const struct secret *s = vault_find(v, b->name, b->owner);

	return s && vault_lists(s->hosts, b->host);
}

int bindings_set(struct bindings *b, const struct vault *v, const struct gate_bind *list, size_t n)
{
	if (n > GATE_BINDS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!is_good(&list[i], v))
			return -EINVAL;
	struct gate_bind *copy = malloc(n * sizeof(*list) + 1);

	if (!copy || (!b->ca && ca_new(&b->ca) < 0)) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, list, n * sizeof(*list));
	free(b->list);
	b->list = copy;
	b->n = n;
	return 0;
}

void bindings_free(struct bindings *b)
{
	free(b->list);
	ca_free(b->ca);
	*b = (struct bindings){ 0 };
}

bool bindings_has(const struct bindings *b, const char *host)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->list[i].host, host) == 0)
			return true;
	return false;
}

static bool is_listed(const struct replacement *list, size_t n, const char *placeholder)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].from, placeholder) == 0)
			return true;
	return false;
}

static const struct secret *value_of(const struct gate_bind *b, const struct vault *v,
				     const char *host)
{
	const struct secret *s = strcmp(b->host, host) == 0 ? vault_find(v, b->name, b->owner) :
							      NULL;

	/* The operator may have changed the hosts since it was bound. */
	return s && vault_lists(s->hosts, host) ? s : NULL;
}

bool bindings_value(const struct bindings *b, const struct vault *v, const char *placeholder,
		    const char *host)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->list[i].placeholder, placeholder) == 0 &&
		    value_of(&b->list[i], v, host))
			return true;
	return false;
}

size_t bindings_replacements(const struct bindings *b, const struct vault *v, const char *host,
			     struct replacement *ret, struct replacement *ret_stray,
			     size_t *ret_n_stray)
{
	size_t n = 0, stray = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct secret *s = value_of(&b->list[i], v, host);

		if (s)
			ret[n++] = (struct replacement){ b->list[i].placeholder, s->value, s };
	}
	for (size_t i = 0; i < b->n; i++)
		if (!is_listed(ret, n, b->list[i].placeholder) &&
		    !is_listed(ret_stray, stray, b->list[i].placeholder))
			ret_stray[stray++] =
				(struct replacement){ b->list[i].placeholder, "", NULL };
	*ret_n_stray = stray;
	return n;
}

const char *bindings_name(const struct bindings *b, const char *placeholder)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->list[i].placeholder, placeholder) == 0)
			return b->list[i].name;
	return "";
}
