/* SPDX-License-Identifier: Apache-2.0 */
/* test_workspace_use.c - The rules of a workspace: handed over, none, or an error; never dropped.
 */
#include "front/spec/workspace_use.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../unit.h"
#include "base/fd.h"

TEST(none)
{
	const struct workspace_use u = { .mode = WORKSPACE_COW };
	int fd = 7;

	assert_int_equal(workspace_use_rules(&u, &fd), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(workspace_use_parts(&u, &fd), 0);
	assert_int_equal(fd, -1);
}

TEST(given)
{
	struct workspace_use u = { .allow = json_pack("[s]", "*.txt"),
				   .deny = json_pack("[s]", "secrets/") };
	_fd_ int fd = -1;
	char text[64] = "";

	assert_int_equal(workspace_use_rules(&u, &fd), 0);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "+*.txt\n-secrets/\n");
	workspace_use_free(&u);
}

/* Without a free descriptor there are rules all the same: an error, or the tree is shown whole. */
TEST(without_a_descriptor)
{
	struct workspace_use u = { .deny = json_pack("[s]", "secrets/"),
				   .write = json_pack("[s]", "out") };
	struct rlimit before, few;
	int fd = 7;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int rules = workspace_use_rules(&u, &fd), parts = workspace_use_parts(&u, &fd);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rules, -EMFILE);
	assert_int_equal(parts, -EMFILE);
	workspace_use_free(&u);
}
