/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - How the mounts that a client asked for come to their places: as they are, as a copy on
 * write, with only some directories writable, or with names that stay as they are.
 *
 * For the child between clone and exec: system calls only.
 */
#ifndef CAISSON_CELL_PLACE_H
#define CAISSON_CELL_PLACE_H

#include <stdint.h>

struct plan;

/*
 * place_mount() - Put mount @i of the plan, with the parts that follow it, below @root.
 * @tree: it, detached and restricted
 * Return: 0, or -1 with errno.
 */
int place_mount(const struct plan *p, uint32_t i, int root, int tree);

#endif
