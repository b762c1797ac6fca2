/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - Which of many tools fit some words.
 *
 * An index of tools as MCP servers list them, and questions to it in words as people and models
 * write them: in any order, with parts of words, plurals and small typos. A thousand tools take a
 * few milliseconds to index, and one to ask. No clock, no I/O. Texts of servers are not trusted,
 * and bounded here.
 */
#ifndef CAISSON_MCP_SEARCH_H
#define CAISSON_MCP_SEARCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct search;

#define SEARCH_LIMIT_MAX 20u
#define SEARCH_LIMIT_DEFAULT 5u
#define SEARCH_QUERY_MAX 1000u  /* bytes of a question that are looked at */
#define SEARCH_TOOLS_MAX 20000u /* more are left out */
#define SEARCH_WORDS_MAX 300u   /* of one tool; more are left out */

struct search *search_new(void);
void search_free(struct search *s); /* NULL is fine */

/*
 * search_add() - The tools of one server: @tools is its list, an array; entries that are no tools
 * are left out. Names and @tools are borrowed until search_free(). Return: 0, or -ENOMEM.
 */
int search_add(struct search *s, const char *server, const char *alias, const json_t *tools);

struct search_hit {
	const char *server, *alias;
	const json_t *tool;
	unsigned int score; /* 1 to 1000; comparable within one question */
};

/* search_find() - The best first, at most @limit; of one server, or of all (@server NULL). Return:
 * how many. */
size_t search_find(struct search *s, const char *query, const char *server, struct search_hit *ret,
		   size_t limit);

/*
 * search_write() - The answer to a question as the kernel protocol has it: {"results": [...]}.
 * @limit: 1 to SEARCH_LIMIT_MAX, others are brought there. @full: with the schemas.
 */
int search_write(struct search *s, const char *query, const char *server, size_t limit, bool full,
		 struct buf *ret);

#endif
