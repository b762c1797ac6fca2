/* SPDX-License-Identifier: Apache-2.0 */
/* test_export.c - Jobs of the workspace store on one workspace: a view of a former generation; an
 * export to a reader that does not read, which delays no other job, and whose half is never taken
 * for a whole. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/fd.h"
#include "tree_store/tree.h"
#include "workspace_store/workspace_job.h"

#define KEY "0123456789abcdef0123456789abcdef"
#define FILES 40
#define BYTES 16384 /* of each: together more than any pipe holds */

static char top[] = "/tmp/caisson-export-XXXXXX";
static int store_dir = -1;

static int ask(uint32_t op, const char *tree, int fd, struct workspace_store_reply *ret)
{
	struct workspace_store_req q = { .version = WORKSPACE_STORE_VERSION, .op = op, .key = KEY };

	strncpy(q.tree, tree, sizeof(q.tree) - 1);
	*ret = (struct workspace_store_reply){ .op = op };
	fd_close(job_run(store_dir, &q, fd, NULL, ret));
	return ret->code;
}

static int fill(int dir)
{
	static char content[BYTES];
	char name[] = "f00";
	int r = 0;

	memset(content, 'x', sizeof(content)); /* nothing that looks like an end */
	for (int i = 0; r == 0 && i < FILES; i++) {
		name[1] = (char)('0' + i / 10);
		name[2] = (char)('0' + i % 10);
		_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		r = fd < 0 ? -errno : fd_write_all(fd, content, sizeof(content));
	}
	return r;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	store_dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store_dir < 0 || mkdirat(store_dir, KEY, 0700) < 0 ||
	    mkdirat(store_dir, KEY "/g1", 0755) < 0)
		return -1;
	_fd_ int g1 = openat(store_dir, KEY "/g1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return g1 < 0 ? -1 : fill(g1);
}

static int teardown(void **state)
{
	(void)state;
	(void)tree_remove(store_dir, KEY);
	fd_close(store_dir);
	return rmdir(top);
}

struct unit_fixture unit_group = { setup, teardown };

/* A job that packs the newest tree into the pipe that is returned; it is at work when something can
 * be read. */
static int begin(pid_t *ret)
{
	struct workspace_store_reply r;
	int pair[2];
	char first;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	*ret = fork();
	if (*ret == 0) {
		fd_close(pair[0]);
		_exit(-ask(WORKSPACE_STORE_EXPORT, "", pair[1], &r));
	}
	fd_close(pair[1]);
	assert_true(*ret > 0);
	assert_int_equal(read(pair[0], &first, 1), 1);
	return pair[0];
}

/* Everything that comes; whether the last two blocks are the end of an archive. The job's errno. */
static int finish(int fd, pid_t pid, bool *ret_whole)
{
	static char data[2 * FILES * BYTES];
	static const char end[1024];
	size_t len = 0;
	ssize_t n;
	int status;

	while ((n = read(fd, data + len, sizeof(data) - len)) > 0)
		len += (size_t)n;
	assert_true(n == 0 && len > sizeof(end));
	*ret_whole = memcmp(data + len - sizeof(end), end, sizeof(end)) == 0;
	fd_close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Another generation is the newest by now. */
TEST(view_of_the_tree_that_is_asked_for)
{
	struct workspace_store_reply r;
	char shown[80], hidden[80];
	_fd_ int rules = fd_memfd("rules", "-f1*\n", 5);

	assert_int_equal(mkdirat(store_dir, KEY "/g2", 0755), 0);
	assert_int_equal(ask(WORKSPACE_STORE_VIEW, "g1", rules, &r), 0);
	assert_memory_equal(r.tree, "v1.", 3);
	(void)snprintf(shown, sizeof(shown), KEY "/%s/f00", r.tree);
	(void)snprintf(hidden, sizeof(hidden), KEY "/%s/f10", r.tree);
	assert_int_equal(faccessat(store_dir, shown, F_OK, 0), 0);
	assert_int_equal(faccessat(store_dir, hidden, F_OK, 0), -1);
	assert_int_equal(ask(WORKSPACE_STORE_VIEW, "", rules, &r), 0);
	assert_memory_equal(r.tree, "v2.", 3);
	assert_int_equal(unlinkat(store_dir, KEY "/g2", AT_REMOVEDIR), 0);
}

TEST(nobody_waits)
{
	struct workspace_store_reply r;
	bool whole;
	pid_t pid;
	int fd = begin(&pid);

	assert_int_equal(ask(WORKSPACE_STORE_LOOK, "", -1, &r), 0);
	assert_int_equal(r.generation, 1);
	assert_int_equal(ask(WORKSPACE_STORE_OPEN, "", -1, &r), 0);
	assert_int_equal(finish(fd, pid, &whole), 0);
	assert_true(whole);
}

TEST(half_is_no_whole)
{
	struct workspace_store_reply r;
	bool whole;
	pid_t pid;
	int fd = begin(&pid);

	assert_int_equal(mkdirat(store_dir, KEY "/g2", 0755), 0);
	assert_int_equal(ask(WORKSPACE_STORE_DROP, "g1", -1, &r), 0);
	assert_int_equal(r.generation, 2);
	assert_int_not_equal(finish(fd, pid, &whole), 0);
	assert_false(whole);
}

TEST(nor_of_a_workspace_that_goes)
{
	struct workspace_store_reply r;
	bool whole;
	pid_t pid;

	_fd_ int g2 = openat(store_dir, KEY "/g2", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(fill(g2), 0);
	int fd = begin(&pid);

	assert_int_equal(ask(WORKSPACE_STORE_REMOVE, "", -1, &r), 0);
	assert_int_not_equal(finish(fd, pid, &whole), 0);
	assert_false(whole);
}
