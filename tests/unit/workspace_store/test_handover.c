/* SPDX-License-Identifier: Apache-2.0 */
/* test_handover.c - A job dies between naming a tree and its answer: the next worker answers for
 * it, and only if the tree has its name. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/fd.h"
#include "workspace_store/workspace_dir.h"

#define KEY "0123456789abcdef0123456789abcdef"

static char top[] = "/tmp/caisson-handover-XXXXXX";
static int store_dir = -1, workspace = -1;
static struct handover *handover;

static int setup(void **state)
{
	(void)state;
	handover = handover_new();
	if (!handover || !mkdtemp(top))
		return -1;
	store_dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store_dir < 0 || mkdirat(store_dir, KEY, 0700) < 0)
		return -1;
	workspace = openat(store_dir, KEY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return workspace < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlinkat(workspace, "g2", AT_REMOVEDIR);
	(void)unlinkat(workspace, "new.1", AT_REMOVEDIR);
	(void)unlinkat(store_dir, KEY, AT_REMOVEDIR);
	fd_close(workspace);
	fd_close(store_dir);
	return rmdir(top);
}

struct unit_fixture unit_group = { setup, teardown };

/* A job, up to its sudden end: it promises g2, and gives it its name or not. */
static void job(struct promise *p, bool named)
{
	struct workspace_store_reply r = {
		.op = WORKSPACE_STORE_COMMIT, .seq = 7, .generation = 1, .changes = 3
	};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		_fd_ int tree =
			mkdirat(workspace, "new.1", 0755) < 0 ?
				-1 :
				openat(workspace, "new.1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		promise_make(p, &r, KEY, 2, tree);
		_exit(tree < 0 || (named && renameat(workspace, "new.1", workspace, "g2") < 0));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(not_named)
{
	struct promise *p = &handover->promises[0];

	assert_false(promise_is_kept(p, store_dir));
	job(p, false);
	assert_int_equal(p->reply.seq, 7);
	assert_false(promise_is_kept(p, store_dir));
	/* A directory of that name that another process made is not the promised one. */
	assert_int_equal(mkdirat(workspace, "g2", 0755), 0);
	assert_false(promise_is_kept(p, store_dir));
	assert_int_equal(unlinkat(workspace, "g2", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(workspace, "new.1", AT_REMOVEDIR), 0);
}

TEST(named)
{
	struct promise *p = &handover->promises[1];

	job(p, true);
	assert_true(promise_is_kept(p, store_dir));
	assert_int_equal(p->reply.generation, 2);
	assert_int_equal(p->reply.changes, 3);
	assert_int_equal(p->reply.cut, 1);
	promise_drop(p);
	assert_false(promise_is_kept(p, store_dir));
}
