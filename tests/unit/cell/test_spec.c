/* SPDX-License-Identifier: Apache-2.0 */
/* test_spec.c - Every limit at both edges of its range, and every way to write a path wrongly. */
#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define DAY_MS UINT64_C(86400000)

TEST(defaults)
{
	struct cell_spec s, zero = { 0 };

	memset(&s, 0xa5, sizeof(s));
	spec_default(&s);
	assert_int_equal(s.limits.memory_bytes, 512 * MIB);
	assert_int_equal(s.limits.disk_bytes, GIB);
	assert_int_equal(s.limits.inodes, 262144);
	assert_int_equal(s.limits.pids, 128);
	assert_int_equal(s.limits.files, 1024);
	assert_int_equal(s.limits.cpu_time_ms, 0);
	assert_int_equal(s.limits.wall_ms, 0);
	assert_int_equal(s.limits.cpu_milli, 1000);
	assert_int_equal(s.image, CELL_IMAGE_HOST);
	assert_int_equal(s.without, 0);
	assert_int_equal(s.n_mounts, 0);
	/* Nothing of the caller's memory travels to the warden in what is not used. */
	assert_int_equal(s.limits.oom, CELL_OOM_PROCESS);
	assert_int_equal(s.n_layers, 0);
	assert_memory_equal(s.mounts, zero.mounts, sizeof(s.mounts));
	assert_int_equal(spec_check(&s, NULL), 0);
}

/* A spec of zeros is invalid: every limit has to be set. */
TEST(zeros_are_refused)
{
	struct cell_spec s = { 0 };
	struct err e = { 0 };

	assert_int_equal(spec_check(&s, &e), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	assert_int_equal(spec_check(&s, NULL), -EINVAL);
}

static int check_limit(size_t offset, uint64_t value, struct err *e)
{
	struct cell_spec s;

	spec_default(&s);
	memcpy((char *)&s.limits + offset, &value, sizeof(value));
	*e = (struct err){ 0 };
	return spec_check(&s, e);
}

TEST(ranges)
{
	static const struct {
		const char *option;
		size_t offset;
		uint64_t min, max;
		bool zero_is_none;
	} rows[] = {
		{ "--memory", offsetof(struct cell_limits, memory_bytes), 16 * MIB, 1024 * GIB,
		  false },
		{ "--disk", offsetof(struct cell_limits, disk_bytes), MIB, 1024 * GIB, false },
		{ "--inodes", offsetof(struct cell_limits, inodes), 256, UINT64_C(1) << 32, false },
		{ "--pids", offsetof(struct cell_limits, pids), 1, 32768, false },
		{ "--files", offsetof(struct cell_limits, files), 16, 1048576, false },
		{ "--cpu-time", offsetof(struct cell_limits, cpu_time_ms), 10, DAY_MS, true },
		{ "--timeout", offsetof(struct cell_limits, wall_ms), 1, 2 * DAY_MS, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const uint64_t bad[] = { rows[i].min - 1, rows[i].max + 1, UINT64_MAX,
					 UINT64_C(1) << 63 };
		const uint64_t good[] = { rows[i].min, rows[i].min + 1, rows[i].max - 1,
					  rows[i].max };
		struct err e;

		for (size_t k = 0; k < ARRAY_SIZE(good); k++)
			assert_int_equal(check_limit(rows[i].offset, good[k], &e), 0);
		for (size_t k = 0; k < ARRAY_SIZE(bad); k++) {
			char number[32];

			if (bad[k] == 0 && rows[i].zero_is_none)
				continue;
			assert_int_equal(check_limit(rows[i].offset, bad[k], &e), -EINVAL);
			/* The message has the option, what was wrong, and what is right. */
			assert_int_equal(strncmp(e.msg, rows[i].option, strlen(rows[i].option)), 0);
			(void)snprintf(number, sizeof(number), " %llu ",
				       (unsigned long long)bad[k]);
			assert_non_null(strstr(e.msg, number));
			(void)snprintf(number, sizeof(number), "..%llu",
				       (unsigned long long)rows[i].max);
			assert_non_null(strstr(e.msg, number));
		}
		assert_int_equal(check_limit(rows[i].offset, 0, &e),
				 rows[i].zero_is_none ? 0 : -EINVAL);
	}
}

TEST(cpus)
{
	static const uint32_t good[] = { 10, 11, 1000, 1023999, 1024000 };
	static const uint32_t bad[] = { 0, 1, 9, 1024001, UINT32_MAX };
	struct cell_spec s;
	struct err e;

	spec_default(&s);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		s.limits.cpu_milli = good[i];
		assert_int_equal(spec_check(&s, NULL), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		s.limits.cpu_milli = bad[i];
		assert_int_equal(spec_check(&s, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "--cpus"));
	}
}

TEST(enumerations)
{
	struct cell_spec s;
	struct err e;

	spec_default(&s);
	for (uint32_t image = 0; image < 70; image++) {
		bool known = image == CELL_IMAGE_HOST || image == CELL_IMAGE_DIR;

		s.image = image;
		assert_int_equal(spec_check(&s, &e), known ? 0 : -EINVAL);
	}
	s.image = UINT32_MAX;
	assert_int_equal(spec_check(&s, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "--image"));

	spec_default(&s);
	for (unsigned int bit = 0; bit < 32; bit++) {
		s.without = 1u << bit;
		assert_int_equal(spec_check(&s, &e), s.without & CELL_WITHOUT_ALL_ ? 0 : -EINVAL);
	}
	assert_non_null(strstr(e.msg, "--without"));
	s.without = CELL_WITHOUT_ALL_;
	assert_int_equal(spec_check(&s, NULL), 0);
}

TEST(paths)
{
	static const char *const good[] = {
		"/a",     "/data",     "/a/b/c/d",    "/...", "/.a",   "/a/..b",     "/a/b..",
		"/a b/c", "/\xc3\xa4", "/a/\xff\xfe", "/a:b", "/a\\b", "/usr/share", "/-",
	};
	static const char *const bad[] = {
		"",      "/",       "a",    "a/b",    "./a",   "//",     "//a",       "/a//b",
		"/a/",   "/.",      "/..",  "/a/.",   "/a/..", "/./a",   "/../a",     "/a/./b",
		"/a/..", "/a/../b", "/a\n", "/a\t/b", "/\x01", "/a\x7f", "/a/\x1f/b", " /a",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!spec_path_normal(good[i], CELL_DST_MAX))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (spec_path_normal(bad[i], CELL_DST_MAX))
			fail_msg("accepted: %s", bad[i]);
}

TEST(path_lengths)
{
	char field[CELL_DST_MAX], wide[600];

	/* The field has to hold the NUL too, and a field without one is not read past its end. */
	for (size_t len = 1; len <= sizeof(field); len++) {
		memset(field, 'x', sizeof(field));
		field[0] = '/';
		if (len < sizeof(field))
			field[len] = '\0';
		assert_int_equal(spec_path_normal(field, CELL_DST_MAX),
				 len >= 2 && len < CELL_DST_MAX);
	}
	/* No file system has names above 255 bytes, wherever in the path. */
	for (size_t n = 254; n <= 257; n++) {
		memset(wide, 'x', sizeof(wide));
		wide[0] = '/';
		wide[n + 1] = '\0';
		assert_int_equal(spec_path_normal(wide, sizeof(wide)), n <= 255);
		memcpy(wide + n + 1, "/tail", 6);
		assert_int_equal(spec_path_normal(wide, sizeof(wide)), n <= 255);
		memmove(wide + 2, wide, n + 2);
		memcpy(wide, "/b", 2);
		wide[n + 3] = '\0';
		assert_int_equal(spec_path_normal(wide, sizeof(wide)), n <= 255);
	}
}

static int check_mount(const char *dst, uint32_t flags, struct err *e)
{
	struct cell_spec s;

	spec_default(&s);
	s.n_mounts = 2;
	(void)snprintf(s.mounts[0].dst, CELL_DST_MAX, "/first");
	(void)snprintf(s.mounts[1].dst, CELL_DST_MAX, "%s", dst);
	s.mounts[1].flags = flags;
	*e = (struct err){ 0 };
	return spec_check(&s, e);
}

TEST(mounts)
{
	static const char *const ours[] = { "/proc", "/proc/sys/kernel", "/dev",     "/dev/shm",
					    "/sys",  "/sys/fs/cgroup",   "/dev/null" };
	static const char *const free_places[] = { "/process",      "/device",  "/sysx",
						   "/data/proc",    "/procs/x", "/workspace",
						   "/usr/local/lib" };
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		assert_int_equal(check_mount(ours[i], 0, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "nothing may be mounted in /"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(free_places); i++) {
		assert_int_equal(check_mount(free_places[i], 0, &e), 0);
		assert_int_equal(check_mount(free_places[i], CELL_MOUNT_RW, &e), 0);
	}
	assert_int_equal(check_mount("/data", CELL_MOUNT_PLAIN, &e), 0);
	assert_int_equal(check_mount("/data", CELL_MOUNT_WORKSPACE, &e), 0);
	assert_int_equal(check_mount("/data", CELL_MOUNT_WORKSPACE | CELL_MOUNT_RW, &e), 0);
	assert_int_equal(check_mount("/data", CELL_MOUNT_WORKSPACE | CELL_MOUNT_COW, &e), 0);
	assert_int_equal(check_mount("/data", CELL_MOUNT_RW | CELL_MOUNT_PROTECT, &e), 0);
	/* A part of nothing, a copy of what is not a workspace, protection of what nobody can write
	 * to. */
	for (unsigned int bit = 3; bit < 32; bit++)
		assert_int_equal(check_mount("/data", 1u << bit, &e), -EINVAL);
	assert_int_equal(check_mount("/data", CELL_MOUNT_COW | CELL_MOUNT_RW, &e), -EINVAL);
	assert_int_equal(check_mount("/data", CELL_MOUNT_WORKSPACE | CELL_MOUNT_PLAIN, &e),
			 -EINVAL);
	assert_int_equal(check_mount("/data", CELL_MOUNT_RW | CELL_MOUNT_PLAIN, &e), -EINVAL);
	assert_int_equal(check_mount("/a/../proc", 0, &e), -EINVAL);
	assert_int_equal(check_mount("", 0, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "--mount"));
}

/* Parts of a mount: below it, after it, and only of one that can be written to. */
TEST(parts)
{
	static const struct {
		uint32_t flags;
		const char *part;
		int r;
	} rows[] = {
		{ CELL_MOUNT_RW, "/data/out", 0 },
		{ CELL_MOUNT_WORKSPACE | CELL_MOUNT_COW, "/data/a/b", 0 },
		{ CELL_MOUNT_WORKSPACE, "/data/out", -EINVAL },
		{ CELL_MOUNT_PLAIN, "/data/out", -EINVAL },
		{ CELL_MOUNT_RW, "/data", -EINVAL },
		{ CELL_MOUNT_RW, "/database", -EINVAL },
		{ CELL_MOUNT_RW, "/etc", -EINVAL },
		{ CELL_MOUNT_RW, "/data/../etc", -EINVAL },
	};
	struct cell_spec s;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		spec_default(&s);
		s.n_mounts = 2;
		strcpy(s.mounts[0].dst, "/data");
		s.mounts[0].flags = rows[i].flags;
		strcpy(s.mounts[1].dst, rows[i].part);
		s.mounts[1].flags = CELL_MOUNT_PART;
		assert_int_equal(spec_check(&s, &e), rows[i].r);
	}
}

TEST(number_of_mounts)
{
	struct cell_spec s;
	struct err e;

	spec_default(&s);
	for (uint32_t n = 0; n < CELL_MOUNTS_MAX; n++) {
		/* Entries beyond the number do not count. */
		s.n_mounts = n;
		assert_int_equal(spec_check(&s, NULL), 0);
		(void)snprintf(s.mounts[n].dst, CELL_DST_MAX, "/m%u", n);
	}
	s.n_mounts = CELL_MOUNTS_MAX;
	assert_int_equal(spec_check(&s, NULL), 0);
	for (unsigned int bit = 0; bit < 32; bit++) {
		s.n_mounts = CELL_MOUNTS_MAX | 1u << bit;
		if (s.n_mounts == CELL_MOUNTS_MAX)
			continue;
		assert_int_equal(spec_check(&s, &e), -EINVAL);
	}
	assert_non_null(strstr(e.msg, "at most 16 mounts"));
	/* A destination without a NUL. */
	s.n_mounts = CELL_MOUNTS_MAX;
	memset(s.mounts[CELL_MOUNTS_MAX - 1].dst, 'x', CELL_DST_MAX);
	s.mounts[CELL_MOUNTS_MAX - 1].dst[0] = '/';
	assert_int_equal(spec_check(&s, &e), -EINVAL);
}
