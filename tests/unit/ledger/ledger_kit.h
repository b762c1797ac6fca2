/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_kit.h - A directory for a ledger, and hands to look into its files. */
#ifndef CAISSON_TESTS_LEDGER_KIT_H
#define CAISSON_TESTS_LEDGER_KIT_H

#include "base/err.h"
#include "base/fd.h"
#include "ledger/ledger.h"
#include "ledger/ledger_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"

struct kit {
	char path[UNIT_DIR_MAX];
	int dir;
	struct ledger *ledger;
	struct err e;
	uint64_t file_bytes;
};

static inline int kit_setup(void **state)
{
	struct kit *k = calloc(1, sizeof(*k));

	if (!unit_dir_make(k->path, true))
		return -1;
	k->dir = open(k->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = k;
	return k->dir < 0;
}

static inline int kit_teardown(void **state)
{
	struct kit *k = *state;

	ledger_close(k->ledger);
	fd_close(k->dir);
	int r = unit_dir_remove(k->path);

	free(k);
	return r;
}

/* Open, or open again. */
static inline int kit_try_open(struct kit *k)
{
	const struct ledger_config config = { .file_bytes = k->file_bytes };

	ledger_close(k->ledger);
	k->ledger = NULL;
	k->e = (struct err){ 0 };
	return ledger_open(k->dir, &config, &k->ledger, &k->e);
}

static inline void kit_open(struct kit *k)
{
	if (kit_try_open(k) < 0)
		fail_msg("%s", k->e.msg);
}

static inline int kit_append(struct kit *k, int i)
{
	return ledger_record(k->ledger, &k->e, "test", "ann", "job", L_INT("i", i));
}

static inline void kit_fill(struct kit *k, int n)
{
	for (int i = 0; i < n; i++)
		if (kit_append(k, i) < 0)
			fail_msg("%s", k->e.msg);
}

/* The content of a file; free() it. */
static inline char *kit_read(struct kit *k, const char *name, size_t *ret_len)
{
	_fd_ int fd = openat(k->dir, name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	char *data = malloc((size_t)st.st_size + 1);

	assert_int_equal(pread(fd, data, (size_t)st.st_size, 0), st.st_size);
	data[st.st_size] = '\0';
	if (ret_len)
		*ret_len = (size_t)st.st_size;
	return data;
}

static inline void kit_write(struct kit *k, const char *name, const char *data, size_t len)
{
	_fd_ int fd = openat(k->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
}

/* The first file whose name begins so, or NULL; static. */
static inline const char *kit_find(struct kit *k, const char *begin)
{
	static char name[256];
	DIR *dir = opendir(k->path);
	const struct dirent *entry;
	bool found = false;

	while (!found && (entry = readdir(dir)))
		if (strncmp(entry->d_name, begin, strlen(begin)) == 0) {
			(void)snprintf(name, sizeof(name), "%s", entry->d_name);
			found = true;
		}
	(void)closedir(dir);
	return found ? name : NULL;
}

static inline struct reader_report kit_verify(struct kit *k)
{
	struct reader_report report;

	if (reader_run(k->dir, false, NULL, NULL, &report, &k->e) < 0)
		fail_msg("%s", k->e.msg);
	return report;
}

#endif
