/* SPDX-License-Identifier: Apache-2.0 */
/* test_machine_text.c - The machine of a cell: numbers from the Linux kernel's texts, and texts. */
#include <string.h>

#include "init/machine.h"

#include "../unit.h"

static char space[8192];

static struct machine_text empty(void)
{
	memset(space, 0, sizeof(space));
	return (struct machine_text){ .at = space, .size = sizeof(space) };
}

static bool has(const char *line)
{
	const char *at = strstr(space, line);

	return at && (at == space || at[-1] == '\n');
}

TEST(values_are_found_by_whole_keys)
{
	const char *lines = "file_mapped 7\nfile 5\nanon 3";

	assert_int_equal(machine_text_value(lines, "file"), 5);
	assert_int_equal(machine_text_value(lines, "anon"), 3);
	assert_int_equal(machine_text_value(lines, "mapped"), 0);
	assert_int_equal(machine_text_value("", "file"), 0);
	assert_int_equal(machine_text_value("file", "file"), 0);
}

TEST(memory_of_v1_and_of_v2)
{
	struct machine_memory m = { 0 };

	machine_text_memory("cache 10\nrss 20\nmapped_file 5\ninactive_file 4\n", &m);
	assert_true(m.file == 10 && m.anon == 20 && m.mapped == 5 && m.inactive_file == 4);
	machine_text_memory("anon 21\nfile 11\nfile_mapped 6\nslab_reclaimable 2\n", &m);
	assert_true(m.file == 11 && m.anon == 21 && m.mapped == 6 && m.slab_reclaimable == 2);
	assert_int_equal(m.inactive_file, 0);
}

TEST(processor_time_of_v1_and_of_v2)
{
	struct machine_load l = { 0 };

	machine_text_cpu("user 3\nsystem 4\n", &l);
	assert_true(l.user_us == 30000 && l.system_us == 40000);
	machine_text_cpu("usage_usec 12\nuser_usec 5\nsystem_usec 7\n", &l);
	assert_true(l.user_us == 5 && l.system_us == 7);
}

TEST(a_process_may_have_any_name)
{
	struct machine_process p;

	assert_true(machine_text_process("7 (a) R 1 (\n) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 0 0 20 "
					 "0 3 0 14 1000 250 18446744073709551615 1 1\n",
					 &p));
	assert_true(!p.running && p.threads == 3 && p.rss_pages == 250);
	assert_true(p.user_us == 500000 && p.system_us == 600000);
	assert_false(machine_text_process("7 (a) R 1 7 7", &p));
	assert_false(machine_text_process("7 (a)", &p));
	assert_false(machine_text_process("", &p));
}

TEST(meminfo_is_the_limit_less_the_use)
{
	struct machine_memory m = { .total = 256 << 20,
				    .used = 100 << 20,
				    .inactive_file = 30 << 20 };
	struct machine_text t = empty();

	machine_text_meminfo(&t, &m);
	assert_true(has("MemTotal:         262144 kB\n") && has("MemFree:          159744 kB\n"));
	assert_true(has("MemAvailable:     190464 kB\n") && has("SwapTotal:             0 kB\n"));
	m.used = 300 << 20;
	t = empty();
	machine_text_meminfo(&t, &m);
	assert_true(has("MemFree:               0 kB\n") && has("MemAvailable:      30720 kB\n"));
}

TEST(stat_has_a_line_for_each_processor)
{
	struct machine_load l = { .n_cpus = 2,
				  .user_us = 30000,
				  .system_us = 20000,
				  .age_us = 1000000,
				  .boot_s = 77,
				  .running = 1,
				  .last_pid = 9 };
	struct machine_text t = empty();

	machine_text_stat(&t, &l);
	assert_true(has("cpu  3 0 2 195 0 0 0 0 0 0\ncpu0 1 0 1 97 0 0 0 0 0 0\n"));
	assert_true(has("cpu1 2 0 1 98 0 0 0 0 0 0\nintr 0\n") && has("btime 77\n"));
	l.user_us = 9000000;
	t = empty();
	machine_text_stat(&t, &l);
	assert_true(has("cpu  900 0 2 0 0 "));
}

TEST(load_and_uptime)
{
	struct machine_load l = { .n_cpus = 1,
				  .age_us = 2500000,
				  .uptime_ms = 61234,
				  .threads = 5,
				  .running = 2,
				  .last_pid = 30,
				  .average = { 0.5, 0.25, 0 } };
	struct machine_text t = empty();

	machine_text_loadavg(&t, &l);
	assert_string_equal(space, "0.50 0.25 0.00 2/5 30\n");
	t = empty();
	machine_text_uptime(&t, &l);
	assert_string_equal(space, "61.23 2.50\n");
}

TEST(averages_come_and_go)
{
	double average[3] = { 0 };

	for (int i = 0; i < 60; i++)
		machine_average(average, 5, 2);
	assert_true(average[0] > 1.95 && average[0] < 2.01 && average[1] > 1.2 && average[1] < 1.3);
	machine_average(average, 86400, 0);
	assert_true(average[0] < 0.01 && average[2] < 0.01);
}

TEST(cpuinfo_is_numbered_from_zero)
{
	const char *source = "processor\t: 5\nmodel name\t: M: 1\nsiblings\t: 64\ncore id\t\t: 3\n"
			     "cpu cores\t: 32\nflags\t\t: a b\n\nprocessor\t: 6\n";
	struct machine_text t = empty();

	machine_text_processor(&t, source, 1, 2);
	assert_string_equal(space,
			    "processor\t: 1\nmodel name\t: M: 1\nsiblings\t: 2\ncore id\t\t: "
			    "1\ncpu cores\t: 2\nflags\t\t: a b\n\n");
	t = empty();
	machine_text_processor(&t, "", 0, 1);
	assert_string_equal(space, "\n");
}

TEST(text_stays_in_its_room)
{
	char small[64] = { 0 };
	struct machine_text t = { .at = small, .size = 40 };
	struct machine_memory m = { .total = 1 << 20 };

	machine_text_meminfo(&t, &m);
	assert_true(t.len < 40 && strlen(small) < 40 && small[40] == '\0');
}
