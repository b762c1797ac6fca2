/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_text.c - The texts of /proc/meminfo, stat, loadavg, uptime and cpuinfo of a cell.
 *
 * Programs look for keys and count lines, so every line is in the Linux kernel's own form. Numbers
 * that a cell does not have are 0: swap, huge pages, interrupts.
 */
#include "init/machine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

#define US_PER_TICK 10000u /* USER_HZ is 100 on every architecture that cells run on */

static void put(struct machine_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct machine_text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(t->at + t->len, t->size - t->len, fmt, args);

	va_end(args);
	if (n > 0 && (size_t)n < t->size - t->len)
		t->len += (size_t)n;
}

/* ---- numbers from text ---------------------------------------------------------------------- */

/* The text after @key at the beginning of a line; NULL: no line has it. */
static const char *line_after(const char *lines, const char *key)
{
	size_t n = strlen(key);

	while (lines && *lines) {
		if (strncmp(lines, key, n) == 0 && lines[n] == ' ')
			return lines + n + 1;
		lines = strchr(lines, '\n');
		lines = lines ? lines + 1 : NULL;
	}
	return NULL;
}

uint64_t machine_text_value(const char *lines, const char *key)
{
	const char *value = line_after(lines, key);

	return value ? strtoull(value, NULL, 10) : 0;
}

void machine_text_memory(const char *lines, struct machine_memory *m)
{
	/* The names of v2 and of v1; none has both. */
	const struct {
		const char *v2, *v1;
		uint64_t *ret;
	} rows[] = {
		{ "anon", "rss", &m->anon },
		{ "file", "cache", &m->file },
		{ "shmem", NULL, &m->shmem },
		{ "file_mapped", "mapped_file", &m->mapped },
		{ "file_dirty", "dirty", &m->dirty },
		{ "file_writeback", "writeback", &m->writeback },
		{ "active_anon", NULL, &m->active_anon },
		{ "inactive_anon", NULL, &m->inactive_anon },
		{ "active_file", NULL, &m->active_file },
		{ "inactive_file", NULL, &m->inactive_file },
		{ "unevictable", NULL, &m->unevictable },
		{ "slab", NULL, &m->slab },
		{ "slab_reclaimable", NULL, &m->slab_reclaimable },
		{ "kernel_stack", NULL, &m->kernel_stack },
		{ "pagetables", NULL, &m->page_tables },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		*rows[i].ret = machine_text_value(lines, rows[i].v2);
		if (*rows[i].ret == 0 && rows[i].v1)
			*rows[i].ret = machine_text_value(lines, rows[i].v1);
	}
}

void machine_text_cpu(const char *lines, struct machine_load *l)
{
	if (line_after(lines, "user_usec")) {
		l->user_us = machine_text_value(lines, "user_usec");
		l->system_us = machine_text_value(lines, "system_usec");
	} else {
		l->user_us = machine_text_value(lines, "user") * US_PER_TICK;
		l->system_us = machine_text_value(lines, "system") * US_PER_TICK;
	}
}

/* The name of a process is the guest's, with any bytes: the fields begin after its last bracket. */
bool machine_text_process(const char *line, struct machine_process *ret)
{
	const char *at = strrchr(line, ')');
	uint64_t field[21]; /* 4 ppid, ..., 14 utime, 15 stime, 20 num_threads, 24 rss */

	if (!at || at[1] != ' ' || !at[2])
		return false;
	ret->running = at[2] == 'R';
	at += 3;
	for (size_t i = 0; i < ARRAY_SIZE(field); i++) {
		char *end;

		field[i] = strtoull(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	ret->user_us = field[14 - 4] * US_PER_TICK;
	ret->system_us = field[15 - 4] * US_PER_TICK;
	ret->threads = (uint32_t)field[20 - 4];
	ret->rss_pages = field[24 - 4];
	return true;
}

/* ---- text from numbers ---------------------------------------------------------------------- */

static void put_kb(struct machine_text *t, const char *name, uint64_t bytes)
{
	put(t, "%-16s%8" PRIu64 " kB\n", name, bytes / 1024);
}

void machine_text_meminfo(struct machine_text *t, const struct machine_memory *m)
{
	uint64_t available = m->total > m->used ? m->total - m->used : 0;
	uint64_t cache = m->active_file + m->inactive_file + m->slab_reclaimable;
	const struct {
		const char *name;
		uint64_t bytes;
	} rows[] = {
		{ "MemTotal:", m->total },
		{ "MemFree:", available },
		/* The cache of files makes room when it is needed. */
		{ "MemAvailable:", available + cache < m->total ? available + cache : m->total },
		{ "Buffers:", 0 },
		{ "Cached:", m->file },
		{ "SwapCached:", 0 },
		{ "Active:", m->active_anon + m->active_file },
		{ "Inactive:", m->inactive_anon + m->inactive_file },
		{ "Active(anon):", m->active_anon },
		{ "Inactive(anon):", m->inactive_anon },
		{ "Active(file):", m->active_file },
		{ "Inactive(file):", m->inactive_file },
		{ "Unevictable:", m->unevictable },
		{ "Mlocked:", 0 },
		{ "SwapTotal:", 0 },
		{ "SwapFree:", 0 },
		{ "Dirty:", m->dirty },
		{ "Writeback:", m->writeback },
		{ "AnonPages:", m->anon },
		{ "Mapped:", m->mapped },
		{ "Shmem:", m->shmem },
		{ "KReclaimable:", m->slab_reclaimable },
		{ "Slab:", m->slab },
		{ "SReclaimable:", m->slab_reclaimable },
		{ "SUnreclaim:",
		  m->slab > m->slab_reclaimable ? m->slab - m->slab_reclaimable : 0 },
		{ "KernelStack:", m->kernel_stack },
		{ "PageTables:", m->page_tables },
		{ "CommitLimit:", m->total },
		{ "Committed_AS:", m->used },
		{ "VmallocTotal:", 0 },
		{ "VmallocUsed:", 0 },
		{ "AnonHugePages:", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		put_kb(t, rows[i].name, rows[i].bytes);
	put(t, "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n");
}

static uint64_t idle_us(const struct machine_load *l)
{
	uint64_t all = l->age_us * l->n_cpus, busy = l->user_us + l->system_us;

	return all > busy ? all - busy : 0;
}

void machine_text_stat(struct machine_text *t, const struct machine_load *l)
{
	uint64_t user = l->user_us / US_PER_TICK, system = l->system_us / US_PER_TICK;
	uint64_t idle = idle_us(l) / US_PER_TICK, n = l->n_cpus;

	put(t, "cpu  %" PRIu64 " 0 %" PRIu64 " %" PRIu64 " 0 0 0 0 0 0\n", user, system, idle);
	/* No one counts the cell's time on each processor: each has its equal part. */
	for (uint64_t i = 0; i < n; i++)
		put(t, "cpu%" PRIu64 " %" PRIu64 " 0 %" PRIu64 " %" PRIu64 " 0 0 0 0 0 0\n", i,
		    (user + i) / n, (system + i) / n, (idle + i) / n);
	put(t,
	    "intr 0\nctxt 0\nbtime %" PRIu64 "\nprocesses %" PRIu32 "\nprocs_running %" PRIu32
	    "\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
	    l->boot_s, l->last_pid, l->running);
}

void machine_text_loadavg(struct machine_text *t, const struct machine_load *l)
{
	put(t, "%.2f %.2f %.2f %" PRIu32 "/%" PRIu32 " %" PRIu32 "\n", l->average[0], l->average[1],
	    l->average[2], l->running, l->threads, l->last_pid);
}

void machine_text_uptime(struct machine_text *t, const struct machine_load *l)
{
	uint64_t idle = idle_us(l) / US_PER_TICK;

	put(t, "%" PRIu64 ".%02" PRIu64 " %" PRIu64 ".%02" PRIu64 "\n", l->uptime_ms / 1000,
	    l->uptime_ms / 10 % 100, idle / 100, idle % 100);
}

/* The line "key<tabs>: value" of cpuinfo whose value depends on which processors there are. */
static bool put_own(struct machine_text *t, const char *line, size_t key, uint32_t i, uint32_t n)
{
	static const struct {
		const char *key;
		bool all; /* how many there are, instead of which one it is */
	} rows[] = {
		{ "processor", false }, { "core id", false },  { "apicid", false },
		{ "siblings", true },   { "cpu cores", true }, { "initial apicid", false },
	};

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		if (strlen(rows[k].key) != key || strncmp(line, rows[k].key, key) != 0)
			continue;
		put(t, "%.*s: %" PRIu32 "\n", (int)strcspn(line, ":"), line, rows[k].all ? n : i);
		return true;
	}
	return false;
}

void machine_text_processor(struct machine_text *t, const char *source, uint32_t i, uint32_t n)
{
	while (*source && *source != '\n') {
		size_t len = strcspn(source, "\n");

		if (!put_own(t, source, strcspn(source, "\t:"), i, n))
			put(t, "%.*s\n", (int)len, source);
		source += len + (source[len] == '\n');
	}
	put(t, "\n");
}

/* e to the power of -x, to within a percent, for 0 and up. */
static double decay(double x)
{
	return 1 / (1 + x + x * x / 2 + x * x * x / 6 + x * x * x * x / 24);
}

void machine_average(double average[3], double seconds, double busy)
{
	static const double over[] = { 60, 300, 900 };

	for (size_t i = 0; i < ARRAY_SIZE(over); i++) {
		double keep = decay(seconds / over[i]);

		average[i] = average[i] * keep + busy * (1 - keep);
	}
}
