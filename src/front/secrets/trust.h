/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust.h - The certificates that programs in a cell trust: the machine's, and the authority of its
 * sandbox.
 *
 * One file in the cell, written before anything else runs there, and variables that lead Python,
 * requests, curl, git, pip and node to it. It belongs to the cell's own user: changing it harms
 * that cell alone.
 */
#ifndef CAISSON_FRONT_SECRETS_TRUST_H
#define CAISSON_FRONT_SECRETS_TRUST_H

#include <jansson.h>

#include "base/buf.h"
#include "front/cell/cell.h"
#include "net/loop.h"

struct err;

#define TRUST_PATH "/home/agent/.caisson/ca-bundle.pem"

struct trust {
	struct cell *cell; /* NULL: nothing is under way */
	struct cell_command job;
	struct watch in; /* of the worker in the cell */
	int out;
	struct buf text; /* frames that it has not taken yet */
	size_t at;
	/* Once: @problem NULL when it is done. */
	void (*done)(struct trust *t, const char *problem);
	void *arg;
};

/* trust_roots() - Before the jail: the machine's certificates, PEM. A descriptor, or -1: the
 * machine has no certificates. */
int trust_roots(void);

/*
 * trust_begin() - Write the file into @r. @roots: of trust_roots(); @pem: of the authority. The
 * struct has done and arg, and is otherwise zero. 0, or -errno and done is not called.
 */
int trust_begin(struct trust *t, struct cell *r, int roots, int pem, struct err *e);
void trust_cancel(struct trust *t); /* idempotent, also on zeroed memory */

/* trust_vars() - Add the variables that @vars does not have. */
void trust_vars(json_t *vars);

#endif
