/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_store.h - Requests to the package store, the process that keeps installed packages
 * (docs/protocol/package-store.md).
 *
 * One SEQPACKET socket, one fixed-size request per message, one fixed-size reply per request, in
 * the order in which the work is done. A tree comes as the output of a file call (wire/files.h,
 * FILES_TAR_OUT) from the cell that made it, as a descriptor: nobody reads its bytes before the
 * package store does.
 *
 * The format is between binaries of one build (version checked), host byte order.
 */
#ifndef CAISSON_WIRE_PACKAGE_STORE_H
#define CAISSON_WIRE_PACKAGE_STORE_H

#include <stdint.h>

#define PACKAGE_STORE_VERSION 2u
#define PACKAGE_STORE_FD 3     /* the package store finds its socket here */
#define PACKAGE_STORE_DIR_FD 4 /* and the directory of its trees here */
#define PACKAGE_STORE_JOBS_MAX 8u
#define PACKAGE_STORE_KEY_LEN 32u /* hexadecimal digits: the name of a tree, random */
#define PACKAGE_STORE_FILES_MAX 500000u
#define PACKAGE_STORE_TOOLS "tools" /* the front's own, beside the trees; never swept */

enum package_store_op {
	PACKAGE_STORE_STORE = 1, /* a descriptor to read a tree from -> key, hash, size */
	PACKAGE_STORE_DROP,      /* key: remove that tree */
	/* key, hash, seal: the front knows this tree; -ENOENT: missing, -EBADMSG: another one */
	PACKAGE_STORE_KEEP,
	PACKAGE_STORE_SWEEP, /* remove every older tree that PACKAGE_STORE_KEEP did not name */
	PACKAGE_STORE_AGAIN, /* without a request: a new worker; earlier requests are lost */
};

struct package_store_req {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	uint64_t max_bytes, max_files;       /* PACKAGE_STORE_STORE: a larger tree is refused */
	char key[PACKAGE_STORE_KEY_LEN + 8]; /* these are NUL-terminated */
	char sha256[72], seal[72]; /* PACKAGE_STORE_KEEP: of the tree; seal: may be empty */
};

struct package_store_reply {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	int32_t code; /* 0 or negative errno, with the reason in msg */
	uint32_t pad_;
	uint64_t bytes, files;               /* of content; entries */
	char key[PACKAGE_STORE_KEY_LEN + 8]; /* PACKAGE_STORE_STORE: where it is */
	char sha256[72];                     /* of the tree, whatever the order in which it came */
	char seal[72]; /* PACKAGE_STORE_STORE and PACKAGE_STORE_KEEP (src/package_store/digest.c) */
	char msg[256];
};

#endif
