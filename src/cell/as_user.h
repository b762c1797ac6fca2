/* SPDX-License-Identifier: Apache-2.0 */
/*
 * as_user.h - Be another user for the length of one call, so that the kernel writes that user down.
 *
 * The kernel remembers who made a user namespace and who opened a file, by the effective user, and
 * asks later what that user may do. A descriptor or a namespace that is meant for a zygote is
 * therefore made as the zygote's user: its holder gets no more authority than it has itself.
 *
 * The file system's user stays root, so files that only root may open can still be opened.
 * Capabilities stay too (SECBIT_NO_SETUID_FIXUP, set by the warden).
 */
#ifndef CAISSON_CELL_AS_USER_H
#define CAISSON_CELL_AS_USER_H

#include <sys/types.h>

/* as_user_begin() - @uid 0: nothing changes. 0 or -errno. */
int as_user_begin(uid_t uid);

/* as_user_end() - Undo it, and keep errno. A process that cannot become itself again aborts. */
void as_user_end(uid_t uid);

#endif
