/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace_store.h - Requests to the workspace store, the process that keeps workspaces
 * (docs/protocol/workspace-store.md).
 *
 * A workspace is a directory with a random name, its key. In it are trees: generations (g1, g2,
 * ...), of which the newest is the workspace, and none changes once it has its name, except by
 * sandboxes that mounted the newest one read-write; and views (v...), a generation without what a
 * sandbox must not see. A file that is in two trees and did not change is one file with two names.
 *
 * One SEQPACKET socket, one fixed-size request per message, one fixed-size reply per request, when
 * its work is done. Trees travel as descriptors: of a directory, to be mounted; or of a pipe with
 * an archive in it, which nobody reads before the workspace store does. Paths do not appear.
 *
 * The format is between binaries of one build (version checked), host byte order.
 */
#ifndef CAISSON_WIRE_WORKSPACE_STORE_H
#define CAISSON_WIRE_WORKSPACE_STORE_H

#include <stdint.h>

#define WORKSPACE_STORE_VERSION 3u
#define WORKSPACE_STORE_FD 3     /* the workspace store finds its socket here */
#define WORKSPACE_STORE_DIR_FD 4 /* and the directory of workspaces here */
#define WORKSPACE_STORE_JOBS_MAX 8u
#define WORKSPACE_STORE_KEY_LEN 32u /* hexadecimal digits */
#define WORKSPACE_STORE_TREE_MAX 24u
#define WORKSPACE_STORE_FILES_MAX 4000000u
#define WORKSPACE_STORE_RULES_BYTES (64u << 10) /* of rules, or of directories to make */
#define WORKSPACE_STORE_KNOWN_BYTES (16u << 20) /* of the list of a SWEEP */

enum workspace_store_op {
	WORKSPACE_STORE_CREATE = 1, /* -> key: a workspace with an empty generation */
	WORKSPACE_STORE_REMOVE,     /* key: all of it */
	WORKSPACE_STORE_LOOK,       /* key -> the newest generation; what it has, with
				       WORKSPACE_STORE_COUNT */
	WORKSPACE_STORE_OPEN, /* key, tree -> descriptor. @fd: directories to make in it, one per
				 line */
	WORKSPACE_STORE_VIEW, /* key, tree, @fd: rules (workspace_store/pattern.h) -> another tree,
				 descriptor */
	WORKSPACE_STORE_DROP, /* key, tree: nobody uses it. It goes, unless it is the newest
				 generation */
	WORKSPACE_STORE_DIFF, /* key, tree: how a cell's workspace differs from it. @fd:
				 FILES_TAR_OUT of the cell */
	WORKSPACE_STORE_COMMIT,  /* the same, and it becomes a new generation */
	WORKSPACE_STORE_IMPORT,  /* key, @fd: an archive -> a new generation */
	WORKSPACE_STORE_EXPORT,  /* key, tree, @fd: where its archive goes; from: without what that
				    has */
	WORKSPACE_STORE_CHANGES, /* key, from, tree: how do they differ? */
	WORKSPACE_STORE_SWEEP,   /* @fd: what is known, KEY and TREEs per line; the rest goes */
	WORKSPACE_STORE_AGAIN,   /* a reply without a request: the worker died, another is here;
				    requests before a WORKSPACE_STORE_SWEEP of its life are lost */
	WORKSPACE_STORE_OP_MAX_,
};

enum workspace_store_flag {
	WORKSPACE_STORE_COUNT = 1u << 0,   /* LOOK: count bytes and files */
	WORKSPACE_STORE_REPLACE = 1u << 1, /* IMPORT: files that the archive lacks are removed */
	WORKSPACE_STORE_FLAGS_ = (1u << 2) - 1,
};

struct workspace_store_req {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	uint32_t flags;
	uint32_t life;                 /* SWEEP: of the last AGAIN; 0: there was none */
	uint64_t max_bytes, max_files; /* CREATE, COMMIT, IMPORT: a larger tree is refused */
	char key[WORKSPACE_STORE_KEY_LEN + 8]; /* NUL-terminated, as the others */
	char tree[WORKSPACE_STORE_TREE_MAX], from[WORKSPACE_STORE_TREE_MAX];
};

/*
 * Replies to DIFF, COMMIT and CHANGES have a memfd: a line of JSON per path that differs. Of a
 * COMMIT that is refused (-ESTALE) these are the paths that others have changed meanwhile.
 */
struct workspace_store_reply {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	int32_t code;          /* 0 or negative errno, with the reason in msg */
	uint32_t volume;       /* CREATE, LOOK: it is a file system of its own */
	uint32_t cut;          /* more differs than there are lines */
	uint32_t life;         /* AGAIN: how many there were before */
	uint64_t generation;   /* the newest */
	uint64_t bytes, files; /* of content; entries */
	uint64_t changes;      /* how many paths differ */
	char key[WORKSPACE_STORE_KEY_LEN + 8];
	char tree[WORKSPACE_STORE_TREE_MAX]; /* OPEN, VIEW: which it is */
	char msg[256];
};

#endif
