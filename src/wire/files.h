/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - The frames on the pipes of a file call (docs/protocol/files.md).
 *
 * A file call is a command of the cell whose program is built into init. INIT_FILES (wire/init.h)
 * requests it, and it sends frames: a head, then at most FILES_FRAME_MAX bytes. Numbers are in the
 * byte order of the machine, names are bytes without NUL and need not be UTF-8. The frames of a
 * worker are data of its sandbox: a reader trusts no length and no order.
 */
#ifndef CAISSON_WIRE_FILES_H
#define CAISSON_WIRE_FILES_H

#include <errno.h>
#include <stdint.h>

#define FILES_FRAME_MAX (64u << 10)
#define FILES_TEXT_MAX (40u << 10) /* every frame but data */
#define FILES_DEPTH_MAX 128u       /* directories below the one that is listed or packed */
#define FILES_WATCHES_MAX 1024u    /* directories that one call watches */
#define FILES_PATH_MAX 4096u       /* of a request, with its NUL: the Linux kernel's own bound */
#define FILES_TO_END UINT64_MAX    /* as length: up to the end */
#define FILES_HASH_LEN 32u

enum files_op {
	FILES_READ = 1, /* stat, data..., end */
	FILES_WRITE,    /* host: data..., end; worker: stat, end */
	FILES_STAT,     /* stat, end */
	FILES_LIST,     /* stat per entry, end */
	FILES_MOVE,     /* end */
	FILES_DELETE,   /* end */
	FILES_MKDIR,    /* stat, end */
	FILES_TAR_OUT,  /* data..., end */
	FILES_TAR_IN,   /* host: data..., end; worker: end */
	FILES_WATCH,    /* stat, event..., end */
	FILES_HASH,     /* stat, data (32 bytes, sha256), end */
	FILES_OP_MAX_,
};

enum files_flag {
	FILES_PARENTS = 1u << 0,   /* WRITE, MKDIR: make missing directories above */
	FILES_RECURSIVE = 1u << 1, /* LIST, DELETE, WATCH */
	FILES_OVERWRITE = 1u << 2, /* MOVE: replace a file of the new name */
	FILES_NOFOLLOW = 1u << 3,  /* STAT: the link, not its target */
	FILES_HAS_MODE = 1u << 4,  /* WRITE, MKDIR: mode counts */
	FILES_FROM_END = 1u << 5,  /* READ: offset counts back from the end */
	FILES_WHOLE = 1u << 6, /* TAR_OUT: links, pipes, attributes too (archive/tar_writer.h) */
};
#define FILES_FLAGS ((1u << 7) - 1)

/* The errno of a WRITE without a mode over a file without a write bit. */
#define FILES_READ_ONLY ETXTBSY

enum files_frame_type {
	FILES_F_STAT = 1, /* struct files_stat, name, target */
	FILES_F_DATA,
	FILES_F_EVENT, /* struct files_event, name, the name before */
	FILES_F_END, /* struct files_end, the path in trouble; the last one. From the host: empty */
	FILES_F_MAX_,
};

struct files_frame {
	uint32_t type;
	uint32_t len;
};

enum files_type {
	FILES_T_OTHER,
	FILES_T_FILE,
	FILES_T_DIR,
	FILES_T_LINK,
	FILES_T_FIFO,
	FILES_T_SOCKET,
	FILES_T_DEVICE,
	FILES_T_MAX_,
};

struct files_stat {
	uint32_t type; /* enum files_type */
	uint32_t mode; /* permission bits, 07777 */
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns; /* when anything about it changed last; code cannot set it */
	uint64_t ino;
	uint32_t nlink;
	uint32_t uid, gid;
	uint32_t name_len, target_len;
	uint32_t pad_;
};

enum files_event_kind {
	FILES_E_CREATED = 1,
	FILES_E_MODIFIED,
	FILES_E_DELETED,
	FILES_E_MOVED,
	FILES_E_OVERFLOW, /* some were lost: look again */
	FILES_E_MAX_,
};

struct files_event {
	uint32_t kind;
	uint32_t is_dir;
	uint32_t name_len, from_len;
};

enum files_end_flag {
	FILES_CUT = 1u << 0,     /* limit, depth or watches: there is more */
	FILES_CHANGED = 1u << 1, /* TAR_OUT: a file shrank while it was packed; padded with zeros */
	FILES_SKIPPED = 1u << 2, /* TAR_OUT: pipes, sockets or devices were left out */
	FILES_MADE = 1u << 3,    /* WRITE, MKDIR: it did not exist before */
};

struct files_end {
	int32_t error;  /* positive errno, 0: done */
	uint32_t flags; /* enum files_end_flag */
	uint64_t bytes; /* of content, moved either way */
	uint64_t count; /* entries listed, packed, unpacked or deleted */
	/* WRITE, TAR_IN, into memory: bytes free at the beginning, and in all; 0: unknown */
	uint64_t room, size;
};

#endif
