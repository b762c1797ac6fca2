/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init.h - The channel between a client and pid 1 of its cell.
 *
 * A SEQPACKET socket made by the warden. The warden sends INIT_CONFIG before another process has
 * the socket; after that only the client sends to init. Messages are one fixed-size struct; strings
 * are in a sealed memfd, because an argument list may be larger than a socket buffer. Init runs
 * beside hostile code and checks every length against the size of what it received.
 */
#ifndef CAISSON_WIRE_INIT_H
#define CAISSON_WIRE_INIT_H

#include <stdint.h>

#define INIT_FD 3 /* init finds the channel here */
/* Its own oom_score_adj, open for writing: the cell's /proc is read-only. It may be missing. */
#define INIT_SCORE_FD 14
/* Out of memory ends commands and kernels first, file calls next, and pid 1 last. */
#define INIT_SCORE "800"
#define INIT_SCORE_FILES "900"
#define INIT_SCORE_COMMAND "1000"
#define INIT_COMMANDS_MAX 256u
#define INIT_BLOB_MAX (4u << 20) /* cwd, script name, argv and env together */
#define INIT_ARGS_MAX 65536u     /* entries of argv, and of env */
#define INIT_FDS_MAX 4u          /* descriptors with INIT_STARTED */
#define INIT_SPARE_MAX 8u        /* commands that INIT_TARGET_OTHERS leaves alone */

enum init_type {
	INIT_CONFIG = 1, /* warden -> init, once, first */
	INIT_EXEC, /* client -> init; descriptors: blob, [script], stdin, stdout, stderr (pipes) */
	INIT_GO,   /* client -> init: let the command that is held execute */
	INIT_SIGNAL, /* client -> init: signal one command, or its process group */
	INIT_READY,  /* init -> client: the cell is sealed, commands may come */
	INIT_HELD,   /* init -> client: only execve is left (INIT_HOLD); waits for INIT_GO */
	/* init -> client: execve succeeded. Descriptors: the pty master with INIT_TTY; with
	 * INIT_CONTROL the other ends of control in, control out, stdout, stderr; with INIT_PIPES
	 * those of stdin, stdout, stderr; of a file call, those of its input and its output. */
	INIT_STARTED,
	INIT_FAILED,    /* init -> client: could not start; nothing runs */
	INIT_EXITED,    /* init -> client: wait status and resource use */
	INIT_DISK,      /* client -> init: use of the writable layer; answered by the same type */
	INIT_FILES,     /* client -> init; descriptor: blob. A file call, see below */
	INIT_CONNECT,   /* client -> init: a connection to a port of the cell's loopback */
	INIT_CONNECTED, /* init -> client; descriptor: the socket, see below */
	INIT_LISTEN, /* client -> init: a socket for the gate, see below; INIT_CONNECTED answers */
};

enum init_exec_flag {
	INIT_TTY = 1u << 0,    /* run on a new pty of the cell; no stdio descriptors are passed */
	INIT_HOLD = 1u << 1,   /* wait right before execve, to be inspected */
	INIT_SCRIPT = 1u << 2, /* write the script descriptor to the path named in the blob first */
	/* A kernel (docs/protocol/kernel.md): stdin is empty, and init makes pipes of the cell's
	 * user for 1, 2 and the control channel on 3 and 4. No stdio descriptors are passed. */
	INIT_CONTROL = 1u << 3,
	/* Init makes pipes of the cell's user for 0, 1 and 2, which the program can open by name
	 * (/dev/stdout). No stdio descriptors are passed. */
	INIT_PIPES = 1u << 4,
};

struct init_config {
	uint32_t uid, gid;     /* the only ones there are, unless separate */
	uint32_t without;      /* enum cell_without */
	uint32_t separate;     /* 1 when init has a user of its own, apart from uid */
	uint64_t files;        /* RLIMIT_NOFILE for commands */
	uint64_t disk_bytes;   /* RLIMIT_FSIZE */
	uint64_t pids;         /* RLIMIT_NPROC, the second layer under the pids cgroup */
	uint64_t memory_bytes; /* RLIMIT_AS when there is no cgroup, 0 otherwise */
	/* 1: a zygote's kernels live here too. They cannot be in init's Landlock domain, so signals
	 * between them and init's commands must not be scoped to it. */
	uint16_t kernels;
	/* 1: the cell can write to a directory of the host, and has the filter for that. */
	uint16_t writable;
	uint32_t seen_cpus;   /* processors that code in the cell sees (wire/machine.h) */
	uint64_t seen_memory; /* and bytes of memory */
};

struct init_limit {
	int resource;
	uint64_t value;
};

/*
 * The limits of each process of a command, as an array of struct init_limit; takes
 * <sys/resource.h>. One table for two users: init's children (cell/caps.c), and kernels that a
 * zygote forks (zygote/enter.c), which may not use a C library and so cannot share the code.
 * RLIMIT_NPROC counts in the cell's own user namespace. Without a cgroup each process has the
 * memory limit: for what it may write to, and, with room for the addresses that interpreters
 * reserve and never use, for all that it maps.
 */
#define INIT_ADDRESSES (4ull << 30)
#define INIT_LIMITS(c)                                                                             \
	{                                                                                          \
		{ RLIMIT_CORE, 0 }, { RLIMIT_NOFILE, (c)->files },                                 \
			{ RLIMIT_FSIZE, (c)->disk_bytes }, { RLIMIT_MEMLOCK, 64 * 1024 },          \
			{ RLIMIT_NPROC, (c)->pids }, { RLIMIT_SIGPENDING, 1024 },                  \
			{ RLIMIT_MSGQUEUE, 204800 }, { RLIMIT_NICE, 0 }, { RLIMIT_RTPRIO, 0 },     \
			{ RLIMIT_DATA, (c)->memory_bytes ? (c)->memory_bytes : RLIM_INFINITY },    \
		{                                                                                  \
			RLIMIT_AS, (c)->memory_bytes ? (c)->memory_bytes + INIT_ADDRESSES :        \
						       RLIM_INFINITY                               \
		}                                                                                  \
	}

/* Blob: cwd, script path (empty without INIT_SCRIPT), argv..., env..., each NUL-terminated. */
struct init_exec {
	uint32_t flags;
	uint32_t argc, envc;
	uint32_t blob_len;
	uint32_t uid, gid;   /* who runs it; 0 is init's own and refused */
	uint16_t rows, cols; /* INIT_TTY */
};

/*
 * A file call (wire/files.h): a command whose program is init's own. It runs as any other, with the
 * same user, limits and layers, and looks up its paths in the cell, relative ones below /workspace.
 * Blob: path NUL, second path NUL (empty but for a move).
 */
struct init_files {
	uint32_t op;    /* enum files_op */
	uint32_t flags; /* enum files_flag */
	uint32_t mode;  /* permission bits, 0777 */
	uint32_t depth; /* LIST, TAR_OUT: levels below the first; at most FILES_DEPTH_MAX */
	uint32_t blob_len;
	uint32_t uid, gid;
	uint32_t pad_;
	uint64_t offset; /* READ */
	/* READ. WRITE, TAR_IN: of the content; FILES_TO_END: not known before */
	uint64_t length;
	/* LIST: entries. READ, HASH, TAR_OUT: bytes. WRITE: memory that the cell has left. 0: none
	 */
	uint64_t limit;
};

/*
 * A connection to a service on the cell's loopback, which only processes inside can reach. Init
 * never waits for it: the socket that it hands out is non-blocking and may still be connecting, for
 * which the client waits. The answer has the id of the request, and INIT_EXITED never follows.
 */
struct init_connect {
	uint32_t port;   /* 1 to 65535 */
	uint32_t family; /* 4: 127.0.0.1, 6: ::1 */
};

/*
 * A socket of the cell's network for the gate (wire/gate.h) or the front, which accepts the cell's
 * connections outside of it. Answered as INIT_CONNECT is.
 */
enum init_listen_kind {
	INIT_LISTEN_TCP = 1, /* listens on this port of all addresses, of both families */
	INIT_LISTEN_DNS_UDP, /* port 53 of the resolver's address; port is 0 */
	INIT_LISTEN_DNS_TCP, /* the same, and listens */
	INIT_LISTEN_TOOLS,   /* INIT_TOOLS_PORT of that address, for the front; port is 0 */
};

/* Where programs of the cell request packages (docs/protocol/tools.md). */
#define INIT_TOOLS_PORT 61052 /* neither privileged nor ephemeral */

struct init_listen {
	uint32_t kind; /* enum init_listen_kind */
	uint32_t port;
};

enum init_target {
	INIT_TARGET_COMMAND = 0, /* the command with the message's id */
	INIT_TARGET_GROUP,       /* its whole process group */
	INIT_TARGET_PID_GROUP,   /* the process group of a pid of the cell: a zygote's kernel */
	INIT_TARGET_ALL,         /* everything in the cell but init */
	INIT_TARGET_OTHERS,      /* the process group of each command but those in spare */
};

struct init_signal {
	int32_t signo;
	uint32_t target;                /* enum init_target */
	int32_t pid;                    /* INIT_TARGET_PID_GROUP: above 1 */
	uint32_t spare[INIT_SPARE_MAX]; /* INIT_TARGET_OTHERS: names of commands; 0: none */
};

/* Where a start failed; the order is the order of the steps. */
enum init_stage {
	INIT_STAGE_SEAL,    /* init's own layers; reported with id 0, and the cell is over */
	INIT_STAGE_REQUEST, /* the message itself: a bug in the client */
	INIT_STAGE_FORK,
	INIT_STAGE_TTY,
	INIT_STAGE_CREDS,
	INIT_STAGE_LIMITS,
	INIT_STAGE_SCRIPT,
	INIT_STAGE_CWD,
	INIT_STAGE_STDIO,
	INIT_STAGE_EXEC,
	INIT_STAGE_CONNECT, /* of INIT_CONNECT alone */
	INIT_STAGE_LISTEN,  /* of INIT_LISTEN alone */
	INIT_STAGE_MAX_,
};

struct init_failed {
	uint32_t stage;
	int32_t error; /* positive errno */
};

/* Layers that init put on itself, and so on everything in the cell: the system calls succeeded. */
struct init_ready {
	uint32_t landlock_abi; /* 0: the Linux kernel has no Landlock */
	uint32_t landlock_on;
	uint32_t seccomp_on;
	uint32_t nested_userns_max; /* user namespaces that the cell's own still allows: 0 */
};

/* The writable layer. */
struct init_disk {
	uint64_t used, size; /* bytes */
	uint64_t inodes_used, inodes_size;
};

struct init_exited {
	int32_t status; /* as from wait4() */
	uint32_t pad_;
	uint64_t user_ns, system_ns;
	uint64_t wall_ns; /* from execve to exit, init's monotonic clock */
	uint64_t maxrss_bytes;
	struct init_disk disk; /* at that moment */
};

struct init_msg {
	uint32_t type;
	uint32_t id; /* the client's name for a command, unique among the living */
	union {
		struct init_config config;
		struct init_exec exec;
		struct init_signal signal;
		struct init_ready ready;
		struct init_failed failed;
		struct init_exited exited;
		struct init_disk disk;
		struct init_files files;
		struct init_connect connect;
		struct init_listen listen;
		int32_t pid; /* INIT_HELD, INIT_STARTED: pid inside the cell */
	} u;
};

#endif
