/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - An index of tools, and its order for a question.
 *
 * Theory of operation. Every different word of all tools is in a vocabulary once; a tool is a list
 * of (word, weight), where the weight says where the word stands: in the name, the title, the
 * description, the names of its arguments, the server's name, the arguments' descriptions. A
 * question compares each of its words with the vocabulary, which is much shorter than the text, and
 * a tool then gets for each asked word the best of its own words: nearness times weight. An asked
 * word counts the more the fewer tools have it by themselves: all tools of a server have its name,
 * which says nothing about any of them. Tools that have all that was asked come before those that
 * have some of it.
 */
#include "mcp/search.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"
#include "mcp/search_words.h"

#define ASKED_MAX 16u
#define TEXT_MAX 4000u /* bytes of one description */
#define DESCRIPTION_SHOWN 1000u
#define SCHEMA_MAX (256u << 10) /* a larger one is left out */

enum weight {
	W_ARGUMENT_TEXT = 2,
	W_SERVER = 4,
	W_ARGUMENT = 5,
	W_TEXT = 6,
	W_TITLE = 11,
	W_NAME = 14
};

struct posting {
	uint32_t word;
	uint8_t weight;
};

struct doc {
	const char *server, *alias;
	const json_t *tool;
	uint32_t from, n;    /* of the postings */
	uint32_t name_words; /* how many words its name has */
};

struct search {
	struct word *words;
	size_t n_words, room_words;
	uint32_t *table; /* of the words, by hash: number + 1, or 0 */
	size_t table_size;
	struct posting *postings;
	size_t n_postings, room_postings;
	struct doc *docs;
	size_t n_docs, room_docs;
	uint8_t *near; /* of each word to the one that is asked for; made by search_find() */
};

struct search *search_new(void)
{
	return calloc(1, sizeof(struct search));
}

void search_free(struct search *s)
{
	if (!s)
		return;
	free(s->words);
	free(s->table);
	free(s->postings);
	free(s->docs);
	free(s->near);
	free(s);
}

/* ---- the vocabulary ------------------------------------------------------------------------ */

static uint32_t hash(const struct word *w)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < w->len; i++)
		h = (h ^ (unsigned char)w->text[i]) * 16777619u;
	return h ^ h >> 15;
}

static size_t slot_of(const struct search *s, const struct word *w)
{
	size_t at = hash(w) & (s->table_size - 1);

	while (s->table[at]) {
		const struct word *other = &s->words[s->table[at] - 1];

		if (other->len == w->len && memcmp(other->text, w->text, w->len) == 0)
			break;
		at = (at + 1) & (s->table_size - 1);
	}
	return at;
}

static int widen(struct search *s)
{
	size_t size = s->table_size ? s->table_size * 2 : 1024;
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	free(s->table);
	s->table = table;
	s->table_size = size;
	for (size_t i = 0; i < s->n_words; i++)
		s->table[slot_of(s, &s->words[i])] = (uint32_t)i + 1;
	return 0;
}

/* The number of a word, new or known; negative: no memory. */
static int64_t number_of(struct search *s, const struct word *w)
{
	if (2 * (s->n_words + 1) > s->table_size && widen(s) < 0)
		return -ENOMEM;
	size_t at = slot_of(s, w);

	if (s->table[at])
		return s->table[at] - 1;
	if (mem_grow(&s->words, &s->room_words, s->n_words + 1, sizeof(*s->words)) < 0)
		return -ENOMEM;
	s->words[s->n_words] = *w;
	word_stem(&s->words[s->n_words]);
	s->table[at] = (uint32_t)++s->n_words;
	return (int64_t)s->n_words - 1;
}

/* ---- tools --------------------------------------------------------------------------------- */

/* The words of a text of the last tool. Return: how many there were, or -ENOMEM. */
static int add_text(struct search *s, const char *text, uint8_t weight)
{
	struct doc *d = &s->docs[s->n_docs - 1];
	const char *at = text, *end = text ? text + strnlen(text, TEXT_MAX) : text;
	struct word w;
	int n = 0;

	while (text && d->n < SEARCH_WORDS_MAX && word_next(&at, end, &w)) {
		int64_t number = number_of(s, &w);

		if (number < 0 || mem_grow(&s->postings, &s->room_postings, s->n_postings + 1,
					   sizeof(*s->postings)) < 0)
			return -ENOMEM;
		s->postings[s->n_postings++] = (struct posting){ (uint32_t)number, weight };
		d->n++;
		n++;
	}
	return n;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static int add_arguments(struct search *s, const json_t *tool)
{
	json_t *known = json_object_get(json_object_get(tool, "inputSchema"), "properties");
	const char *name;
	json_t *part;
	int r = 0;

	json_object_foreach(known, name,
			    part) if ((r = add_text(s, name, W_ARGUMENT)) < 0) return r;
	json_object_foreach(known, name, part) if ((r = add_text(s, text_of(part, "description"),
								 W_ARGUMENT_TEXT)) < 0) return r;
	return 0;
}

static int add_tool(struct search *s, const char *server, const char *alias, const json_t *tool)
{
	if (mem_grow(&s->docs, &s->room_docs, s->n_docs + 1, sizeof(*s->docs)) < 0)
		return -ENOMEM;
	s->docs[s->n_docs++] = (struct doc){
		.server = server, .alias = alias, .tool = tool, .from = (uint32_t)s->n_postings
	};
	int n = add_text(s, text_of(tool, "name"), W_NAME);

	if (n < 0)
		return n;
	s->docs[s->n_docs - 1].name_words = (uint32_t)n;
	if (add_text(s, text_of(tool, "title"), W_TITLE) < 0 || add_text(s, server, W_SERVER) < 0 ||
	    add_text(s, text_of(tool, "description"), W_TEXT) < 0)
		return -ENOMEM;
	return add_arguments(s, tool);
}

int search_add(struct search *s, const char *server, const char *alias, const json_t *tools)
{
	size_t i;
	json_t *tool;

	json_array_foreach(tools, i, tool)
	{
		if (s->n_docs >= SEARCH_TOOLS_MAX)
			break;
		if (text_of(tool, "name") && add_tool(s, server, alias, tool) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- a question ---------------------------------------------------------------------------- */

struct question {
	struct word asked[ASKED_MAX];
	size_t n;
};

/* Words that stand in every sentence count only when there is nothing else. */
static void read_question(const char *query, struct question *q)
{
	for (int all = 0; all < 2 && q->n == 0; all++) {
		const char *at = query, *end = query + strnlen(query, SEARCH_QUERY_MAX);
		struct word w;

		while (q->n < ASKED_MAX && word_next(&at, end, &w)) {
			bool twice = false;

			word_stem(&w);
			for (size_t i = 0; i < q->n && !twice; i++)
				twice = word_near(&q->asked[i], &w) == 100;
			if (!twice && (all || !word_common(&w)))
				q->asked[q->n++] = w;
		}
	}
}

/* Add to each tool's score how well it fits one asked word. A word that few tools have counts more.
 */
static void ask_word(struct search *s, const struct word *asked, uint32_t *part, uint32_t *score,
		     uint8_t *hits)
{
	uint32_t have = 0, own = 0; /* how many tools have it; and without their server's name */

	for (size_t i = 0; i < s->n_words; i++)
		s->near[i] = (uint8_t)word_near(asked, &s->words[i]);
	for (size_t d = 0; d < s->n_docs; d++) {
		const struct posting *p = s->postings + s->docs[d].from;

		bool by_itself = false;

		part[d] = 0;
		for (uint32_t i = 0; i < s->docs[d].n; i++) {
			uint32_t worth = (uint32_t)s->near[p[i].word] * p[i].weight;

			by_itself |= worth > 0 && p[i].weight != W_SERVER;
			part[d] = worth > part[d] ? worth : part[d];
		}
		have += part[d] > 0;
		own += by_itself;
	}
	have = own ? own : have;
	/* 1 for a word that all have, 3 for one that nearly nobody has; in sixteenths. */
	uint32_t rare = 16 + (uint32_t)(32 * (s->n_docs - have) / (s->n_docs ? s->n_docs : 1));

	for (size_t d = 0; d < s->n_docs; d++) {
		score[d] += part[d] * rare;
		hits[d] = (uint8_t)(hits[d] + (part[d] > 0));
	}
}

/* A name with nothing in it but what was asked for comes before one with more. */
static uint64_t weigh(const struct doc *d, uint32_t score, size_t hits, size_t asked)
{
	uint64_t w = (uint64_t)score * hits * hits / (asked * asked);

	return w - w * (d->name_words < 8 ? d->name_words : 8) / 100;
}

/* Into its place among the best so far; equal ones keep their order. */
static size_t insert(struct search_hit *ret, uint64_t *weights, size_t n, size_t limit,
		     const struct doc *d, uint64_t weight)
{
	size_t at = n;

	while (at > 0 && weights[at - 1] < weight)
		at--;
	if (at >= limit)
		return n;
	if (n < limit)
		n++;
	memmove(ret + at + 1, ret + at, (n - 1 - at) * sizeof(*ret));
	memmove(weights + at + 1, weights + at, (n - 1 - at) * sizeof(*weights));
	ret[at] = (struct search_hit){ .server = d->server, .alias = d->alias, .tool = d->tool };
	weights[at] = weight;
	return n;
}

size_t search_find(struct search *s, const char *query, const char *server, struct search_hit *ret,
		   size_t limit)
{
	struct question q = { .n = 0 };
	uint64_t weights[SEARCH_LIMIT_MAX];
	size_t n = 0;

	read_question(query, &q);
	limit = limit < SEARCH_LIMIT_MAX ? limit : SEARCH_LIMIT_MAX;
	if (q.n == 0 || s->n_docs == 0 || limit == 0)
		return 0;
	_mem_ uint32_t *numbers = calloc(s->n_docs, 2 * sizeof(*numbers));
	_mem_ uint8_t *hits = calloc(s->n_docs, 1);
	uint8_t *near = realloc(s->near, s->n_words + 1);

	if (near)
		s->near = near;
	if (numbers && hits && near) {
		for (size_t i = 0; i < q.n; i++)
			ask_word(s, &q.asked[i], numbers, numbers + s->n_docs, hits);
		for (size_t d = 0; d < s->n_docs; d++)
			if (hits[d] && (!server || strcmp(server, s->docs[d].server) == 0))
				n = insert(ret, weights, n, limit, &s->docs[d],
					   weigh(&s->docs[d], numbers[s->n_docs + d], hits[d],
						 q.n));
	}
	/* The best there could be: every word in the name, and in no other's. */
	uint64_t top = (uint64_t)100 * W_NAME * 48 * q.n;

	for (size_t i = 0; i < n; i++)
		ret[i].score = (unsigned int)(weights[i] * 1000 / top) + 1;
	return n;
}

/* ---- as JSON ------------------------------------------------------------------------------- */

static int append(const char *text, size_t len, void *arg)
{
	return buf_append(arg, text, len) < 0 ? -1 : 0;
}

static void write_schema(struct json *j, const json_t *tool, const char *key)
{
	const json_t *schema = json_object_get(tool, key);
	_buf_ struct buf text = BUF_INIT(SCHEMA_MAX);

	if (!json_is_object(schema) || json_dump_callback(schema, append, &text, JSON_COMPACT) < 0)
		return;
	json_key(j, key);
	json_buf(j, &text);
}

static void write_hit(struct json *j, const struct search_hit *h, bool full)
{
	const char *description = text_of(h->tool, "description");

	description = description ? description : "";
	json_object_begin(j);
	json_member_str(j, "server", h->server);
	json_member_str(j, "alias", h->alias);
	json_member_str(j, "tool", text_of(h->tool, "name"));
	json_key(j, "description");
	(void)json_strn(j, description,
			utf8_truncate(description, strlen(description),
				      full ? TEXT_MAX : DESCRIPTION_SHOWN));
	json_member_int(j, "score", h->score);
	if (full) {
		write_schema(j, h->tool, "inputSchema");
		write_schema(j, h->tool, "outputSchema");
	}
	json_object_end(j);
}

int search_write(struct search *s, const char *query, const char *server, size_t limit, bool full,
		 struct buf *ret)
{
	struct search_hit hits[SEARCH_LIMIT_MAX];
	struct json j;

	limit = limit < 1 ? 1 : limit > SEARCH_LIMIT_MAX ? SEARCH_LIMIT_MAX : limit;
	size_t n = search_find(s, query, server, hits, limit);

	json_init(&j, ret);
	json_object_begin(&j);
	json_member_array(&j, "results");
	for (size_t i = 0; i < n; i++)
		write_hit(&j, &hits[i], full);
	json_array_end(&j);
	json_object_end(&j);
	return json_finish(&j);
}
