/* SPDX-License-Identifier: Apache-2.0 */
/* test_caps.c - All five capability sets, as the kernel shows them afterwards. */
#include "cell/caps.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../child.h"
#include "../unit.h"

#define INIT_CAPS (1ull << CAP_KILL | 1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_SETPCAP)

struct sets {
	uint64_t inheritable, permitted, effective, bounding, ambient;
};

static uint64_t field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	CHILD_CHECK(at != NULL);
	return strtoull(at + strlen(key), NULL, 16);
}

static struct sets read_sets(void)
{
	char text[8192];

	CHILD_CHECK(fd_read_file(AT_FDCWD, "/proc/thread-self/status", text, sizeof(text)) > 0);
	return (struct sets){ field(text, "\nCapInh:"), field(text, "\nCapPrm:"),
			      field(text, "\nCapEff:"), field(text, "\nCapBnd:"),
			      field(text, "\nCapAmb:") };
}

static void check_sets(uint64_t inheritable, uint64_t permitted, uint64_t bounding,
		       uint64_t ambient)
{
	struct sets s = read_sets();

	CHILD_CHECK(s.inheritable == inheritable);
	CHILD_CHECK(s.permitted == permitted);
	CHILD_CHECK(s.effective == permitted);
	CHILD_CHECK(s.bounding == bounding);
	CHILD_CHECK(s.ambient == ambient);
}

ROOT_TEST(keep_nothing, "dropping capabilities")
{
	CHILD_CHECK(caps_keep(0, 0) == 0);
	check_sets(0, 0, 0, 0);
	/* And it is true for what the kernel permits, not only for what it prints. */
	CHILD_CHECK(setresuid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY) < 0 && errno == EPERM);
	CHILD_CHECK(caps_keep(0, 0) == 0);
	CHILD_CHECK(caps_keep(0, 1) == 0);
	CHILD_CHECK(caps_keep(INIT_CAPS, 0) == -EPERM);
	check_sets(0, 0, 0, 0);
}

ROOT_TEST(keep_some, "dropping capabilities")
{
	CHILD_CHECK(caps_keep(INIT_CAPS, 0) == 0);
	check_sets(0, INIT_CAPS, INIT_CAPS, 0);
	CHILD_CHECK(caps_keep(INIT_CAPS, 0) == 0);
	/* A capability that was dropped does not come back. */
	CHILD_CHECK(caps_keep(INIT_CAPS | 1ull << CAP_SYS_ADMIN, 0) == -EPERM);
	check_sets(0, INIT_CAPS, INIT_CAPS, 0);
	CHILD_CHECK(caps_keep(0, 0) == 0);
	check_sets(0, 0, 0, 0);
}

/* Ambient: they survive an execve; and taking them away again leaves none. */
ROOT_TEST(keep_ambient, "dropping capabilities")
{
	CHILD_CHECK(caps_keep(INIT_CAPS, 1) == 0);
	check_sets(INIT_CAPS, INIT_CAPS, INIT_CAPS, INIT_CAPS);
	CHILD_CHECK(caps_keep(INIT_CAPS, 0) == 0);
	check_sets(0, INIT_CAPS, INIT_CAPS, 0);
	CHILD_CHECK(caps_keep(1ull << CAP_SETPCAP, 1) == 0);
	check_sets(1ull << CAP_SETPCAP, 1ull << CAP_SETPCAP, 1ull << CAP_SETPCAP,
		   1ull << CAP_SETPCAP);
}

ROOT_TEST(bound, "dropping capabilities")
{
	struct sets before = read_sets();

	CHILD_CHECK(caps_bound(~0ull) == 0);
	check_sets(before.inheritable, before.permitted, before.bounding, before.ambient);
	CHILD_CHECK(caps_bound(1ull << CAP_KILL) == 0);
	check_sets(before.inheritable, before.permitted, before.bounding & 1ull << CAP_KILL,
		   before.ambient);
	/* Adding is not an error and has no effect: the set only ever shrinks. */
	CHILD_CHECK(caps_bound(1ull << CAP_KILL | 1ull << CAP_CHOWN) == 0);
	CHILD_CHECK(read_sets().bounding == (before.bounding & 1ull << CAP_KILL));
	CHILD_CHECK(caps_bound(0) == 0);
	check_sets(before.inheritable, before.permitted, 0, before.ambient);
}

/* The bounding set cannot be emptied after SETPCAP is gone: the order in which init works. */
ROOT_TEST(bound_too_late, "dropping capabilities")
{
	CHILD_CHECK(caps_keep(1ull << CAP_KILL, 0) == 0);
	CHILD_CHECK(caps_bound(1ull << CAP_KILL) == 0);
	CHILD_CHECK(caps_bound(0) == -EPERM);
	CHILD_CHECK(caps_keep(0, 0) == -EPERM);
	check_sets(0, 1ull << CAP_KILL, 1ull << CAP_KILL, 0);
}

/* The way of a command: empty the bounding set, change the user, drop what is left. */
ROOT_TEST(command_way, "dropping capabilities")
{
	CHILD_CHECK(caps_keep(INIT_CAPS, 0) == 0);
	CHILD_CHECK(caps_bound(0) == 0);
	CHILD_CHECK(setresgid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY) == 0);
	CHILD_CHECK(setresuid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY) == 0);
	CHILD_CHECK(caps_keep(0, 0) == 0);
	check_sets(0, 0, 0, 0);
	CHILD_CHECK(setresuid(0, 0, 0) < 0 && errno == EPERM);
}

/* Without the bounding set it needs no privilege, and takes everything that is not in that set. */
ROOT_TEST(drop, "dropping capabilities")
{
	uint64_t bounding = read_sets().bounding;

	CHILD_CHECK(caps_drop() == 0);
	check_sets(0, 0, bounding, 0);
	CHILD_CHECK(caps_drop() == 0);
}

/* The way of init: its bounding set is that of the process that executed it. */
ROOT_TEST(limit, "dropping capabilities")
{
	uint64_t bounding = read_sets().bounding;

	CHILD_CHECK(caps_limit(1ull << CAP_KILL, 0) == 0);
	check_sets(0, 1ull << CAP_KILL, bounding, 0);
	CHILD_CHECK(caps_limit(INIT_CAPS, 0) == -EPERM);
}

ROOT_TEST(drop_ambient, "dropping capabilities")
{
	CHILD_CHECK(caps_keep(INIT_CAPS, 1) == 0);
	CHILD_CHECK(caps_drop() == 0);
	check_sets(0, 0, INIT_CAPS, 0);
	CHILD_CHECK(setresuid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY) < 0 && errno == EPERM);
}

/* A caller without privilege gets an error. */
CHILD_TEST(ordinary_user)
{
	child_become_nobody();
	if (read_sets().bounding == 0)
		CHILD_SKIP("the bounding set is empty already");
	CHILD_CHECK(caps_bound(0) == -EPERM);
	CHILD_CHECK(caps_keep(0, 0) == -EPERM);
	child_drop(NULL);
}
