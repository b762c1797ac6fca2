/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warden.h - Requests to the warden, the only privileged process.
 *
 * One SEQPACKET socket, one fixed-size request per message, one fixed-size reply per request.
 * Replies carry the request's number and come when the work is done, not in the order of the
 * requests: while one cell is being made the warden serves others. No text is parsed: numbers,
 * enumerations, bounded NUL-terminated destination paths, and descriptors. A path on the host never
 * appears; the client must itself have opened what it wants mounted, so the warden's privilege
 * cannot be used to reach a file that the client cannot.
 *
 * The format is between binaries of one build (version checked), host byte order.
 */
#ifndef CAISSON_WIRE_WARDEN_H
#define CAISSON_WIRE_WARDEN_H

#include <stdint.h>

#define WARDEN_VERSION 8u
#define WARDEN_FD 3 /* the warden finds its socket here */
#define WARDEN_CELLS_MAX 4096u
#define WARDEN_ZYGOTES_MAX 16u
#define WARDEN_REPLY_FDS_MAX 9u

#define CELL_MOUNTS_MAX 16
#define CELL_LAYERS_MAX 64
#define CELL_IMAGE_FDS_MAX (1 + CELL_LAYERS_MAX)
#define CELL_FDS_MAX (CELL_IMAGE_FDS_MAX + CELL_MOUNTS_MAX)
#define CELL_DST_MAX 256

/* The host's id behind id 0 of files of layers that root unpacked; others follow. */
#define CELL_LAYER_IDS 0x6ffe0000u

enum warden_op {
	WARDEN_CREATE = 1, /* spec + descriptors -> cell handle, channel descriptor, gauges */
	WARDEN_USAGE,      /* cell -> usage so far */
	WARDEN_KILL,       /* cell: SIGKILL to everything in it; returns at once */
	WARDEN_EVIDENCE,   /* cell -> memfd: texts of /proc about every process in it */
	/* cell: kill, reap, remove; -> final usage, with want_gauges without the cgroup's numbers.
	 * The handle is gone after it. */
	WARDEN_DESTROY,
	WARDEN_ZYGOTE, /* spec of the image host -> zygote handle, status socket (wire/zygote.h) */
	WARDEN_KERNEL, /* cell + its zygote -> hello socket, pidfd, pipes (enum kernel_pipe) */
	WARDEN_RETIRE, /* zygote: end it. Kernels that it forked live on */
	WARDEN_CLAIM,  /* cell: it has a new client, on the same socket (docs/protocol/keeper.md) */
	WARDEN_REST, /* end every cell that was not claimed since the last one, and every zygote */
	WARDEN_OP_MAX_,
};

enum cell_image {
	CELL_IMAGE_HOST = 1, /* read-only view of the machine's /usr */
	CELL_IMAGE_DIR,      /* a root directory, passed as the first descriptor */
	/* Layers of a stored image: first a descriptor that is only held for as long as the cell
	 * lives (the lock "in use"), then n_layers directories, the uppermost first. */
	CELL_IMAGE_LAYERS,
};

/* Layers that a caller may give up by explicit choice; everything else is not negotiable. */
enum cell_without {
	CELL_WITHOUT_SECCOMP = 1u << 0,
	CELL_WITHOUT_LANDLOCK = 1u << 1,
	CELL_WITHOUT_CGROUP = 1u << 2,
	CELL_WITHOUT_ALL_ = (1u << 3) - 1,
};

/* The part of a cell that ends when it is out of memory. */
enum cell_oom {
	CELL_OOM_PROCESS, /* the largest process; files and all other processes stay */
	CELL_OOM_CELL,    /* the cell as a whole */
};

/* Every limit is required to be in its range (cell/spec.c); 0 means "none" only where said. */
struct cell_limits {
	uint64_t memory_bytes;
	uint64_t disk_bytes; /* size of the writable layer; but see cell_layer_bytes() */
	uint64_t inodes;     /* of the writable layer */
	uint64_t pids;
	uint64_t files;       /* open files per process */
	uint64_t cpu_time_ms; /* of the whole cell; 0 = none */
	uint64_t wall_ms;     /* backstop: the warden ends the cell after this; 0 = none */
	uint32_t cpu_milli;   /* quota; 1000 = one cpu */
	uint32_t oom;         /* enum cell_oom */
};

/*
 * cell_layer_bytes() - The size of the writable layer. It is in memory, and the end of a process
 * frees none of it. So it may take the memory limit but for an eighth, and 8 MiB at least: pid 1,
 * file calls, and a shell that removes files always find room. With CELL_WITHOUT_CGROUP there is no
 * memory limit, and it has disk_bytes.
 */
static inline uint64_t cell_layer_bytes(const struct cell_limits *l)
{
	uint64_t reserve = l->memory_bytes / 8 > 8u << 20 ? l->memory_bytes / 8 : 8u << 20;
	uint64_t most = l->memory_bytes - reserve;

	return l->disk_bytes < most ? l->disk_bytes : most;
}

enum cell_mount_flag {
	CELL_MOUNT_RW = 1u << 0,
	/* Read-only, with the rights of others: files are not shown as the agent's. */
	CELL_MOUNT_PLAIN = 1u << 1,
	/* A workspace: files of CELL_WORKSPACE_ID on the disk are the agent's in the cell. */
	CELL_MOUNT_WORKSPACE = 1u << 2,
	/* Copy on write: changes stay in the cell, in an overlay as large as the writable layer. */
	CELL_MOUNT_COW = 1u << 3,
	/* No descriptor: a directory of the mount before it, of which only parts stay writable. */
	CELL_MOUNT_PART = 1u << 4,
	/* Writable except names that programs outside trust (cell/protect.h). */
	CELL_MOUNT_PROTECT = 1u << 5,
};

/* With privilege: the owner of files of workspaces, and of nothing else: below the ids of cells. */
#define CELL_WORKSPACE_ID 0x6ffffff0u

struct cell_mount {
	char dst[CELL_DST_MAX]; /* absolute in the cell, normalised, NUL-terminated */
	uint32_t flags;
};

struct cell_spec {
	struct cell_limits limits;
	uint32_t image;   /* enum cell_image */
	uint32_t without; /* enum cell_without bits */
	uint32_t n_mounts;
	uint32_t n_layers; /* CELL_IMAGE_LAYERS; otherwise 0 */
	struct cell_mount mounts[CELL_MOUNTS_MAX];
};

struct warden_req {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	uint32_t cell; /* handle, for all but WARDEN_CREATE, WARDEN_ZYGOTE and WARDEN_RETIRE */
	/* Handle. WARDEN_CREATE: the zygote whose kernels may enter the cell, 0 = none. */
	uint32_t zygote;
	uint32_t want_gauges; /* WARDEN_CREATE: 1 to get enum cell_gauge as well */
	/* WARDEN_CREATE: 1 if /proc/meminfo and its like shall be as new as their reader, at the
	 * price of a longer end of the cell (cell/machine.h). */
	uint32_t want_live;
	struct cell_spec spec; /* for WARDEN_CREATE and WARDEN_ZYGOTE, zero otherwise */
};

/* Why a cell is over, as the warden saw it. */
enum cell_end {
	CELL_RUNNING,
	CELL_END_CLIENT,   /* asked for by the client (kill, destroy) */
	CELL_END_MEMORY,   /* out of memory: killed as one, or pid 1 was all that was left */
	CELL_END_CPU_TIME, /* cpu time limit */
	CELL_END_WALL,     /* the warden's own deadline */
	CELL_END_INIT,     /* pid 1 ended by itself or was killed */
};

struct cell_usage {
	uint64_t cpu_ns;
	uint64_t memory_peak;
	uint64_t memory_files; /* part of memory that is files in the writable layer and /dev/shm */
	uint64_t pids_peak;    /* 0 when the kernel does not count it */
	uint64_t pids_denied;
	uint64_t oom_kills; /* processes that the out-of-memory killer took */
	uint64_t throttled_ns;
	uint32_t end;          /* enum cell_end */
	int32_t init_status;   /* wait status of pid 1, when end is not CELL_RUNNING */
	uint32_t cgroup_kind;  /* enum cgroup_kind: where the numbers come from */
	uint32_t kernel;       /* enum kernel_state of the last WARDEN_KERNEL */
	int32_t kernel_status; /* its wait status when KERNEL_ENDED */
	uint32_t pad_;
};

/*
 * Files of the cell's cgroup, opened for reading: the numbers of struct cell_usage that an
 * execution which ended well needs, without a request. Which file it is depends on the machine; its
 * format does not.
 */
enum cell_gauge {
	GAUGE_CPU_NS,      /* one number */
	GAUGE_THROTTLED,   /* "throttled_time NS" among other lines */
	GAUGE_CPU_STAT,    /* "usage_usec N" and "throttled_usec N": instead of the two above */
	GAUGE_MEMORY_PEAK, /* one number, bytes */
	GAUGE_PIDS_PEAK,   /* one number */
	GAUGE_PIDS_EVENTS, /* "max N": forks that were refused */
	GAUGE_OOM,         /* "oom_kill N" among other lines */
	GAUGE_MEMORY_USED, /* one number, bytes */
	/* "inactive_file N" and "active_file N" among other lines: what can be reclaimed */
	GAUGE_MEMORY_STAT,
	GAUGE_MAX_,
};

enum kernel_state { KERNEL_NONE, KERNEL_RUNS, KERNEL_ENDED };

/* A kernel's pipes, as its client sees them; init hands them over in this order too. */
enum kernel_pipe {
	KERNEL_PIPE_IN, /* control messages to the kernel */
	KERNEL_PIPE_OUT,
	KERNEL_PIPE_STDOUT,
	KERNEL_PIPE_STDERR,
	KERNEL_PIPES,
};

struct warden_reply {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	int32_t code; /* 0 or negative errno; then msg has the reason and the remedy */
	uint32_t cell;
	uint32_t host_base; /* WARDEN_CREATE: host id of the cell's id 0; 0 without a range */
	uint32_t zygote;    /* WARDEN_ZYGOTE: its handle */
	/* With want_gauges: 1u << enum cell_gauge; these descriptors follow the channel. */
	uint32_t gauges;
	uint32_t pad_;
	struct cell_usage usage;
	char msg[504];
};

#endif
