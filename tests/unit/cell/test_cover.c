/* SPDX-License-Identifier: Apache-2.0 */
/* test_cover.c - Which directories of the host are covered, by what is mounted below them. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit.h"

#include "cell/stage.h"

#define ROOT "21 1 8:1 / / rw - ext4 /dev/sda rw\n22 21 0:5 / /proc rw - proc proc rw\n"

static uint32_t chosen(const char *text)
{
	int fd = memfd_create("mountinfo", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return cover_from(fd);
}

/* /usr and /etc are there on every machine that runs this; bits are in the order of the table. */
#define USR (1u << 0)
#define ETC (1u << 7)
#define PARTS (~0u << 8)

TEST(plain)
{
	uint32_t c = chosen(ROOT);

	assert_true(c & USR && c & ETC);
	assert_int_equal(c & PARTS, 0);
}

TEST(mounts_below)
{
	uint32_t plain_ = chosen(ROOT);

	assert_int_equal(chosen(ROOT "23 21 8:2 / /usr/local rw - ext4 /dev/sdb rw\n"),
			 plain_ & ~USR);
	/* As containers have it: the parts of /etc stand in for it. */
	uint32_t c = chosen(ROOT "23 21 8:2 /h /etc/hosts rw - ext4 /dev/sdb rw\n");

	assert_int_equal(c & ~PARTS, plain_ & ~ETC);
	if (access("/etc/alternatives", F_OK) == 0)
		assert_true(c & PARTS);
}

/* A mount on the directory itself, or on one whose name only begins like it, hides nothing. */
TEST(mounts_beside)
{
	assert_int_equal(chosen(ROOT "23 21 8:2 / /usr rw - ext4 /dev/sdb rw\n"
				     "24 21 8:3 / /usrlocal/x rw - ext4 /dev/sdc rw\n"),
			 chosen(ROOT));
}

TEST(damaged)
{
	assert_int_equal(chosen(ROOT "23 21\n"), 0);
	assert_int_equal(cover_from(-1), 0);
}
