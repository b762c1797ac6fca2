/* SPDX-License-Identifier: Apache-2.0 */
/* trees_int.h - Shared by trees.c and stock.c: one tree, in memory, in the store, on the disk. */
#ifndef CAISSON_FRONT_PACKAGES_TREES_INT_H
#define CAISSON_FRONT_PACKAGES_TREES_INT_H

#include "front/packages/trees.h"

/* tree_put() - To the store. tree_forget() - From the store and from memory, with its users; frees
 * it. */
int tree_put(struct packages *packages, const struct tree *t, struct err *e);
void tree_forget(struct packages *packages, struct tree *gone);
void tree_free(struct tree *t);

/* tree_drop_files() - Let the package store remove its files; nobody waits for it. */
void tree_drop_files(struct packages *packages, const char *key);
/* tree_add_use() - In memory alone. */
void tree_add_use(struct trees *all, const char *holder, struct tree *t);

void trees_complain(const struct err *e);

#endif
