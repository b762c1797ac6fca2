/* SPDX-License-Identifier: Apache-2.0 */
/* near.c - The edit distance of two words; a word that begins with the other one is near, too. */
#include "base/near.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX 32
#define CHANGES_MAX 3 /* further away is another word */
#define SHARED_MIN 4  /* of a word and a longer one that begins with it */

struct near near_word(const char *word, size_t len)
{
	size_t most = len / 3 + 1;

	return (struct near){ .word = word,
			      .len = len,
			      .distance = (most > CHANGES_MAX ? CHANGES_MAX : most) + 1 };
}

/* How many letters have to be inserted, deleted or changed (Levenshtein). */
static size_t changes(const char *a, size_t len, const char *b, size_t n)
{
	size_t row[WORD_MAX + 1];

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; i <= len; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[n];
}

void near_try(struct near *n, const char *name)
{
	size_t len = name ? strlen(name) : 0, shared = len < n->len ? len : n->len;

	if (len == 0 || len > WORD_MAX || n->len > WORD_MAX)
		return;
	size_t d = shared >= SHARED_MIN && strncmp(n->word, name, shared) == 0 ?
			   1 :
			   changes(n->word, n->len, name, len);

	if (d < n->distance && d < n->len) {
		n->distance = d;
		n->found = name;
	}
}

const char *near_hint(struct near *n)
{
	if (!n->found)
		return ";";
	(void)snprintf(n->hint, sizeof(n->hint), ": did you mean '%.32s'?", n->found);
	return n->hint;
}
