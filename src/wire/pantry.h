/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pantry.h - What may be asked of the pantry, the process that keeps installed packages (docs/packages.md).
 *
 * One SEQPACKET socket, one fixed-size request per message, one fixed-size reply per request, in the order
 * in which the work is done. A tree comes as the output of a file call (wire/files.h, FILES_TAR_OUT) from the
 * cell that made it, as a descriptor: its bytes are read by the pantry and by nobody before it.
 *
 * The format is between binaries of one build (version checked), host byte order.
 */
#ifndef CAISSON_WIRE_PANTRY_H
#define CAISSON_WIRE_PANTRY_H

#include <stdint.h>

#define PANTRY_VERSION 2u
#define PANTRY_FD 3     /* the pantry finds its socket here */
#define PANTRY_DIR_FD 4 /* and the directory of its trees here */
#define PANTRY_JOBS_MAX 8u
#define PANTRY_KEY_LEN 32u /* hexadecimal digits: the name of a tree, random */
#define PANTRY_FILES_MAX 500000u

enum pantry_op {
	PANTRY_STORE = 1, /* a descriptor to read a tree from -> key, hash, size */
	PANTRY_DROP,      /* key: remove that tree */
	PANTRY_KEEP, /* key, hash, seal: the front knows this one; -ENOENT: it is not there, -EBADMSG: it is another */
	PANTRY_SWEEP, /* remove every tree that was not named by PANTRY_KEEP and stored before */
	PANTRY_AGAIN, /* a reply without a request: the worker died, another is here; what was asked is lost */
	PANTRY_OP_MAX_,
};

struct pantry_req {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	uint64_t max_bytes, max_files; /* PANTRY_STORE: a larger tree is refused */
	char key[PANTRY_KEY_LEN + 8];  /* these are NUL-terminated */
	char sha256[72], seal[72]; /* PANTRY_KEEP: as they were said; seal: empty when none was */
};

struct pantry_reply {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	int32_t code; /* 0 or negative errno; then msg says what */
	uint32_t pad_;
	uint64_t bytes, files;        /* of content; entries */
	char key[PANTRY_KEY_LEN + 8]; /* PANTRY_STORE: where it is */
	char sha256[72];              /* of the tree, whatever the order in which it came */
	char seal[72];                /* PANTRY_STORE and PANTRY_KEEP (src/pantry/check.h) */
	char msg[256];
};

#endif
