/* SPDX-License-Identifier: Apache-2.0 */
/* test_remains.c - Cgroups that have to go: full of processes that fork, or with something in them
 * that stays. */
#include "warden/warden_cell.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/cgroup.h"
#include "cell/journal.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* cmocka.h needs these first. */

#include "../cell/cgroup_kind.h"
#include "../child.h"
#include "../unit.h"

#define PIDS 24
#define WAIT_NS (30 * CLOCK_NS_PER_S)

static char state[64];
static int records = -1;

static void make(struct record *r, struct cgroup *c)
{
	const struct cgroup_limits limits = { .pids = PIDS, .cpu_milli = 500 };
	struct cgroup_site site;
	struct err e = { 0 };
	char name[CGROUP_NAME_MAX];

	if (cgroup_site_find(&site, &e) < 0 || cgroup_site_prepare(&site, &e) < 0)
		CHILD_SKIP("no cgroup to be had here: %s", e.msg);
	(void)snprintf(state, sizeof(state), "/tmp/test-remains-XXXXXX");
	CHILD_CHECK(mkdtemp(state) != NULL);
	records = record_dir(state, NULL);
	CHILD_CHECK(records >= 0 && record_begin(records, r, NULL) == 0);
	(void)snprintf(name, sizeof(name), "t-remains-%d", (int)getpid());
	CHILD_CHECK(cgroup_plan(&site, name, c, &e) == 0 && record_commit(r, c, &e) == 0);
	if (cgroup_create(c, &limits, &e) < 0)
		CHILD_SKIP("no cgroup to be had here: %s", e.msg);
}

static int records_left(void)
{
	char path[96];
	int n = 0;

	(void)snprintf(path, sizeof(path), "%s/cells", state);
	DIR *d = opendir(path);

	CHILD_CHECK(d != NULL);
	for (struct dirent *de; (de = readdir(d));)
		n += de->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

static void clean_up(void)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/cells", state);
	CHILD_CHECK(rmdir(path) == 0 && rmdir(state) == 0);
}

static void gone(const struct cgroup *c)
{
	for (size_t i = 0; i < c->n_dirs; i++)
		CHILD_CHECK(access(c->path[i], F_OK) < 0 && errno == ENOENT);
}

/* Processes of processes until there are no more to be had; each says so. They end by themselves if
 * the test fails. */
static int start_bomb(const struct cgroup *c)
{
	uint64_t end = clock_now_ns() + 2 * WAIT_NS;
	struct cgroup_enter enter;
	int pair[2], go[2];
	char byte;

	CHILD_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	CHILD_CHECK(cgroup_join_open(c, 0, &enter, NULL) == 0 && pipe(pair) == 0 && pipe(go) == 0);
	pid_t pid = fork();

	CHILD_CHECK(pid >= 0);
	if (pid == 0 && (read(go[0], &byte, 1) != 1 || cgroup_enter_self(&enter) < 0))
		_exit(1);
	if (pid > 0)
		CHILD_CHECK(cgroup_move(c, pid, NULL) == 0 && write(go[1], "g", 1) == 1);
	while (pid == 0) {
		(void)!write(pair[1], "x", 1);
		while (fork() != 0)
			if (clock_now_ns() > end)
				_exit(0);
	}
	cgroup_enter_close(&enter);
	fd_close(go[0]);
	fd_close(go[1]);
	fd_close(pair[1]);
	return pair[0];
}

static void see_it_go(struct remains_list *l)
{
	uint64_t end = clock_now_ns() + WAIT_NS;

	while (l->n > 0) {
		uint64_t next = remains_check(l, clock_now_ns());

		CHILD_CHECK((next != 0) == (l->n > 0) && clock_now_ns() < end);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		(void)usleep(200);
	}
}

CHILD_TEST(forks)
{
	struct remains_list l = { 0 };
	struct cgroup c;
	struct record r;
	char said;

	make(&r, &c);
	struct cgroup paths = c;
	int fd = start_bomb(&c);

	for (int i = 0; i < PIDS; i++) /* it has as many as it may have */
		CHILD_CHECK(read(fd, &said, 1) == 1);
	remains_add(&l, &r, &c, -1);
	CHILD_CHECK(l.n == 1 && records_left() == 1); /* no request waited for it */
	see_it_go(&l);
	gone(&paths);
	CHILD_CHECK(records_left() == 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
	CHILD_CHECK(errno == ECHILD); /* all of them are dead */
	fd_close(fd);
	clean_up();
}

/* A directory that is not empty stays busy: it is tried again, and at the end the record is there.
 */
CHILD_TEST(stays)
{
	struct remains_list l = { 0 };
	struct sweep_result swept;
	struct cgroup c;
	struct record r;
	char nested[CGROUP_PATH_MAX + 8];

	make(&r, &c);
	struct cgroup paths = c;

	(void)snprintf(nested, sizeof(nested), "%s/in", c.path[0]);
	CHILD_CHECK(mkdir(nested, 0755) == 0);
	int lease[2];

	CHILD_CHECK(pipe(lease) == 0);
	remains_add(&l, &r, &c, lease[1]);
	CHILD_CHECK(l.n == 1 && remains_check(&l, clock_now_ns() + CLOCK_NS_PER_S) != 0);
	struct pollfd held = { .fd = lease[0], .events = POLLIN };

	CHILD_CHECK(poll(&held, 1, 0) == 0); /* the image is in use */
	remains_end(&l, 20);
	CHILD_CHECK(l.n == 0 && records_left() == 1 && poll(&held, 1, 0) == 1);
	CHILD_CHECK(rmdir(nested) == 0);
	CHILD_CHECK(record_sweep(records, &swept, NULL) == 0 && swept.swept == 1);
	gone(&paths);
	clean_up();
}

/* All that can be removed at once is, and a cell that never had a cgroup has only its record. */
CHILD_TEST(at_once)
{
	struct remains_list l = { 0 };
	struct cgroup c;
	struct record r;

	make(&r, &c);
	struct cgroup paths = c;

	remains_add(&l, &r, &c, -1);
	CHILD_CHECK(l.n == 0 && records_left() == 0 && !remains_full(&l));
	gone(&paths);
	CHILD_CHECK(record_begin(records, &r, NULL) == 0 && records_left() == 1);
	remains_add(&l, &r, NULL, -1);
	CHILD_CHECK(l.n == 0 && records_left() == 0 && remains_check(&l, clock_now_ns()) == 0);
	clean_up();
}

/* tests/guest counts the units that found their layout. */
static void say_site(void)
{
	struct cgroup_site site;
	struct err e = { 0 };

	if (cgroup_site_find(&site, &e) == 0)
		printf("# site: %s, %zu directories\n", cgroup_kind_str(site.kind), site.n_dirs);
	else
		printf("# no site: %s\n", e.msg);
	(void)fflush(stdout);
}

int main(void)
{
	say_site();
	return unit_run();
}
