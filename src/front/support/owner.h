/* SPDX-License-Identifier: Apache-2.0 */
/* owner.h - The name of a caller, to whom sandboxes and everything in them belong. */
#ifndef CAISSON_FRONT_OWNER_H
#define CAISSON_FRONT_OWNER_H

#define OWNER_MAX 64 /* with its NUL */

#endif
