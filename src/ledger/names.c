/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - Names of rotated files, and which of them there are. */
#include "ledger/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"

#define FILES_MAX 1000000u /* of 64 MiB each */
#define DIGITS 20

static const char prefix[] = "ledger-";
static const char suffix[] = ".jsonl";

const char *names_rotated(uint64_t seq, char buf[NAMES_ROOM])
{
	(void)snprintf(buf, NAMES_ROOM, "%s%0*" PRIu64 "%s", prefix, DIGITS, seq, suffix);
	return buf;
}

bool names_parse(const char *name, uint64_t *ret_seq)
{
	const char *p = name + strlen(prefix);
	char again[NAMES_ROOM];
	uint64_t v = 0;

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	for (unsigned int i = 0; i < DIGITS; i++, p++)
		if (*p < '0' || *p > '9')
			return false;
		else
			v = v * 10 + (uint64_t)(*p - '0');
	/* Also says no to a number that did not fit. */
	if (strcmp(name, names_rotated(v, again)) != 0)
		return false;
	*ret_seq = v;
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int collect(DIR *dir, uint64_t **list, size_t *n, struct err *e)
{
	size_t room = 0;
	const struct dirent *entry;
	uint64_t seq;

	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		if (!names_parse(entry->d_name, &seq))
			continue;
		if (*n == room) {
			room = room ? room * 2 : 16;
			uint64_t *larger = room <= FILES_MAX ? realloc(*list, room * sizeof(seq)) :
							       NULL;

			if (!larger)
				return err_set(e, -ENOMEM, "list the ledger's files");
			*list = larger;
		}
		(*list)[(*n)++] = seq;
	}
	return errno ? err_set(e, -errno, "list the ledger's files") : 0;
}

int names_list(int dirfd, uint64_t **ret, size_t *ret_n, struct err *e)
{
	_mem_ uint64_t *list = NULL;
	size_t n = 0;
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		r = err_set(e, -errno, "list the ledger's directory");
		(void)fd_close(fd);
		return r;
	}
	r = collect(dir, &list, &n, e);
	(void)closedir(dir);
	if (r < 0)
		return r;
	if (n > 0)
		qsort(list, n, sizeof(*list), compare);
	*ret = list;
	*ret_n = n;
	list = NULL;
	return 0;
}
