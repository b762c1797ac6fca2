/* SPDX-License-Identifier: Apache-2.0 */
/* near.c - The distance of two words in typing errors; a word that begins with the other one is
 * near, too. */
#include "base/near.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX 32
#define CHANGES_MAX 3 /* further away is another word */
#define SHARED_MIN 4  /* of a word and a longer one that begins with it */

struct near near_word(const char *word, size_t len)
{
	size_t most = len / 3 < 1 ? 1 : len / 3;

	return (struct near){ .word = word,
			      .len = len,
			      .distance = (most > CHANGES_MAX ? CHANGES_MAX : most) + 1 };
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many letters have to be inserted, deleted or changed, or neighbours exchanged. */
static size_t changes(const char *a, size_t len, const char *b, size_t n)
{
	size_t d[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t i = 0; i <= len; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= n; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= len; i++)
		for (size_t j = 1; j <= n; j++) {
			d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
					d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[len][n];
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
