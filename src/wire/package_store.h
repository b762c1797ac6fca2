/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_store.h - What may be asked of the package store, the process that keeps installed
 * packages (docs/packages.md).
 *
 * One SEQPACKET socket, one fixed-size request per message, one fixed-size reply per request, in
 * the order in which the work is done. A tree comes as the output of a file call (wire/files.h,
 * FILES_TAR_OUT) from the cell that made it, as a descriptor: its bytes are read by the package
 * store and by nobody before it.
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

enum package_store_op {
	PACKAGE_STORE_STORE = 1, /* a descriptor to read a tree from -> key, hash, size */
	PACKAGE_STORE_DROP,      /* key: remove that tree */
	PACKAGE_STORE_KEEP,  /* key, hash, seal: the front knows this one; -ENOENT: it is not there,
				-EBADMSG: it is another */
	PACKAGE_STORE_SWEEP, /* remove every tree that was not named by PACKAGE_STORE_KEEP and
				stored before */
	PACKAGE_STORE_AGAIN, /* a reply without a request: the worker died, another is here; what
				was asked is lost */
	PACKAGE_STORE_OP_MAX_,
};

struct package_store_req {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	uint64_t max_bytes, max_files;       /* PACKAGE_STORE_STORE: a larger tree is refused */
	char key[PACKAGE_STORE_KEY_LEN + 8]; /* these are NUL-terminated */
	char sha256[72], seal[72]; /* PACKAGE_STORE_KEEP: as they were said; seal: empty when none
				      was */
};

struct package_store_reply {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	int32_t code; /* 0 or negative errno; then msg says what */
	uint32_t pad_;
	uint64_t bytes, files;               /* of content; entries */
	char key[PACKAGE_STORE_KEY_LEN + 8]; /* PACKAGE_STORE_STORE: where it is */
	char sha256[72];                     /* of the tree, whatever the order in which it came */
	char seal[72]; /* PACKAGE_STORE_STORE and PACKAGE_STORE_KEEP (src/package_store/check.h) */
	char msg[256];
};

#endif
