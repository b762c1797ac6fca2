/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caps.h - Capability sets, by system call only: safe between clone and exec.
 */
#ifndef CAISSON_CELL_CAPS_H
#define CAISSON_CELL_CAPS_H

#include <stdint.h>

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

/*
 * caps_drop() - Give up every capability. The bounding set stays as it is, so this needs no
 * privilege; with no-new-privileges nothing in that set can be gained. Return: 0 or -errno.
 */
int caps_drop(void);

#endif
