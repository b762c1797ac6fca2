/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - The frame of a unit test program.
 *
 * TEST(name) { ... } defines test_name() and registers it; the program needs no list of its tests,
 * and none can be missing from it. Tests run in the order of the file. A program without a main()
 * of its own has the one of unit.c, which runs all of them.
 *
 * A fixture (setup and teardown, either of which may be NULL) belongs to one test when TEST() names
 * it: TEST(name, setup, teardown). A program whose tests all have the same one defines unit_fixture
 * instead, and unit_group for what is set up once, before the first test. The pointer that a setup
 * stores in its argument is *test_state in the test.
 */
#ifndef CAISSON_TESTS_UNIT_H
#define CAISSON_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct unit_fixture {
	CMFixtureFunction setup, teardown;
};

/* The fixture of each test without its own, and that of the program; empty unless defined. */
extern struct unit_fixture unit_fixture, unit_group;

/* Register a test; for TEST(). */
void unit_add(int line, const char *name, CMUnitTestFunction test, struct unit_fixture own);

/* Run all registered tests. Return: how many failed; for main(). */
int unit_run(void);

/* Descriptors of this process: compared before and after a call that must leave none behind. */
int open_fds(void);

#define UNIT_DIR_MAX 32

/*
 * Make a directory for a test: in /tmp, or in memory, where fsync() costs nothing (in /tmp on a
 * machine without /dev/shm). Return: whether it was made; its path is in @ret.
 */
bool unit_dir_make(char ret[UNIT_DIR_MAX], bool in_memory);

/* Remove a directory and everything in it. Return: 0, or -1. */
int unit_dir_remove(const char *path);

#define TEST(name, ...)                                                                            \
	static void test_##name(void **test_state);                                                \
	__attribute__((constructor)) static void unit_add_##name(void)                             \
	{                                                                                          \
		unit_add(__LINE__, "test_" #name, test_##name,                                     \
			 (struct unit_fixture){ __VA_ARGS__ });                                    \
	}                                                                                          \
	static void test_##name(__attribute__((unused)) void **test_state)

#endif
