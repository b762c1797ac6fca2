/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_evidence.c - Copies from /proc, taken of a small family of our own processes.
 *
 * The family stands for a cell: its first process has two threads more, a descriptor with a name
 * that tries to look like other evidence, and a child that has a child.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/cgroup.h"
#include "cell/evidence.h"
#include "wire/evidence.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"

#define THREADS 3
#define HOSTILE_NAME "/tmp/test-evidence\nCapEff:\t0000000000000000\n"

struct family {
	pid_t first;
	int pids[3]; /* the first and its descendants, as they reported them */
	int hold;    /* closing it ends all of them */
};

static struct err err;

/* ---- the family ------------------------------------------------------------------------------ */

static void *thread_main(void *arg)
{
	(void)arg;
	for (;;)
		(void)pause();
	return NULL;
}

/* Tell our pid, and live until the other end of @hold is closed. */
static void live(int tell, int hold)
{
	int pid = getpid();
	char ch;

	CHILD_CHECK(write(tell, &pid, sizeof(pid)) == (ssize_t)sizeof(pid));
	CHILD_CHECK(read(hold, &ch, 1) == 0);
}

static void family_main(int tell, int hold)
{
	pthread_t t;

	CHILD_CHECK(open(HOSTILE_NAME, O_RDWR | O_CREAT, 0600) >= 0);
	CHILD_CHECK(unlink(HOSTILE_NAME) == 0);
	pid_t child = fork();

	CHILD_CHECK(child >= 0);
	if (child == 0) {
		if (fork() == 0) {
			(void)prctl(PR_SET_NAME, "CapEff:\n0)");
			live(tell, hold);
			_exit(0);
		}
		live(tell, hold);
		_exit(0);
	}
	for (int i = 1; i < THREADS; i++)
		CHILD_CHECK(pthread_create(&t, NULL, thread_main, NULL) == 0);
	live(tell, hold);
}

static struct family family_start(void)
{
	struct family f;
	int tell[2], hold[2];

	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	(void)fflush(NULL);
	f.first = fork();
	assert_true(f.first >= 0);
	if (f.first == 0) {
		(void)alarm(CHILD_DEADLINE_S);
		fd_close(hold[1]);
		family_main(tell[1], hold[0]);
		_exit(0);
	}
	fd_close(tell[1]);
	fd_close(hold[0]);
	for (size_t i = 0; i < ARRAY_SIZE(f.pids); i++)
		assert_int_equal(read(tell[0], &f.pids[i], sizeof(f.pids[i])), sizeof(f.pids[i]));
	fd_close(tell[0]);
	f.hold = hold[1];
	return f;
}

static void family_end(struct family *f)
{
	fd_close(f->hold);
	assert_int_equal(child_wait(f->first), 0);
}

/* ---- reading it ------------------------------------------------------------------------------ */

struct evidence {
	char *data;
	size_t len;
};

static struct evidence collect(pid_t pid, const struct cgroup *cgroup)
{
	struct evidence v;
	struct stat st;
	int before = open_fds();
	int fd = evidence_collect(pid, 0, cgroup, &err);

	if (fd < 0)
		fail_msg("evidence_collect: %s", err.msg);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GET_SEALS),
			 F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_in_range(st.st_size, 1, EVIDENCE_MAX);
	v.len = (size_t)st.st_size;
	v.data = malloc(v.len);
	assert_non_null(v.data);
	assert_int_equal(pread(fd, v.data, v.len, 0), v.len);
	fd_close(fd);
	assert_int_equal(open_fds(), before);
	return v;
}

/* The next item of @kind (0: any) of @pid (0: any), as a string. False at the end. */
static bool next(const struct evidence *v, size_t *at, uint32_t kind, int pid,
		 struct evidence_item *item, char text[EVIDENCE_ITEM_MAX + 1])
{
	while (*at < v->len) {
		assert_true(v->len - *at >= sizeof(*item));
		memcpy(item, v->data + *at, sizeof(*item));
		size_t padded = ((size_t)item->len + 7) / 8 * 8;

		*at += sizeof(*item);
		assert_true(item->len <= EVIDENCE_ITEM_MAX && padded <= v->len - *at);
		for (size_t i = item->len; i < padded; i++)
			assert_int_equal(v->data[*at + i], 0);
		memcpy(text, v->data + *at, item->len);
		text[item->len] = '\0';
		*at += padded;
		if ((!kind || item->kind == kind) && (!pid || item->pid == (uint32_t)pid))
			return true;
	}
	return false;
}

static unsigned int count(const struct evidence *v, uint32_t kind, int pid)
{
	static char text[EVIDENCE_ITEM_MAX + 1];
	struct evidence_item item;
	unsigned int n = 0;

	for (size_t at = 0; next(v, &at, kind, pid, &item, text);)
		n++;
	return n;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(family)
{
	static char text[EVIDENCE_ITEM_MAX + 1];
	struct family f = family_start();
	struct evidence v = collect(f.first, NULL);
	struct evidence_item item;
	size_t at = 0;

	/* First what everything is compared with. */
	assert_true(next(&v, &at, 0, 0, &item, text));
	assert_int_equal(item.kind, EVIDENCE_HOST_NS);
	assert_int_equal(item.pid, 0);

	while (next(&v, &at, 0, 0, &item, text)) {
		assert_in_range(item.kind, EVIDENCE_NS, EVIDENCE_LOST);
		assert_int_not_equal(item.kind, EVIDENCE_LOST);
		assert_int_equal(item.is_init, item.pid == (uint32_t)f.first);
	}
	for (size_t i = 0; i < ARRAY_SIZE(f.pids); i++) {
		bool first = f.pids[i] == f.first;

		assert_int_equal(count(&v, EVIDENCE_NS, f.pids[i]), 1);
		assert_int_equal(count(&v, EVIDENCE_LIMITS, f.pids[i]), 1);
		assert_int_equal(count(&v, EVIDENCE_STATUS, f.pids[i]), first ? THREADS : 1);
		assert_int_equal(count(&v, EVIDENCE_MOUNTINFO, f.pids[i]), first ? 1 : 0);
		assert_true(count(&v, EVIDENCE_FD, f.pids[i]) >= 3);
	}
	assert_int_equal(count(&v, EVIDENCE_NS, 0), ARRAY_SIZE(f.pids));
	assert_int_equal(count(&v, EVIDENCE_STATUS, 0), ARRAY_SIZE(f.pids) + THREADS - 1);
	assert_int_equal(count(&v, EVIDENCE_CGROUP, 0), 0);
	free(v.data);
	family_end(&f);
}

TEST(texts)
{
	static const char *const ns[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup" };
	static char text[EVIDENCE_ITEM_MAX + 1], host[EVIDENCE_ITEM_MAX + 1];
	struct family f = family_start();
	struct evidence v = collect(f.first, NULL);
	struct evidence_item item;
	size_t at = 0;
	char *line = host;

	assert_true(next(&v, &at, EVIDENCE_HOST_NS, 0, &item, host));
	for (size_t i = 0; i < ARRAY_SIZE(ns); i++) {
		char path[64], want[64];

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", ns[i]);
		ssize_t n = readlink(path, want, sizeof(want) - 2);

		assert_true(n > 0);
		want[n] = '\n';
		want[n + 1] = '\0';
		assert_int_equal(strncmp(line, want, strlen(want)), 0);
		line += strlen(want);
	}
	assert_int_equal(*line, '\0');
	/* The family never left ours. */
	at = 0;
	assert_true(next(&v, &at, EVIDENCE_NS, f.pids[2], &item, text));
	assert_string_equal(text, host);

	at = 0;
	assert_true(next(&v, &at, EVIDENCE_STATUS, f.first, &item, text));
	assert_non_null(strstr(text, "\nCapEff:\t"));
	assert_non_null(strstr(text, "\nNoNewPrivs:\t"));
	assert_non_null(strstr(text, "\nSeccomp:\t"));
	at = 0;
	assert_true(next(&v, &at, EVIDENCE_LIMITS, f.first, &item, text));
	assert_non_null(strstr(text, "Max open files"));
	at = 0;
	assert_true(next(&v, &at, EVIDENCE_MOUNTINFO, f.first, &item, text));
	assert_non_null(strstr(text, " / "));
	free(v.data);
	family_end(&f);
}

/* A name that a guest chose stays inside its frame: it makes no item and no line of a status. */
TEST(hostile_names)
{
	static char text[EVIDENCE_ITEM_MAX + 1];
	struct family f = family_start();
	struct evidence v = collect(f.first, NULL);
	struct evidence_item item;
	unsigned int found = 0;

	for (size_t at = 0; next(&v, &at, EVIDENCE_FD, f.first, &item, text);)
		found += strstr(text, HOSTILE_NAME) != NULL;
	assert_int_equal(found, 1);
	for (size_t at = 0; next(&v, &at, EVIDENCE_STATUS, 0, &item, text);) {
		const char *cap = strstr(text, "\nCapEff:\t");

		assert_non_null(cap);
		assert_null(strstr(cap + 1, "\nCapEff:"));
		/* The kernel escapes line ends in a process's name. */
		assert_int_equal(strncmp(text, "Name:\t", 6), 0);
		assert_int_equal(strncmp(strchr(text, '\n'), "\nUmask:", 7), 0);
	}
	free(v.data);
	family_end(&f);
}

static void gone_at_once(void *arg)
{
	(void)arg;
}

/* No process: the evidence has only the warden's own knowledge. */
TEST(process_that_is_gone)
{
	pid_t pid = child_start(gone_at_once, NULL);
	struct evidence v;

	assert_int_equal(child_wait(pid), 0);
	v = collect(pid, NULL);
	assert_int_equal(count(&v, EVIDENCE_HOST_NS, 0), 1);
	assert_int_equal(count(&v, 0, 0), 1);
	free(v.data);
}

static void collect_as_nobody(void *arg)
{
	const struct family *f = arg;
	struct evidence_item item;
	unsigned int lost = 0;

	child_become_nobody();
	_fd_ int fd = evidence_collect(f->first, 0, NULL, &err);

	CHILD_CHECK(fd >= 0);
	CHILD_CHECK(lseek(fd, 0, SEEK_SET) == 0);
	while (read(fd, &item, sizeof(item)) == (ssize_t)sizeof(item)) {
		CHILD_CHECK(item.kind != EVIDENCE_NS && item.kind != EVIDENCE_FD);
		lost += item.kind == EVIDENCE_LOST && item.pid == (uint32_t)f->first;
		CHILD_CHECK(lseek(fd, (off_t)(item.len + 7) / 8 * 8, SEEK_CUR) > 0);
	}
	CHILD_CHECK(lost >= 2); /* namespaces and descriptors */
}

/* Unreadable evidence is reported as missing: a receipt must not take silence for good news. */
TEST(unreadable)
{
	need_root("a process of another user");
	struct family f = family_start();
	int status = child_wait(child_start(collect_as_nobody, &f));

	family_end(&f);
	assert_int_equal(status, 0);
}

TEST(cgroup_limits)
{
	static char text[EVIDENCE_ITEM_MAX + 1];
	struct cgroup_limits limits = { .memory_bytes = 64u << 20, .pids = 9, .cpu_milli = 500 };
	struct cgroup_site site;
	struct cgroup c;
	struct evidence_item item;
	char name[CGROUP_NAME_MAX];
	size_t at = 0;
	int r = cgroup_site_find(&site, &err);

	if (r == 0)
		r = cgroup_site_prepare(&site, &err);
	if (r < 0) {
		printf("# skipped: %s\n", err.msg);
		skip();
	}
	(void)snprintf(name, sizeof(name), "t-evidence-%d", (int)getpid());
	assert_int_equal(cgroup_plan(&site, name, &c, &err), 0);
	assert_int_equal(cgroup_create(&c, &limits, &err), 0);
	struct evidence v = collect(getpid(), &c);

	assert_int_equal(cgroup_remove(&c, 5000, &err), 0);
	assert_int_equal(count(&v, EVIDENCE_CGROUP, 0), 1);
	assert_true(next(&v, &at, EVIDENCE_CGROUP, 0, &item, text));
	assert_int_equal(item.pid, 0);
	assert_string_equal(text, "memory 67108864\npids 9\ncpu_milli 500\n");
	free(v.data);
}

/* It is asked for while a guest may fork as it likes: it ends, and frames stay whole. */
static void forker(void *arg)
{
	(void)arg;
	(void)signal(SIGCHLD, SIG_IGN);
	for (uint64_t end = clock_now_ns() + 700 * CLOCK_NS_PER_MS; clock_now_ns() < end;) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		CHILD_CHECK(pid > 0);
	}
}

TEST(moving_target)
{
	pid_t pid = child_start(forker, NULL);
	int rounds = 0;

	while (waitpid(pid, NULL, WNOHANG) == 0) {
		struct evidence v = collect(pid, NULL);

		assert_int_equal(count(&v, EVIDENCE_HOST_NS, 0), 1);
		free(v.data);
		rounds++;
	}
	assert_true(rounds > 0);
}
