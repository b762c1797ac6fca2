/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.h - One tree on its way from a cell to the store.
 *
 * Life: intake_begin() -> intake_read() when there is something to read, until it is over ->
 * intake_end(). Whatever goes wrong leaves nothing: what was unpacked is removed.
 */
#ifndef CAISSON_PACKAGE_STORE_INTAKE_H
#define CAISSON_PACKAGE_STORE_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/reader.h"
#include "base/err.h"
#include "client/files_client.h"
#include "package_store/digest.h"
#include "wire/package_store.h"

struct intake {
	uint64_t seq; /* 0: not in use */
	struct files_parser parser;
	struct tar_rules rules;
	struct tar_reader reader;
	struct digest digest;
	struct err err;
	int fd;              /* what the cell says */
	uint64_t stalled_ns; /* base/foreign.h */
	int store_dir;       /* borrowed */
	int root, file;
	char key[PACKAGE_STORE_KEY_LEN + 1];
	bool ended;
};

/* intake_begin() - @fd is the intake's, also on failure. 0 or -errno with in->err. */
int intake_begin(struct intake *in, int store_dir, const struct package_store_req *q, int fd);
/* intake_read() - One read. True: it is over, for better or worse. */
bool intake_read(struct intake *in);
/* intake_end() - Fill the reply: the tree has its name now, or nothing is left of it. */
void intake_end(struct intake *in, struct package_store_reply *ret);

#endif
