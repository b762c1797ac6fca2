/* SPDX-License-Identifier: Apache-2.0 */
/* root_host.h - The tree of the host image. For root.c. */
#ifndef CAISSON_CELL_ROOT_HOST_H
#define CAISSON_CELL_ROOT_HOST_H

#include "wire/gate.h"

struct plan;

/* Where the gate answers, if there is egress; otherwise it refuses at once. */
#define ROOT_RESOLV_CONF "nameserver " GATE_SELF4_TEXT "\n"

/*
 * root_host() - Fill the empty @root, which is attached; ends the child on failure. Afterwards /usr
 * and /etc of the old root may be covered: what has to be found there by path is to be opened
 * before.
 */
void root_host(const struct plan *p, int root);

/* root_put_file() - A new file below @root, 0644. 0, or -1 with errno. */
int root_put_file(int root, const char *path, const char *text);

#endif
