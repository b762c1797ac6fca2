/* SPDX-License-Identifier: Apache-2.0 */
/* hosts_file.c - Lines of the form "ADDRESS NAME...". See hosts_file.h. */
#include "gate/hosts_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "gate/address.h"

#define FILE_MAX (64u << 10)
#define ROWS_MAX 1024u

static void add(struct hosts_file *h, const struct in6_addr *a, const char *host)
{
	struct host_row *larger;

	if (h->n >= ROWS_MAX)
		return;
	larger = realloc(h->rows, (h->n + 1) * sizeof(*larger));
	if (!larger)
		return;
	h->rows = larger;
	h->rows[h->n] = (struct host_row){ .host = strdup(host), .address = *a };
	if (h->rows[h->n].host)
		h->n++;
}

void hosts_file_parse(struct hosts_file *h, char *text)
{
	char *line_end = NULL;

	for (char *line = strtok_r(text, "\n", &line_end); line;
	     line = strtok_r(NULL, "\n", &line_end)) {
		char *word_end = NULL, *word;
		struct prefix p;

		line[strcspn(line, "#")] = '\0';
		word = strtok_r(line, " \t\r", &word_end);
		if (!word || strchr(word, '/') || !prefix_parse(word, &p))
			continue;
		while ((word = strtok_r(NULL, " \t\r", &word_end)))
			add(h, &p.net, word);
	}
}

void hosts_file_read(struct hosts_file *h, const char *path)
{
	_mem_ char *text = malloc(FILE_MAX);

	if (text && fd_read_file(AT_FDCWD, path, text, FILE_MAX) > 0)
		hosts_file_parse(h, text);
}

size_t hosts_file_find(const struct hosts_file *h, const char *host, struct in6_addr *ret,
		       size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n && n < max; i++)
		if (strcasecmp(h->rows[i].host, host) == 0)
			ret[n++] = h->rows[i].address;
	return n;
}

void hosts_file_free(struct hosts_file *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->rows[i].host);
	free(h->rows);
	*h = (struct hosts_file){ 0 };
}
