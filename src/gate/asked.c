/* SPDX-License-Identifier: Apache-2.0 */
/* asked.c - A short list of names, the one that was asked for last at its head. See asked.h for the
 * contract. */
#include "gate/asked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asked_row {
	struct asked_row *next;
	struct gate_name name;
};

/* The row of this name, taken out of the list; or the oldest one when the list is full; or NULL. */
static struct asked_row *take(struct asked *a, const char *host)
{
	struct asked_row **at = &a->first;

	while (*at && strcmp((*at)->name.host, host) != 0) {
		if (!(*at)->next && a->n >= GATE_NAMES_SHOWN)
			break;
		at = &(*at)->next;
	}
	struct asked_row *row = *at;

	if (row) {
		*at = row->next;
		a->n--;
	}
	return row;
}

void asked_note(struct asked *a, const char *host, bool allowed)
{
	struct asked_row *row = take(a, host);

	if (!row)
		row = calloc(1, sizeof(*row));
	if (!row)
		return;
	if (strcmp(row->name.host, host) != 0) {
		memset(&row->name, 0, sizeof(row->name));
		(void)snprintf(row->name.host, sizeof(row->name.host), "%s", host);
	}
	row->name.count++;
	row->name.allowed = allowed;
	row->next = a->first;
	a->first = row;
	a->n++;
}

size_t asked_show(const struct asked *a, struct gate_name *ret, size_t max)
{
	size_t n = 0;

	for (const struct asked_row *row = a->first; row && n < max; row = row->next)
		ret[n++] = row->name;
	return n;
}

void asked_free(struct asked *a)
{
	while (a->first) {
		struct asked_row *row = a->first;

		a->first = row->next;
		free(row);
	}
	a->n = 0;
}
