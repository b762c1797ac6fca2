/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_unpack.c - Archives from a sandbox, unpacked here: whatever is in them, nothing outside of
 * the directory changes and no link in it leads out.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "fuzz.h"
#include "remote/dir_archive.h"

static char base[64], inside[80];

static int clean_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	if (ftw->level == 0)
		return 0;
	if (type == FTW_SL || type == FTW_SLN) {
		char target[4096];
		ssize_t n = readlink(path, target, sizeof(target) - 1);

		require(n > 0 && target[0] != '/');
	}
	return remove(path);
}

static void make_place(void)
{
	(void)snprintf(base, sizeof(base), "/tmp/caisson-fuzz-XXXXXX");
	require(mkdtemp(base));
	(void)snprintf(inside, sizeof(inside), "%s/in", base);
	require(mkdir(inside, 0700) == 0);
}

static void remove_place(void)
{
	(void)rmdir(inside);
	(void)rmdir(base);
}

/* Only the directory itself is beside us, whatever was unpacked. */
static void check_outside(void)
{
	DIR *d = opendir(base);
	const struct dirent *entry;

	while (d && (entry = readdir(d)))
		require(entry->d_name[0] == '.' || strcmp(entry->d_name, "in") == 0);
	if (d)
		(void)closedir(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = { 0 };

	if (!base[0]) {
		make_place();
		(void)atexit(remove_place);
	}
	if (size < 1)
		return 0;
	_fd_ int dir = open(inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct unpack u;
	size_t step = data[0] * 8u + 1u;
	int r = 0;

	unpack_open(&u, dir);
	for (size_t at = 1; r == 0 && at < size; at += step)
		r = unpack_feed(&u, (const char *)data + at, size - at < step ? size - at : step,
				&e);
	if (r == 0)
		(void)unpack_end(&u, &e);
	unpack_close(&u);
	check_outside();
	(void)nftw(inside, clean_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
