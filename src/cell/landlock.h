/* SPDX-License-Identifier: Apache-2.0 */
/*
 * landlock.h - The second layer, under the namespaces of a cell or under the front's own user.
 *
 * In a cell only scopes (abstract unix sockets, signals) are used. File rules would bind a process
 * to the mounts it was restricted on, and the mount namespace already is the file boundary. The
 * front shares the host's mounts and opens next to nothing once it serves, so it gives up
 * everything at once but for a few rights in directories of its own.
 */
#ifndef CAISSON_CELL_LANDLOCK_H
#define CAISSON_CELL_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rights that may be kept below a directory; the Linux kernel's own bits. */
#define LANDLOCK_WRITE_FILE (UINT64_C(1) << 1)
#define LANDLOCK_READ_FILE (UINT64_C(1) << 2)
#define LANDLOCK_READ_DIR (UINT64_C(1) << 3)
#define LANDLOCK_REMOVE_DIR (UINT64_C(1) << 4)
#define LANDLOCK_REMOVE_FILE (UINT64_C(1) << 5)
#define LANDLOCK_MAKE_CHAR (UINT64_C(1) << 6)
#define LANDLOCK_MAKE_DIR (UINT64_C(1) << 7)
#define LANDLOCK_MAKE_REG (UINT64_C(1) << 8)
#define LANDLOCK_MAKE_FIFO (UINT64_C(1) << 10)
#define LANDLOCK_MAKE_SYM (UINT64_C(1) << 12)
#define LANDLOCK_REFER (UINT64_C(1) << 13)    /* ABI 2: link and rename to another directory */
#define LANDLOCK_TRUNCATE (UINT64_C(1) << 14) /* ABI 3; not restricted before */

/* A directory below which some rights remain. */
struct landlock_dir {
	int fd;
	uint64_t rights;
};

/* landlock_abi() - The kernel's Landlock version, 0 when it has none. */
int landlock_abi(void);

/*
 * landlock_scope_self() - Put this thread and all it will start in a domain of its own.
 * @signals: processes outside the domain cannot be signalled either, besides not being reached by
 *           abstract sockets
 * Return: 1 when enforced, 0 when the kernel is too old for scopes (ABI < 6), or -errno.
 */
int landlock_scope_self(bool signals);

/*
 * landlock_deny_all_but() - From here on this thread, and all it will start, open, make, rename and
 * remove no file but as @dirs says, bind and connect no TCP socket (ABI 4), and have both scopes
 * (ABI 6).
 *
 * Descriptors that are open stay usable, memfds too; metadata of paths can still be read, and
 * O_PATH still opens. Needs no-new-privileges. Return: the ABI whose rights are denied, 0 when the
 * kernel has no Landlock, or -errno.
 */
int landlock_deny_all_but(const struct landlock_dir *dirs, size_t n);

/*
 * landlock_deny_files_but() - The same, but TCP sockets may be connected, for caisson-bucket and
 * the gate. They may not be bound. Return: as above.
 */
int landlock_deny_files_but(const struct landlock_dir *dirs, size_t n);

#endif
