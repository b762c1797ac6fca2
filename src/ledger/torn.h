/* SPDX-License-Identifier: Apache-2.0 */
/* torn.h - The end of a file that a crash left without its newline. */
#ifndef CAISSON_LEDGER_TORN_H
#define CAISSON_LEDGER_TORN_H

#include <stdint.h>

#define TORN_NAME_ROOM 64

/*
 * torn_make() - A new, empty file `ledger.torn-<time>` in the directory; @name is set to its name.
 * Return: a descriptor, or -errno.
 */
int torn_make(int dirfd, uint64_t time_ns, char name[TORN_NAME_ROOM]);

/*
 * torn_copy() - Copy the bytes of @fd from @from on into @to, whatever was there; on the disk when
 * this returns. @fd is not changed. Return: 0 or -errno; then it can be tried again.
 */
int torn_copy(int dirfd, int fd, uint64_t from, int to);

#endif
