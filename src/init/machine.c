/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - Writes what the cell sees of its machine, when it is read.
 *
 * Theory of operation. With the fanotify group of root's warden (cell/machine.c) the Linux kernel
 * holds each read() of the files until init has answered: init writes the file that is asked for,
 * and lets the reader go on. So a text is as new as its reader, a program that keeps the file open
 * (top) included, and init does nothing while no program reads. Init, its descriptors and its time
 * are the cell's own: a guest that reads without end slows itself down. Init must never read one of
 * these files itself, nor wait for a process that may: see NOEXEC in cell/machine.c.
 *
 * Without the group init writes at the start of each command and every two seconds. The limits are
 * always right, the use may be that old.
 */
#include "init/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fanotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "wire/init.h"

#define FRESH_NS CLOCK_NS_PER_MS       /* a text of this age is not written again */
#define PERIOD_NS (2 * CLOCK_NS_PER_S) /* without a group */
#define LOOK_MAX 256u                  /* processes that are looked at one by one */

static uint64_t memory_bytes;
static uint32_t n_cpus;
static bool live;
static uint64_t began_ns, due_ns;
static char space[96 * 1024]; /* of the texts; 1024 processors need 60 KiB */
static double average[3];

static struct file {
	uint64_t written_ns;
	size_t len;
	ino_t ino;
} files[MACHINE_FILES];

/* ---- where the numbers come from ------------------------------------------------------------ */

static const char *read_gauge(enum machine_gauge g)
{
	static char text[8192];
	ssize_t n = pread(MACHINE_FD_GAUGES + (int)g, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* The processes of the cell but init, which does this. */
struct crowd {
	uint32_t threads, running;
	uint64_t user_us, system_us, rss_bytes;
};

static void look_at(const char *pid, struct crowd *c)
{
	char path[64], text[1024];
	struct machine_process p;

	(void)snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	if (fd_read_file(AT_FDCWD, path, text, sizeof(text)) < 0 || !machine_text_process(text, &p))
		return;
	c->threads += p.threads;
	c->running += p.running;
	c->user_us += p.user_us;
	c->system_us += p.system_us;
	c->rss_bytes += p.rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct crowd look_around(void)
{
	_dir_ DIR *d = dir_list(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct crowd c = { .threads = 1 };
	uint32_t looked = 0;

	for (const char *name; d && (name = dir_next(d));) {
		if (name[0] < '1' || name[0] > '9' || (name[0] == '1' && !name[1]))
			continue;
		if (looked++ < LOOK_MAX)
			look_at(name, &c);
		else
			c.threads++;
	}
	return c;
}

/* Without a cgroup: the memory of the processes, and the files in the writable layer. */
static uint64_t counted_memory(const struct crowd *c)
{
	struct statfs fs;

	if (statfs("/", &fs) < 0)
		return c->rss_bytes;
	return c->rss_bytes + (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

/* Without a cgroup: the time of the processes, and of those that have ended. */
static void counted_cpu(const struct crowd *c, struct machine_load *l)
{
	struct rusage ended = { 0 };

	(void)getrusage(RUSAGE_CHILDREN, &ended);
	l->user_us = c->user_us + (uint64_t)ended.ru_utime.tv_sec * 1000000u +
		     (uint64_t)ended.ru_utime.tv_usec;
	l->system_us = c->system_us + (uint64_t)ended.ru_stime.tv_sec * 1000000u +
		       (uint64_t)ended.ru_stime.tv_usec;
}

static uint64_t clock_ms(clockid_t clock)
{
	struct timespec t = { 0 };

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static struct machine_memory take_memory(void)
{
	struct machine_memory m = { .total = memory_bytes };
	const char *used = read_gauge(MACHINE_MEMORY);

	if (*used) {
		m.used = strtoull(used, NULL, 10);
		machine_text_memory(read_gauge(MACHINE_MEMORY_STAT), &m);
	} else {
		struct crowd c = look_around();

		m.used = counted_memory(&c);
		m.anon = m.active_anon = c.rss_bytes;
	}
	return m;
}

/* The load is the processor time that was used since the last look, over the time that passed. */
static void take_average(const struct machine_load *l)
{
	static uint64_t last_us, last_busy_us;
	uint64_t busy_us = l->user_us + l->system_us, passed_us = l->age_us - last_us;

	if (passed_us < 100000)
		return;
	/* Without a cgroup the time of a kernel that ended is not known any more. */
	if (busy_us > last_busy_us)
		machine_average(average, (double)passed_us / 1e6,
				(double)(busy_us - last_busy_us) / (double)passed_us);
	else
		machine_average(average, (double)passed_us / 1e6, 0);
	last_us = l->age_us;
	last_busy_us = busy_us;
}

static struct machine_load take_load(void)
{
	struct machine_load l = { .n_cpus = n_cpus };
	struct crowd c = look_around();
	const char *cpu = read_gauge(MACHINE_CPU_STAT);
	char last[32];

	if (*cpu)
		machine_text_cpu(cpu, &l);
	else
		counted_cpu(&c, &l);
	l.age_us = (clock_now_ns() - began_ns) / 1000;
	l.uptime_ms = clock_ms(CLOCK_BOOTTIME);
	l.boot_s = (clock_ms(CLOCK_REALTIME) - l.uptime_ms) / 1000;
	l.threads = c.threads;
	l.running = c.running + live; /* the reader waits for us */
	if (fd_read_file(AT_FDCWD, "/proc/sys/kernel/ns_last_pid", last, sizeof(last)) > 0)
		l.last_pid = (uint32_t)strtoul(last, NULL, 10);
	take_average(&l);
	for (size_t i = 0; i < ARRAY_SIZE(average); i++)
		l.average[i] = average[i];
	return l;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* In place, and cut only if the text has become shorter: a reader never finds it empty. */
static void put_text(enum machine_file i, const struct machine_text *t)
{
	int fd = MACHINE_FD_FILES + (int)i;

	if (pwrite(fd, t->at, t->len, 0) == (ssize_t)t->len && t->len < files[i].len)
		(void)!ftruncate(fd, (off_t)t->len);
	files[i].len = t->len;
}

/* The first processor of the Linux kernel's text is the model of all. It does not change. */
static void put_cpuinfo(void)
{
	static char source[16384];
	char path[64];
	off_t at = 0;

	if (files[MACHINE_CPUINFO].written_ns)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", MACHINE_FD_SOURCE);
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : fd_read_full(fd, source, sizeof(source) - 1);

	source[n > 0 ? n : 0] = '\0';
	for (uint32_t i = 0; i < n_cpus; i++) {
		struct machine_text t = { .at = space, .size = sizeof(space) };

		machine_text_processor(&t, source, i, n_cpus);
		(void)!pwrite(MACHINE_FD_FILES + MACHINE_CPUINFO, t.at, t.len, at);
		at += (off_t)t.len;
	}
}

static void put_load(enum machine_file i, struct machine_text *t)
{
	struct machine_load l = take_load();

	if (i == MACHINE_STAT)
		machine_text_stat(t, &l);
	else if (i == MACHINE_LOADAVG)
		machine_text_loadavg(t, &l);
	else
		machine_text_uptime(t, &l);
	put_text(i, t);
}

static void write_file(enum machine_file i)
{
	struct machine_text t = { .at = space, .size = sizeof(space) };

	if (i == MACHINE_MEMINFO) {
		struct machine_memory m = take_memory();

		machine_text_meminfo(&t, &m);
		put_text(i, &t);
	} else if (i == MACHINE_CPUINFO) {
		put_cpuinfo();
	} else {
		put_load(i, &t);
	}
	files[i].written_ns = clock_now_ns();
}

/* ---- when they are written ------------------------------------------------------------------ */

void machine_begin(const struct init_config *c)
{
	struct stat st;

	memory_bytes = c->seen_memory;
	n_cpus = c->seen_cpus;
	began_ns = clock_now_ns();
	live = fstat(MACHINE_FD_WATCH, &st) == 0 && !S_ISCHR(st.st_mode);
	machine_refresh();
}

void machine_refresh(void)
{
	if (live)
		return;
	for (int i = 0; i < MACHINE_UPTIME; i++)
		write_file((enum machine_file)i);
	due_ns = clock_now_ns() + PERIOD_NS;
}

int machine_wait_ms(void)
{
	uint64_t now = clock_now_ns();

	if (live)
		return -1;
	if (now >= due_ns)
		machine_refresh();
	return due_ns > now ? (int)((due_ns - now) / CLOCK_NS_PER_MS) + 1 : 0;
}

int machine_fd(void)
{
	return live ? MACHINE_FD_WATCH : -1;
}

/* @fd: one of the files, as the Linux kernel opened it for us. */
static void write_asked(int fd)
{
	struct stat asked, st;

	if (fstat(fd, &asked) < 0)
		return;
	for (int i = 0; i < MACHINE_FILES; i++) {
		if (!files[i].ino && fstat(MACHINE_FD_FILES + i, &st) == 0)
			files[i].ino = st.st_ino;
		if (files[i].ino != asked.st_ino)
			continue;
		/* A reader reads at least twice, until nothing more comes. */
		if (!files[i].written_ns || clock_now_ns() - files[i].written_ns > FRESH_NS)
			write_file((enum machine_file)i);
	}
}

void machine_serve(void)
{
	struct fanotify_event_metadata events[32];
	long n = read(MACHINE_FD_WATCH, events, sizeof(events));

	for (const struct fanotify_event_metadata *e = events; FAN_EVENT_OK(e, n);
	     e = FAN_EVENT_NEXT(e, n)) {
		struct fanotify_response go = { .fd = e->fd, .response = FAN_ALLOW };

		if (e->fd < 0)
			continue;
		write_asked(e->fd);
		(void)!write(MACHINE_FD_WATCH, &go, sizeof(go));
		(void)close(e->fd);
	}
}
