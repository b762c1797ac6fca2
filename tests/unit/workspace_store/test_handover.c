/* SPDX-License-Identifier: Apache-2.0 */
/* test_handover.c - A job dies between a tree's name and its answer: the next store_dir answers for
 * it, and only then. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "workspace_store/handover.h"

#define KEY "0123456789abcdef0123456789abcdef"

static char top[] = "/tmp/caisson-handover-XXXXXX";
static int store_dir = -1, ward = -1;
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
	ward = openat(store_dir, KEY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ward < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlinkat(ward, "g2", AT_REMOVEDIR);
	(void)unlinkat(ward, "new.1", AT_REMOVEDIR);
	(void)unlinkat(store_dir, KEY, AT_REMOVEDIR);
	fd_close(ward);
	fd_close(store_dir);
	return rmdir(top);
}

/* A job, up to its sudden end: it promises g2, and gives it its name or not. */
static void job(struct promise *p, bool named)
{
	struct workspace_store_reply r = {
		.op = WORKSPACE_STORE_COMMIT, .seq = 7, .generation = 1, .changes = 3
	};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		_fd_ int tree = mkdirat(ward, "new.1", 0755) < 0 ?
					-1 :
					openat(ward, "new.1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		promise_make(p, &r, KEY, 2, tree);
		_exit(tree < 0 || (named && renameat(ward, "new.1", ward, "g2") < 0));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_not_named(void **state)
{
	struct promise *p = &handover->promises[0];

	(void)state;
	assert_false(promise_is_kept(p, store_dir));
	job(p, false);
	assert_int_equal(p->reply.seq, 7);
	assert_false(promise_is_kept(p, store_dir));
	/* What another made of that name is not what was promised. */
	assert_int_equal(mkdirat(ward, "g2", 0755), 0);
	assert_false(promise_is_kept(p, store_dir));
	assert_int_equal(unlinkat(ward, "g2", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(ward, "new.1", AT_REMOVEDIR), 0);
}

static void test_named(void **state)
{
	struct promise *p = &handover->promises[1];

	(void)state;
	job(p, true);
	assert_true(promise_is_kept(p, store_dir));
	assert_int_equal(p->reply.generation, 2);
	assert_int_equal(p->reply.changes, 3);
	assert_int_equal(p->reply.cut, 1);
	promise_drop(p);
	assert_false(promise_is_kept(p, store_dir));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_named),
		cmocka_unit_test(test_named),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
