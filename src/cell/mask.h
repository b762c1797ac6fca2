/* SPDX-License-Identifier: Apache-2.0 */
/* mask.h - What of /proc a cell does not see. For root.c. */
#ifndef CAISSON_CELL_MASK_H
#define CAISSON_CELL_MASK_H

struct plan;

/* mask_proc() - Cover files of @root/proc; dev/null and the empty sys are there already. Ends the
 * child on failure. */
void mask_proc(const struct plan *p, int root);

#endif
