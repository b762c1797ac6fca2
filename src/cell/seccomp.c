/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp.c - The filters of policy/cell.policy, put on the calling process.
 *
 * The programs are compiled when caisson is built, so nothing is parsed, allocated or resolved
 * here, and no cell can start under a filter other than the two the tests judged. The front has a
 * filter of its own (policy/front.policy) and shares only the way in which it is put on.
 */
#include "cell/seccomp.h"

#include "base/err.h"
#include "base/fd.h"
#include "cell_filter.h"
#include "cell_writable_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Flags 0: the caller has one thread, and wants neither a log line nor speculation left on. */
int seccomp_install_program(const struct sock_filter *filter, size_t len, struct err *e)
{
	const struct sock_fprog prog = {
		.len = (unsigned short)len,
		/* The Linux kernel only reads it. */
		.filter = (struct sock_filter *)(uintptr_t)filter,
	};

	if (len > BPF_MAXINSNS)
		return err_set(e, -E2BIG, "a seccomp filter of %zu instructions", len);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return err_set(e, -errno, "install the seccomp filter (no-new-privileges set?)");
	return 0;
}

int seccomp_install(bool writable, struct err *e)
{
	if (writable)
		return seccomp_install_program(CELL_WRITABLE_FILTER,
					       ARRAY_SIZE(CELL_WRITABLE_FILTER), e);
	return seccomp_install_program(CELL_FILTER, ARRAY_SIZE(CELL_FILTER), e);
}

const char *seccomp_policy_id(void)
{
	return CELL_FILTER_POLICY_ID;
}
