/* SPDX-License-Identifier: Apache-2.0 */
/* test_digest.c - The hash and the seal of a tree notice every change of it. */
#include "package_store/package_dir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"

static char dir[UNIT_DIR_MAX];
static int root = -1;

static void put(const char *name, const char *text)
{
	_fd_ int fd = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static int set_up(void **state)
{
	(void)state;
	if (!unit_dir_make(dir, false))
		return -1;
	root = open(dir, O_RDONLY | O_DIRECTORY);
	if (root < 0 || mkdirat(root, "pkg", 0755) < 0 || symlinkat("one.py", root, "pkg/link") < 0)
		return -1;
	put("pkg/one.py", "one");
	put("two", "two");
	return fchmodat(root, "two", 0755, 0);
}

static int tear_down(void **state)
{
	(void)state;
	(void)close(root);
	return unit_dir_remove(dir);
}

struct unit_fixture unit_group = { set_up, tear_down };

static void look(char hash[65], char seal[65])
{
	struct err e = { 0 };

	assert_int_equal(digest_tree(root, true, hash, &e), 0);
	assert_int_equal(digest_tree(root, false, seal, &e), 0);
}

/* The times of an inode are as coarse as a tick: a change in the tick of the look before it would
 * have none. */
static void tick(void)
{
	(void)usleep(20000);
}

TEST(hash_is_that_of_the_archive)
{
	struct digest d = { 0 };
	char hash[65], seal[65], by_hand[65];

	look(hash, seal);
	/* In another order than any directory has. */
	assert_int_equal(digest_begin(&d, '0', true, "two", NULL, NULL), 0);
	digest_add(&d, "two", 3);
	digest_end(&d);
	assert_int_equal(digest_begin(&d, '2', false, "pkg/link", "one.py", NULL), 0);
	digest_end(&d);
	assert_int_equal(digest_begin(&d, '0', false, "pkg/one.py", NULL, NULL), 0);
	digest_add(&d, "on", 2);
	digest_add(&d, "e", 1);
	digest_end(&d);
	assert_int_equal(digest_begin(&d, '5', false, "pkg", NULL, NULL), 0);
	digest_end(&d);
	digest_hex(&d, by_hand);
	digest_free(&d);
	assert_string_equal(hash, by_hand);
}

TEST(the_same_is_the_same)
{
	char hash[65], seal[65], hash2[65], seal2[65];

	look(hash, seal);
	look(hash2, seal2);
	assert_string_equal(hash, hash2);
	assert_string_equal(seal, seal2);
}

/* Written again as it was, with its old time: other notes, the same content. */
TEST(seal_notices_a_write_and_hash_does_not)
{
	char hash[65], seal[65], hash2[65], seal2[65];
	struct stat st;

	look(hash, seal);
	tick();
	assert_int_equal(fstatat(root, "two", &st, 0), 0);
	put("two", "two");
	assert_int_equal(utimensat(root, "two", (struct timespec[]){ st.st_atim, st.st_mtim }, 0),
			 0);
	look(hash2, seal2);
	assert_string_equal(hash, hash2);
	assert_string_not_equal(seal, seal2);
}

static void change_byte(void)
{
	put("two", "twO");
}

static void change_mode(void)
{
	assert_int_equal(fchmodat(root, "pkg/one.py", 0755, 0), 0);
}

static void change_link(void)
{
	assert_int_equal(unlinkat(root, "pkg/link", 0), 0);
	assert_int_equal(symlinkat("two.py", root, "pkg/link"), 0);
}

static void change_name(void)
{
	assert_int_equal(renameat(root, "pkg/one.py", root, "pkg/uno.py"), 0);
}

static void change_more(void)
{
	assert_int_equal(mkdirat(root, "pkg/new", 0755), 0);
}

static void change_less(void)
{
	assert_int_equal(unlinkat(root, "two", 0), 0);
}

static void change_kind(void)
{
	assert_int_equal(mkfifoat(root, "pipe", 0644), 0);
}

TEST(both_notice_every_change)
{
	static void (*const changes[])(void) = { change_byte, change_mode, change_link, change_name,
						 change_more, change_less, change_kind };
	char hash[65], seal[65], hash2[65], seal2[65];

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		look(hash, seal);
		tick();
		changes[i]();
		look(hash2, seal2);
		if (strcmp(hash, hash2) == 0 || strcmp(seal, seal2) == 0)
			fail_msg("change %zu was not noticed", i);
	}
}
