/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - Taking away a tree that a stranger filled. */
#ifndef CAISSON_IMAGE_TREE_H
#define CAISSON_IMAGE_TREE_H

#include <stdint.h>

#define TREE_DEPTH_MAX 300 /* more than a layer may have */

/*
 * tree_remove() - @name below @dir with all that is in it; links are not followed, mounts not
 * crossed.
 * @bytes: NULL, or what it took on the disk is added
 * Return: 0 or -errno.
 */
int tree_remove(int dir, const char *name, uint64_t *bytes);

/* tree_bytes() - What it takes on the disk. Adds; what can not be read counts nothing. */
void tree_bytes(int dir, const char *name, uint64_t *bytes);

#endif
