/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - The files in which code sees the cell's machine (wire/machine.h); init writes them.
 *
 * machine.c knows when to write and where the numbers come from; machine_text.c makes text of
 * numbers and numbers of text, and does nothing else.
 */
#ifndef CAISSON_INIT_MACHINE_H
#define CAISSON_INIT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/machine.h"

struct init_config;

/* machine_begin() - Before any command: the limits are right from the first read on. */
void machine_begin(const struct init_config *c);

/* machine_fd() - To be watched for POLLIN, and then machine_serve() called; -1: none. */
int machine_fd(void);
void machine_serve(void);

/* machine_refresh() - A command is about to start. */
void machine_refresh(void);

/* machine_wait_ms() - Write what is due; how long to wait until the next time, -1: for ever. */
int machine_wait_ms(void);

/* ---- text ----------------------------------------------------------------------------------- */

/* The cell's use of memory, in bytes. */
struct machine_memory {
	uint64_t total, used;
	uint64_t anon, file, shmem, mapped, dirty, writeback;
	uint64_t active_anon, inactive_anon, active_file, inactive_file, unevictable;
	uint64_t slab, slab_reclaimable, kernel_stack, page_tables;
};

/* The cell's use of processors, and its processes. */
struct machine_load {
	uint32_t n_cpus;
	uint64_t user_us, system_us; /* processor time of the whole cell */
	uint64_t age_us;             /* of the cell: each processor was there for so long */
	uint64_t uptime_ms;          /* CLOCK_BOOTTIME */
	uint64_t boot_s;             /* when that was 0; seconds since 1970 */
	uint32_t threads, running, last_pid;
	double average[3]; /* over 1, 5, 15 minutes: processors in use */
};

/* Text that is being made; more than there is room for is left out. */
struct machine_text {
	char *at;
	size_t len, size;
};

void machine_text_meminfo(struct machine_text *t, const struct machine_memory *m);
void machine_text_stat(struct machine_text *t, const struct machine_load *l);
void machine_text_loadavg(struct machine_text *t, const struct machine_load *l);
void machine_text_uptime(struct machine_text *t, const struct machine_load *l);

/* machine_text_processor() - One processor of /proc/cpuinfo, @i of @n. @source: the whole text of
 * the Linux kernel's, of which the first processor is the model. */
void machine_text_processor(struct machine_text *t, const char *source, uint32_t i, uint32_t n);

/* machine_text_value() - The number after @key in "key number" lines; 0: no such line. */
uint64_t machine_text_value(const char *lines, const char *key);

/* machine_text_memory() - Fill all but total and used from the text of memory.stat. */
void machine_text_memory(const char *lines, struct machine_memory *m);

/* machine_text_cpu() - Fill the processor times from the text of cpu.stat or cpuacct.stat. */
void machine_text_cpu(const char *lines, struct machine_load *l);

/* What /proc/PID/stat says of one process. */
struct machine_process {
	bool running;
	uint32_t threads;
	uint64_t user_us, system_us, rss_pages;
};

/* machine_text_process() - Whether @line is such a text. */
bool machine_text_process(const char *line, struct machine_process *ret);

/* machine_average() - Let @seconds pass in which @busy processors were in use. */
void machine_average(double average[3], double seconds, double busy);

#endif
