/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.c - Messages for a client that is away: a laptop that sleeps, a proxy that restarts. Bounded; what has no room is
 * counted, and said when the client is back.
 */
#include <stdlib.h>
#include <string.h>

#include "front/jupyter/jupyter.h"

#define HELD_MAX 2000u
#define HELD_BYTES (16u << 20)

struct jheld_message {
	struct jheld_message *next;
	struct frame_message m; /* points into text */
	char text[];
};

void jheld_init(struct jheld *h)
{
	*h = (struct jheld){ 0 };
	h->last = &h->first;
}

static const char *copy(char **at, const char *data, size_t len)
{
	char *to = *at;

	memcpy(to, data, len);
	to[len] = '\0';
	*at += len + 1;
	return to;
}

static void copy_part(char **at, struct frame_part *p)
{
	p->data = copy(at, p->data, p->len);
}

void jheld_add(struct jheld *h, const struct frame_message *m)
{
	size_t size = strlen(m->channel) + strlen(m->type) + strlen(m->id) + m->header.len +
		      m->parent.len + m->metadata.len + m->content.len + 7;
	struct jheld_message *one = h->n < HELD_MAX && size <= HELD_BYTES - h->bytes ?
					    malloc(sizeof(*one) + size) :
					    NULL;

	if (!one) {
		h->dropped++;
		return;
	}
	char *at = one->text;

	one->next = NULL;
	one->m = *m;
	one->m.channel = copy(&at, m->channel, strlen(m->channel));
	one->m.type = copy(&at, m->type, strlen(m->type));
	one->m.id = copy(&at, m->id, strlen(m->id));
	copy_part(&at, &one->m.header);
	copy_part(&at, &one->m.parent);
	copy_part(&at, &one->m.metadata);
	copy_part(&at, &one->m.content);
	*h->last = one;
	h->last = &one->next;
	h->n++;
	h->bytes += size;
}

static void nobody(const struct frame_message *m, void *arg)
{
	(void)m;
	(void)arg;
}

size_t jheld_give(struct jheld *h, void (*fn)(const struct frame_message *m, void *arg), void *arg)
{
	struct jheld_message *one = h->first;
	size_t dropped = h->dropped;

	jheld_init(h);
	while (one) {
		struct jheld_message *next = one->next;

		fn(&one->m, arg);
		free(one);
		one = next;
	}
	return dropped;
}

void jheld_free(struct jheld *h)
{
	(void)jheld_give(h, nobody, NULL);
}
