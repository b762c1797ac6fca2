/* SPDX-License-Identifier: Apache-2.0 */
/* unit.c - Collect and run the tests of a program, and what many of them need; see unit.h. */
#include "unit.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TESTS_MAX 64

static struct CMUnitTest tests[TESTS_MAX]; /* cmocka passes over those without a name */
static int lines[TESTS_MAX];
static size_t n_tests;

__attribute__((weak)) struct unit_fixture unit_fixture, unit_group;

/* Constructors run in an order of the compiler's own: keep the tests sorted by their lines. */
void unit_add(int line, const char *name, CMUnitTestFunction test, struct unit_fixture own)
{
	size_t i = n_tests++;

	if (i == TESTS_MAX)
		abort();
	for (; i > 0 && lines[i - 1] > line; i--) {
		tests[i] = tests[i - 1];
		lines[i] = lines[i - 1];
	}
	lines[i] = line;
	tests[i] = (struct CMUnitTest){
		.name = name,
		.test_func = test,
		.setup_func = own.setup,
		.teardown_func = own.teardown,
	};
}

int unit_run(void)
{
	for (size_t i = 0; i < n_tests; i++) {
		if (tests[i].setup_func || tests[i].teardown_func)
			continue;
		tests[i].setup_func = unit_fixture.setup;
		tests[i].teardown_func = unit_fixture.teardown;
	}
	return cmocka_run_group_tests(tests, unit_group.setup, unit_group.teardown);
}

__attribute__((weak)) int main(void)
{
	return unit_run();
}

int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		abort();
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

bool unit_dir_make(char ret[UNIT_DIR_MAX], bool in_memory)
{
	const char *where = in_memory && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	(void)snprintf(ret, UNIT_DIR_MAX, "%s/caisson-unit-XXXXXX", where);
	return mkdtemp(ret) != NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int unit_dir_remove(const char *path)
{
	return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
