/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.c - Messages for clients that are away: a laptop that sleeps, a proxy that restarts. For
 * each session that left, whoever else is connected; bounded, and those who left last are
 * remembered. What has no room is counted, and said to the client when it is back.
 */
#include <stdlib.h>
#include <string.h>

#include "front/jupyter/jupyter.h"

#define SESSIONS_MAX 4u
#define HELD_MAX 2000u         /* of one session */
#define HELD_BYTES (16u << 20) /* of one kernel */

struct jheld_message {
	struct jheld_message *next;
	struct frame_message m; /* points into text */
	size_t size;
	char text[];
};

struct jheld {
	struct jheld *next;
	struct jheld_message *first, **last;
	size_t n, dropped;
	char session[JUPYTER_SESSION_MAX];
};

static struct jheld **find(struct jkernel *k, const char *session)
{
	struct jheld **at = &k->held;

	while (*at && strcmp((*at)->session, session) != 0)
		at = &(*at)->next;
	return at;
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

static void add(struct jkernel *k, struct jheld *h, const struct frame_message *m)
{
	size_t size = strlen(m->channel) + strlen(m->type) + strlen(m->id) + m->header.len +
		      m->parent.len + m->metadata.len + m->content.len + 7;
	struct jheld_message *one = h->n < HELD_MAX && size <= HELD_BYTES - k->held_bytes ?
					    malloc(sizeof(*one) + size) :
					    NULL;

	if (!one) {
		h->dropped++;
		return;
	}
	char *at = one->text;

	one->next = NULL;
	one->size = size;
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
	k->held_bytes += size;
}

void jheld_add(struct jkernel *k, const char *session, const struct frame_message *m)
{
	for (struct jheld *h = k->held; h; h = h->next)
		if (!session || strcmp(h->session, session) == 0)
			add(k, h, m);
}

static void nobody(const struct frame_message *m, void *arg)
{
	(void)m;
	(void)arg;
}

/* Takes it out of the list before anything is said: that may have others come and go. */
static size_t give(struct jkernel *k, struct jheld **at,
		   void (*fn)(const struct frame_message *m, void *arg), void *arg)
{
	struct jheld *h = *at;
	size_t dropped = h->dropped;

	*at = h->next;
	for (struct jheld_message *one = h->first, *next; one; one = next) {
		next = one->next;
		k->held_bytes -= one->size;
		fn(&one->m, arg);
		free(one);
	}
	free(h);
	return dropped;
}

void jheld_begin(struct jkernel *k, const char *session)
{
	struct jheld *h = session[0] && !*find(k, session) ? calloc(1, sizeof(*h)) : NULL;
	struct jheld **at = &k->held;

	if (!h)
		return;
	h->last = &h->first;
	memcpy(h->session, session, strlen(session) + 1);
	h->next = k->held;
	k->held = h;
	for (size_t i = 0; *at && i < SESSIONS_MAX; i++)
		at = &(*at)->next;
	if (*at)
		(void)give(k, at, nobody, NULL);
}

size_t jheld_give(struct jkernel *k, const char *session,
		  void (*fn)(const struct frame_message *m, void *arg), void *arg)
{
	struct jheld **at = find(k, session);

	return *at ? give(k, at, fn, arg) : 0;
}

void jheld_free(struct jkernel *k)
{
	while (k->held)
		(void)give(k, &k->held, nobody, NULL);
}
