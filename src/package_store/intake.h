/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.h - One tree on its way from a cell to the store.
 *
 * Life: intake_begin() -> intake_read() when there is something to read, until it is over ->
 * intake_end(). A failure leaves nothing: intake_end() removes the incomplete tree.
 */
#ifndef CAISSON_PACKAGE_STORE_INTAKE_H
#define CAISSON_PACKAGE_STORE_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "package_store/digest.h"
#include "tree_store/cell_archive.h"
#include "wire/package_store.h"

struct intake {
	uint64_t seq; /* 0: not in use */
	struct cell_archive archive;
	struct tar_rules rules;
	struct digest digest;
	struct err err;
	int fd;              /* the pipe from the cell */
	uint64_t stalled_ns; /* base/foreign.h */
	int store_dir;       /* borrowed */
	int root, file;
	char key[PACKAGE_STORE_KEY_LEN + 1];
};

/* intake_begin() - The intake owns @fd, on failure too. 0 or -errno with in->err. */
int intake_begin(struct intake *in, int store_dir, const struct package_store_req *q, int fd);
/* intake_read() - One read. True: it is over, complete or failed. */
bool intake_read(struct intake *in);
/* intake_end() - Fill the reply: the tree has its name, or nothing is left of it. */
void intake_end(struct intake *in, struct package_store_reply *ret);

#endif
