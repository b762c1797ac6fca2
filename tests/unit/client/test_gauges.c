/* SPDX-License-Identifier: Apache-2.0 */
/* test_gauges.c - The numbers of cgroup files, read again and again through one descriptor. */
#include "base/fd.h"
#include "client/gauges.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit.h"

static int file(const char *text)
{
	int fd = memfd_create("gauge", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

TEST(number)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t value;
	} rows[] = {
		{ "0\n", true, 0 },
		{ "123\n", true, 123 },
		{ "18446744073709551615\n", true, UINT64_MAX },
		{ "18446744073709551616\n", false, 0 },
		{ "12", true, 12 },
		{ "", false, 0 },
		{ "\n", false, 0 },
		{ "-1\n", false, 0 },
		{ "max\n", false, 0 },
		{ "12x\n", false, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t v = 0;

		assert_int_equal(gauges_number(rows[i].text, strlen(rows[i].text), &v),
				 rows[i].good);
		assert_true(v == rows[i].value);
	}
}

TEST(key)
{
	static const char text[] = "usage_usec 10\nuser_usec 7\nthrottled_usec 3\nlast 9";
	uint64_t v = 0;

	assert_true(gauges_key(text, sizeof(text) - 1, "usage_usec", &v) && v == 10);
	assert_true(gauges_key(text, sizeof(text) - 1, "throttled_usec", &v) && v == 3);
	assert_true(gauges_key(text, sizeof(text) - 1, "last", &v) && v == 9);
	assert_false(gauges_key(text, sizeof(text) - 1, "usec", &v));
	assert_false(gauges_key(text, sizeof(text) - 1, "user", &v));
	assert_false(gauges_key(text, 5, "usage_usec", &v));
	assert_false(gauges_key("max max\n", 8, "max", &v));
}

/* The two kinds of machine; a missing file is not zero: the warden is asked instead. */
TEST(read)
{
	struct cell_usage u = { .oom_kills = 4 };
	struct gauges g;

	gauges_init(&g);
	assert_false(gauges_read(&g, &u));
	int v1[] = { file("1500\n"),  file("nr_periods 1\nthrottled_time 20\n"),
		     file("4096\n"),  file("3\n"),
		     file("max 2\n"), file("under_oom 0\noom_kill 5\n") };

	gauges_take(&g,
		    1u << GAUGE_CPU_NS | 1u << GAUGE_THROTTLED | 1u << GAUGE_MEMORY_PEAK |
			    1u << GAUGE_PIDS_PEAK | 1u << GAUGE_PIDS_EVENTS | 1u << GAUGE_OOM,
		    v1, ARRAY_SIZE(v1));
	assert_int_equal(v1[5], -1);
	for (int round = 0; round < 2; round++) {
		assert_true(gauges_read(&g, &u));
		assert_true(u.cpu_ns == 1500 && u.throttled_ns == 20 && u.memory_peak == 4096);
		assert_true(u.pids_peak == 3 && u.pids_denied == 2 && u.oom_kills == 5);
	}
	assert_int_equal(ftruncate(g.fd[GAUGE_MEMORY_PEAK], 0), 0);
	assert_false(gauges_read(&g, &u));
	gauges_close(&g);
	gauges_close(&g);
	int v2[] = { file("usage_usec 7\nthrottled_usec 1\n"), file("1\n"), file("1\n"),
		     file("max 0\n"), file("oom 1\noom_kill 0\n") };

	gauges_take(&g,
		    1u << GAUGE_CPU_STAT | 1u << GAUGE_MEMORY_PEAK | 1u << GAUGE_PIDS_PEAK |
			    1u << GAUGE_PIDS_EVENTS | 1u << GAUGE_OOM,
		    v2, ARRAY_SIZE(v2));
	assert_true(gauges_read(&g, &u) && u.cpu_ns == 7000 && u.throttled_ns == 1000);
	gauges_close(&g);
}

/* A cell can still take what is free and reclaimable, but for a part that is kept. */
TEST(room)
{
	const uint64_t mib = 1 << 20;
	struct gauges g;
	uint64_t room = 7;

	gauges_init(&g);
	assert_false(gauges_room(&g, 512 * mib, &room));
	assert_int_equal(gauges_oom(&g), 0);
	int fds[] = { file("419430400\n"), file("rss 9\ninactive_file 52428800\nactive_file 0\n") };

	gauges_take(&g, 1u << GAUGE_MEMORY_USED | 1u << GAUGE_MEMORY_STAT, fds, ARRAY_SIZE(fds));
	assert_true(gauges_room(&g, 512 * mib, &room));
	assert_int_equal(room, (512 - 400 + 50 - 16) * mib);
	assert_true(gauges_room(&g, 256 * mib, &room));
	assert_int_equal(room, 0);
	gauges_close(&g);
}
