/* SPDX-License-Identifier: Apache-2.0 */
/*
 * landlock.c - Landlock domains: scopes alone, or everything denied except in a few directories.
 * Structs and bits are spelled out: old headers lack the newer ones.
 */
#include "cell/landlock.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define ABI_WITH_SCOPES 6
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ull << 0)
#define SCOPE_SIGNAL (1ull << 1)
#define NET_BIND_TCP (1ull << 0)
#define NET_CONNECT_TCP (1ull << 1)
#define CREATE_RULESET_VERSION 1u

struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

#define RULE_PATH_BENEATH 1

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

/* The rights that each version added. A right that is handled and has no rule is denied. */
static const struct {
	int abi;
	struct ruleset_attr attr;
} rights[] = {
	{ 1, { .handled_access_fs = (1ull << 13) - 1 } }, /* execute, read, write, make, remove */
	{ 2, { .handled_access_fs = 1ull << 13 } },       /* REFER: link and rename elsewhere */
	{ 3, { .handled_access_fs = 1ull << 14 } },       /* TRUNCATE */
	{ 4, { .handled_access_net = NET_BIND_TCP | NET_CONNECT_TCP } },
	{ 5, { .handled_access_fs = 1ull << 15 } }, /* IOCTL_DEV */
	{ ABI_WITH_SCOPES, { .scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL } },
};

int landlock_abi(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	return v < 0 ? 0 : (int)v;
}

/* A kernel that does not know the last members of the struct accepts them as long as they are 0. */
static int restrict_self(const struct ruleset_attr *attr, const struct landlock_dir *dirs, size_t n)
{
	_fd_ int fd = (int)syscall(SYS_landlock_create_ruleset, attr, sizeof(*attr), 0);

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		/* A rule may only speak of rights that are handled. */
		const struct path_beneath_attr rule = {
			.allowed_access = dirs[i].rights & attr->handled_access_fs,
			.parent_fd = dirs[i].fd,
		};

		if (syscall(SYS_landlock_add_rule, fd, RULE_PATH_BENEATH, &rule, 0) < 0)
			return -errno;
	}
	return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}

int landlock_scope_self(bool signals)
{
	const struct ruleset_attr attr = {
		.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | (signals ? SCOPE_SIGNAL : 0),
	};

	if (landlock_abi() < ABI_WITH_SCOPES)
		return 0;

	int r = restrict_self(&attr, NULL, 0);

	return r < 0 ? r : 1;
}

static int deny(uint64_t net_kept, const struct landlock_dir *dirs, size_t n)
{
	struct ruleset_attr attr = { 0 };
	int abi = landlock_abi(), r;

	if (abi == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(rights) && rights[i].abi <= abi; i++) {
		attr.handled_access_fs |= rights[i].attr.handled_access_fs;
		attr.handled_access_net |= rights[i].attr.handled_access_net & ~net_kept;
		attr.scoped |= rights[i].attr.scoped;
	}
	r = restrict_self(&attr, dirs, n);
	return r < 0 ? r : abi;
}

int landlock_deny_all_but(const struct landlock_dir *dirs, size_t n)
{
	return deny(0, dirs, n);
}

int landlock_deny_files_but(const struct landlock_dir *dirs, size_t n)
{
	return deny(NET_CONNECT_TCP, dirs, n);
}
