/* SPDX-License-Identifier: Apache-2.0 */
/* tools.h - The daemon's own programs in cells, and the port on which they request packages. */
#ifndef CAISSON_FRONT_PACKAGES_TOOLS_H
#define CAISSON_FRONT_PACKAGES_TOOLS_H

struct err;
struct sandbox;

/*
 * tools_put() - Write the programs below @dir, the directory that cells have as /packages, before
 * the jail. Programs that are there stay, or are replaced at once, each as a whole: cells may run
 * them. @state: for errors.
 */
int tools_put(int dir, const char *state, struct err *e);

/*
 * tools_listen() - The sandbox has a cell: soon listen for requests of its programs.
 * tools_unlisten() - The cell is over. Idempotent.
 */
void tools_listen(struct sandbox *s);
void tools_unlisten(struct sandbox *s);

#endif
