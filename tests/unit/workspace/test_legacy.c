/* SPDX-License-Identifier: Apache-2.0 */
/* test_legacy.c - A job dies between a tree's name and its answer: the next shelf answers for it, and only then. */
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
#include "workspace/legacy.h"

#define KEY "0123456789abcdef0123456789abcdef"

static char top[] = "/tmp/caisson-legacy-XXXXXX";
static int shelf = -1, ward = -1;
static struct legacy *legacy;

static int setup(void **state)
{
	(void)state;
	legacy = legacy_new();
	if (!legacy || !mkdtemp(top))
		return -1;
	shelf = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (shelf < 0 || mkdirat(shelf, KEY, 0700) < 0)
		return -1;
	ward = openat(shelf, KEY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ward < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlinkat(ward, "g2", AT_REMOVEDIR);
	(void)unlinkat(ward, "new.1", AT_REMOVEDIR);
	(void)unlinkat(shelf, KEY, AT_REMOVEDIR);
	fd_close(ward);
	fd_close(shelf);
	return rmdir(top);
}

/* A job, up to its sudden end: it promises g2, and gives it its name or not. */
static void job(struct promise *p, bool named)
{
	struct shelf_reply r = { .op = SHELF_COMMIT, .seq = 7, .generation = 1, .changes = 3 };
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
	struct promise *p = &legacy->promises[0];

	(void)state;
	assert_false(promise_is_kept(p, shelf));
	job(p, false);
	assert_int_equal(p->reply.seq, 7);
	assert_false(promise_is_kept(p, shelf));
	/* What another made of that name is not what was promised. */
	assert_int_equal(mkdirat(ward, "g2", 0755), 0);
	assert_false(promise_is_kept(p, shelf));
	assert_int_equal(unlinkat(ward, "g2", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(ward, "new.1", AT_REMOVEDIR), 0);
}

static void test_named(void **state)
{
	struct promise *p = &legacy->promises[1];

	(void)state;
	job(p, true);
	assert_true(promise_is_kept(p, shelf));
	assert_int_equal(p->reply.generation, 2);
	assert_int_equal(p->reply.changes, 3);
	assert_int_equal(p->reply.cut, 1);
	promise_drop(p);
	assert_false(promise_is_kept(p, shelf));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_named),
		cmocka_unit_test(test_named),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
