/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caps.h - The rights of this process: capability sets, the user that it acts as, its limits and
 * signals. By system call only: safe between clone and exec.
 */
#ifndef CAISSON_CELL_CAPS_H
#define CAISSON_CELL_CAPS_H

#include <linux/capability.h>
#include <stdint.h>
#include <sys/types.h>

struct init_config;

/*
 * The capabilities of root that the warden keeps:
 *   SYS_ADMIN      namespaces, mounts of what the client opened, id-mapped mounts
 *   SETUID SETGID  writing id maps for ranges that are not our own id
 *   SETPCAP        handing the child a reduced bounding set
 *   KILL           signalling cells, which are other users
 *   SYS_PTRACE DAC_READ_SEARCH   reading /proc of cells for receipts
 *   DAC_OVERRIDE   cgroup directories that a service manager gave to another user
 * and, if root has it, which a container's may not:
 *   MKNOD          device nodes of each cell's own (cell/root.c). It gives no more than SYS_ADMIN,
 *                  which can mount a devtmpfs with every node; a device cgroup limits both
 */
#define WARDEN_CAPS                                                                                \
	(1ull << CAP_SYS_ADMIN | 1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_SETPCAP |   \
	 1ull << CAP_KILL | 1ull << CAP_SYS_PTRACE | 1ull << CAP_DAC_READ_SEARCH |                 \
	 1ull << CAP_DAC_OVERRIDE)

/* caps_name() - "SYS_ADMIN" of CAP_SYS_ADMIN; "?" for one that is not needed anywhere here. */
const char *caps_name(int cap);

/* caps_permitted() - The permitted set of this thread. 0 or -errno. */
int caps_permitted(uint64_t *ret);

/* caps_bound() - Reduce the bounding set to @mask; needs CAP_SETPCAP. 0 or -errno. */
int caps_bound(uint64_t mask);

/*
 * caps_keep() - Reduce this thread to the capabilities in @mask.
 * @mask:    bit n = capability n; becomes permitted and effective
 * @ambient: also inheritable and ambient, so that they survive an execve by any user
 *
 * The bounding set is reduced to @mask first, which needs CAP_SETPCAP unless it already is.
 * Return: 0 or -errno.
 */
int caps_keep(uint64_t mask, int ambient);

/* caps_limit() - The same, and the bounding set stays as it is: for a process that has inherited a
 * reduced one. */
int caps_limit(uint64_t mask, int ambient);

/*
 * caps_drop() - Give up every capability. The bounding set stays as it is, so this needs no
 * privilege; with no-new-privileges nothing in that set can be gained. Return: 0 or -errno.
 */
int caps_drop(void);

/*
 * as_user_begin(), as_user_end() - Be another user for the length of one call, so that the Linux
 * kernel records that user.
 *
 * It records the effective user who made a user namespace or opened a file, and checks later what
 * that user may do. A descriptor or a namespace that is meant for a zygote is therefore made as the
 * zygote's user: its holder gets no more authority than it has itself.
 *
 * The file system's user stays root, so files that only root may open can still be opened.
 * Capabilities stay too (SECBIT_NO_SETUID_FIXUP, set by the warden).
 *
 * @uid: 0: nothing changes. begin returns 0 or -errno; end keeps errno, and ends a process that
 *       cannot become itself again.
 */
int as_user_begin(uid_t uid);
void as_user_end(uid_t uid);

/*
 * process_limit() - Set every limit of INIT_LIMITS (wire/init.h) on this process, soft and hard
 * alike: the layer under the cgroup.
 *
 * Only ever lowers: where the caller's own hard limit is below ours, that stays (raising needs
 * CAP_SYS_RESOURCE, which even root may lack). System calls only. Return: 0 or -errno.
 */
int process_limit(const struct init_config *c);

/* process_reset_signals() - Every signal gets its default action. Blocked signals stay blocked. */
void process_reset_signals(void);

#endif
