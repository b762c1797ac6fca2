/* SPDX-License-Identifier: Apache-2.0 */
/*
 * landlock.h - The second layer under the namespaces: scopes.
 *
 * Only scopes (abstract unix sockets, signals) are used. File rules would bind a process to the
 * mounts it was restricted on, and the mount namespace already is the file boundary.
 */
#ifndef CAISSON_CELL_LANDLOCK_H
#define CAISSON_CELL_LANDLOCK_H

/* landlock_abi() - The kernel's Landlock version, 0 when it has none. */
int landlock_abi(void);

/*
 * landlock_scope_self() - Put this thread and all it will start in a domain of its own.
 * Return: 1 when enforced, 0 when the kernel is too old for scopes (ABI < 6), or -errno.
 */
int landlock_scope_self(void);

#endif
