/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp.h - The filter of policy/cell.policy, put on the calling process.
 */
#ifndef CAISSON_CELL_SECCOMP_H
#define CAISSON_CELL_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct sock_filter;

/*
 * seccomp_install() - Filter every further call of this process and of all it will start.
 * @writable: the cell can write to a directory of the host
 *
 * For a process with one thread that has no-new-privileges set; cannot be undone. One system call,
 * no allocation, so it may stand between clone and exec. On failure nothing is filtered.
 * Return: 0 or -errno.
 */
int seccomp_install(bool writable, struct err *e);

/* seccomp_install_program() - The same with another compiled filter; filters add up. */
int seccomp_install_program(const struct sock_filter *filter, size_t len, struct err *e);

/* seccomp_policy_id() - SHA-256 of the policy file the filter was made from, in hex. */
const char *seccomp_policy_id(void);

#endif
