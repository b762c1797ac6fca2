/* SPDX-License-Identifier: Apache-2.0 */
/* landlock.c - Scope-only Landlock domain. The structs are spelled out: old headers lack `scoped`. */
#include "cell/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define ABI_WITH_SCOPES 6
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ull << 0)
#define SCOPE_SIGNAL (1ull << 1)
#define CREATE_RULESET_VERSION 1u

struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

int landlock_abi(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	return v < 0 ? 0 : (int)v;
}

int landlock_scope_self(void)
{
	static const struct ruleset_attr attr = {
		.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL,
	};

	if (landlock_abi() < ABI_WITH_SCOPES)
		return 0;

	_fd_ int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	return 1;
}
