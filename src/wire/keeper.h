/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - Descriptors and numbers that a front leaves with its keeper, for the next front.
 *
 * One SEQPACKET socket per life of a front, fixed-size messages, descriptors. The keeper knows keys
 * and nothing else: the meaning of what is under a key is between fronts. Numbers that go with the
 * descriptors are in a table in shared memory (a memfd that can neither shrink nor grow): plain
 * stores, no system call. The keeper makes it and never reads it.
 *
 * An attacker may have taken over the front that wrote the table: the next front copies each slot
 * out and checks it (front/cell/keep.h) before it uses a number.
 */
#ifndef CAISSON_WIRE_KEEPER_H
#define CAISSON_WIRE_KEEPER_H

#include <signal.h>
#include <stdint.h>

#include "wire/init.h"
#include "wire/warden.h"

#define KEEPER_VERSION 1u
#define KEEPER_ENV "CAISSON_KEEPER" /* set for a front that has one */
#define KEEPER_FD 19                /* where it finds the socket: beyond LISTEN_FDS of a manager */
/*
 * The keeper passes SIGTERM and SIGINT to the front as this signal: Ctrl-C reaches both processes,
 * and two equal pending signals would be one. Real-time signals queue.
 */
#define KEEPER_STOP SIGRTMIN
/* The exit code of a front that cannot speak with its living keeper, which then starts another. */
#define KEEPER_AGAIN 75
#define KEEPER_FDS_MAX 10u /* under one key */
#define KEEPER_SLOTS 4096u /* sandboxes; as many as the warden has cells */
#define KEEPER_KERNELS 8u  /* kernels of one */

/* The parts of one sandbox. */
enum keeper_part {
	KEEPER_CELL,      /* channel to pid 1, then gauges */
	KEEPER_VARIABLES, /* memfd: its environment, a JSON object */
	KEEPER_KERNEL, /* control in, control out, stdout, stderr; of a forked kernel its pidfd */
	KEEPER_PARTS = KEEPER_KERNEL + KEEPER_KERNELS,
};

enum keeper_key {
	KEEPER_LOCK,   /* of the state directory */
	KEEPER_TCP,    /* listening sockets */
	KEEPER_LOCAL,  /* ... */
	KEEPER_WARDEN, /* this and the following are dropped when fronts keep dying */
	KEEPER_POLICY, /* memfd: the text of the operator's policy in force */
	KEEPER_FIRST = 8,
	KEEPER_KEYS = KEEPER_FIRST + KEEPER_SLOTS * KEEPER_PARTS,
};

enum keeper_op {
	KEEPER_TABLE = 1, /* keeper -> front, first: the table; key: which front this is, from 1 */
	KEEPER_PUT,       /* keep these, in place of earlier ones. keeper -> front: take these */
	KEEPER_DROP,      /* front -> keeper: close those of the key */
	KEEPER_ALL,       /* keeper -> front: that was all */
	KEEPER_SETTLED,   /* front -> keeper: it runs well with what it took over */
	KEEPER_SAY,       /* front -> keeper: to the service manager; key: enum keeper_word */
	/* keeper -> front: SIGHUP came, read this again; key: enum keeper_file. Without a
	 * descriptor signo is the errno. */
	KEEPER_FILE,
};

/*
 * Files that are read again on SIGHUP. The keeper opens the file of the option that it was itself
 * started with. The front may not read secrets: it gets only the message, and gate/supervisor.c
 * reads them.
 */
enum keeper_file { KEEPER_FILE_POLICY, KEEPER_FILE_SECRETS, KEEPER_FILE_MAX_ };

/* All messages to a service manager, which accepts them only from the process that it started. */
enum keeper_word { KEEPER_READY, KEEPER_ALIVE, KEEPER_STOPPING, KEEPER_WORD_MAX_ };

/* clang-format off */
#define KEEPER_WORDS {                                                  \
	[KEEPER_READY] = "READY=1\nSTATUS=Serving",                     \
	[KEEPER_ALIVE] = "WATCHDOG=1",                                  \
	[KEEPER_STOPPING] = "STOPPING=1\nSTATUS=Finishing what runs",   \
}
/* clang-format on */

struct keeper_msg {
	uint32_t version;
	uint32_t op;    /* enum keeper_op */
	uint32_t key;   /* below KEEPER_KEYS */
	uint32_t signo; /* KEEPER_TABLE: what ended the front before this one */
};

/* A kernel, as a front left it. */
enum keeper_state {
	KEPT_EMPTY,
	KEPT_IDLE,
	KEPT_BUSY,
	KEPT_ENDING, /* it has ended or was killed, and is not counted yet */
	KEPT_STATE_MAX_,
};

struct keeper_kernel {
	uint32_t state;
	uint32_t command;  /* init's name for it; 0: forked */
	int32_t pid;       /* in the cell; 0: unknown */
	uint32_t env_sent; /* it has the sandbox's environment */
	uint32_t writing;  /* a message to it may be half written */
};

struct keeper_slot {
	uint32_t used;   /* written last, cleared first */
	uint32_t ending; /* the sandbox was being removed or stopped */
	char id[36];     /* 32 hexadecimal digits */
	uint32_t epoch;
	uint64_t executions;
	uint64_t tool_calls; /* of its code, for budgets */
	uint64_t expires_ms; /* since 1970; 0: never */
	uint32_t cell;       /* the warden's handle; 0: none */
	uint32_t names;      /* given to pid 1 so far */
	uint32_t gauges;     /* 1u << enum cell_gauge: those after the channel */
	uint32_t has_env;
	struct init_ready layers;
	struct cell_usage before; /* when the last execution began */
	struct keeper_kernel kernels[KEEPER_KERNELS];
};

struct keeper_table {
	struct keeper_slot slots[KEEPER_SLOTS];
};

#endif
