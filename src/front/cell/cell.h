/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.h - A cell and the kernels in it, as the front holds them.
 *
 * Life: cell_make() -> making -> ready -> cell_end(). If a cell ends by itself (out of memory, pid
 * 1 killed), gone is called, once. A cell belongs to the pool until it is taken, then to one
 * sandbox, and is never given to another. Its memory is freed at the end of a round of the loop, so
 * a callback may end the cell that calls it.
 */
#ifndef CAISSON_FRONT_CELL_H
#define CAISSON_FRONT_CELL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/foreign.h"
#include "client/gauges.h"
#include "client/init_client.h"
#include "front/cell/kernel_pipes.h"
#include "front/cell/language.h"
#include "front/cell/warden_link.h"
#include "front/support/mounts.h"
#include "wire/init.h"
#include "wire/warden.h"

struct cell;
struct cells;
struct err;
struct files_request;
struct image_use;
struct keeper_slot;
struct packages;

/*
 * Ids of requests to pid 1 whose answer only marks a moment: this plus enum language_id. The ids of
 * commands begin at 1.
 */
#define CELL_SETTLE 0xffffff00u

enum kernel_phase { KERNEL_EMPTY, KERNEL_STARTING, KERNEL_IDLE, KERNEL_BUSY, KERNEL_ENDING };

/* The kernel of one language in a cell. */
struct kernel {
	struct cell *cell;
	const struct language *language;
	enum kernel_phase state;
	bool attached; /* pipes are valid */
	struct kernel_pipes pipes;
	struct watch hello;   /* forked: until it reports that it is sealed */
	int ends[KERNEL_FDS]; /* forked: its pipes until then; otherwise -1 */
	struct watch pidfd;   /* forked: readable when it has ended */
	int pid;              /* as it reports it, for signals; 0: unknown */
	uint32_t command;     /* started cold: its id at pid 1; 0: forked */
	uint64_t started_ns;
	bool killed;   /* with everything in the cell; if it was starting, it starts again */
	bool joined;   /* taken over from a former front; see cell_adopt.c */
	bool kept;     /* the keeper has its pipes */
	bool settling; /* was busy for a former front, and is brought to rest: see cell_adopt.c */
	bool rested;   /* settling, and has reported that it is done */
	struct timer settle;
	uint64_t settle_until_ns;
	/* Id of the execution whose end shows that the kernel rests; empty: not sent. */
	char probe[33];
	uint64_t packages;   /* trees.changes when its packages were last sent to it; 0: never */
	bool asked_packages; /* it waits for an install_response */
	bool env_sent;       /* python: the sandbox's environment went with an execution */
	const char *why;     /* how it broke the protocol, for which it was killed; or NULL */
	struct timer closed; /* it closed its channel: until its end is reported, or it is killed */
	struct timer status; /* forked: it is dead, and its exit status is asked for again */
	struct timer warm;   /* forked: limit for its hello; after it the kernel is started cold */
};

/*
 * A program, a file call or a socket in a cell. The struct belongs to the caller. After failed or
 * exited the cell has forgotten it; after the end of the cell no function is called.
 */
struct cell_command {
	uint32_t id;             /* its id at pid 1; 0: not under way */
	enum foreign_kind hands; /* the kind of descriptor that pid 1 may send for it; checked */
	/* It runs. After cell_connect() and cell_listen(): the socket exists, and no other call
	 * follows. @fds: the function sets those that it keeps to -1, and the rest is closed. */
	void (*started)(struct cell_command *c, int pid, int *fds, size_t n_fds);
	void (*failed)(struct cell_command *c, const struct init_failed *f);
	void (*exited)(struct cell_command *c, const struct init_exited *x);
	struct cell_command *next;
};

/* The properties of a cell that is made for one sandbox, and differs from those of the pool. */
struct cell_want {
	struct cell_limits limits;
	struct mount_set mounts; /* of the operator */
	bool fetcher;            /* for fetching packages: packages/fetcher.h */
	/* Add the mounts of the sandbox. Return: the number of descriptors put into @fds. */
	size_t (*add_mounts)(const struct cell_want *want, struct cell_spec *spec, int *fds);
};

/* Functions of a part in a layer above, which adds mounts to each cell. */
struct cell_hooks {
	/* Add the mounts of packages. Return: the number of descriptors put into @fds. */
	size_t (*mounts)(const struct packages *packages, bool fetcher, struct cell_spec *spec,
			 int *fds);
	const struct packages *packages; /* for mounts */
};

struct cell_ops {
	void (*ready)(struct cell *r); /* it is made, with a python kernel if one was wanted */
	/* It could not be made; the holder ends it. */
	void (*failed)(struct cell *r, const char *message);
	void (*kernel_ready)(struct cell *r, struct kernel *s);
	/* The kernel could not be started. @missing: the image has no such interpreter. */
	void (*kernel_failed)(struct cell *r, struct kernel *s, bool missing, const char *message);
	/* The next two may be NULL. */
	void (*message)(struct cell *r, struct kernel *s, const char *type, json_t *m);
	void (*output)(struct cell *r, struct kernel *s, enum kernel_stream stream,
		       const char *data, size_t len);
	/* A message of a kernel that settles: no execution waits for it. */
	void (*stray)(struct kernel *s, const char *type, json_t *m);
	void (*drained)(struct cell *r, struct kernel *s); /* kernel.h; may be NULL */
	/* The process has ended, and all of its output was passed on. @status: as from wait(2). */
	void (*kernel_ended)(struct cell *r, struct kernel *s, int status);
	void (*usage)(struct cell *r, const struct cell_usage *u); /* answer to cell_usage() */
	void (*disk)(struct cell *r, const struct init_disk *d);   /* answer to cell_disk() */
	/* The cell has ended by itself; the holder calls cell_end(). */
	void (*gone)(struct cell *r, const struct cell_usage *u);
};

struct cell {
	struct cells *cells;
	struct image_use *image; /* outlives the cell */
	const struct cell_ops *ops;
	void *holder;
	struct cell *prev, *next; /* in a list of its holder */
	uint32_t handle; /* the warden's handle; 0 while the cell is being made, or after its end */
	uint32_t zygote; /* the zygote whose kernels may enter; 0: kernels start cold */
	int slot;        /* in the keeper's table; -1: not stored for the next front */
	bool want_python, sealed, ending, lost;
	const struct cell_want *want; /* of its sandbox, which outlives it; NULL: for the pool */
	struct mount_set mounts;      /* of the operator; unknown in an adopted cell */
	struct watch channel;
	struct init_ready layers;
	struct kernel kernels[LANG_MAX_];
	uint32_t names; /* number of ids given to commands so far */
	struct cell_command *commands;
	struct cell_limits limits;
	json_t *env; /* variables for kernels; borrowed from the holder, may be NULL */
	struct gauges gauges;
	struct warden_call create_call, kernel_call, usage_call, gone_call, end_call;
	struct timer start_timer;
	struct deferred reaper;
	uint64_t asked_ns;
	unsigned int gone_tries;
	uint64_t rest_until_ns; /* its terminals were slow: they are not read or written before */
	struct kernel_share share; /* the front's time that its kernels took */
	/* For how long pipes of its commands blocked the daemon: base/foreign.h. */
	uint64_t stalled_ns;
	struct timer gone_timer;
};

/*
 * cell_make() - Ask the warden for a cell; ready or failed follows. @want: for one sandbox,
 * borrowed while the cell lives; NULL: for the pool, with the daemon's own limits and the mounts
 * that every caller has. NULL, with the reason in @e, if the cell cannot be made now.
 */
struct cell *cell_make(struct image_use *g, const struct cell_want *want, bool with_python,
		       const struct cell_ops *ops, void *holder, struct err *e);
/*
 * cell_adopt() - Take over the cell that a former front left in @slot. *@ret_lost: how many of its
 * kernels are gone. Return: 0; -ESRCH if the cell has ended; -ENOENT if it cannot be adopted.
 */
int cell_adopt(struct image_use *g, const struct cell_limits *limits, int slot,
	       const struct keeper_slot *was, struct cell **ret, unsigned int *ret_lost);
/* cell_settling() - Whether a kernel still works for a former front. */
bool cell_settling(const struct cell *r);

/*
 * cell_keep() - Store the cell with the keeper, in @slot. cell_note() - Store the states of its
 * kernels there, after a change.
 */
void cell_keep(struct cell *r, int slot);
void cell_note(struct cell *r);

/*
 * cell_alive() - Whether the cell and its python kernel both live. An end that the loop has not
 * reported yet counts, too.
 */
bool cell_alive(const struct cell *r);

/* cell_hung_up() - Whether pid 1 is dead. If gone was not called yet, it will be. */
bool cell_hung_up(const struct cell *r);

/* cell_hold() - Give the cell to another holder, whose @ops are called from now on. */
void cell_hold(struct cell *r, const struct cell_ops *ops, void *holder);

/* cell_start() - Start a kernel for @l; kernel_ready or kernel_failed follows, later. */
void cell_start(struct cell *r, const struct language *l);

/* Signal a kernel and the processes that it started (SIGINT), or everything in the cell. */
void cell_interrupt(struct cell *r, struct kernel *s);
void cell_kill_all(struct cell *r);
void cell_signal_all(struct cell *r, int signo); /* a kernel that ends may start again */

/* cell_exec() - Ask pid 1 to run @q, whose id is set here. -EPIPE if the cell is over. */
int cell_exec(struct cell *r, struct cell_command *c, struct exec_request *q, struct err *e);
/* cell_files() - As cell_exec(), for a file call (client/files_client.h). */
int cell_files(struct cell *r, struct cell_command *c, struct files_request *q, struct err *e);
/*
 * cell_pack() - The same, for a directory as an archive. Sets c->exited: the process that gets the
 * second descriptor of c->started learns from it how the packing ended. @flags: enum files_flag
 */
int cell_pack(struct cell *r, struct cell_command *c, const char *path, uint32_t flags,
	      struct err *e);
/*
 * cell_connect() - Ask pid 1 for a socket to @port of the cell's loopback; @family: 4 or 6. Either
 * started follows, with one non-blocking descriptor that may still be connecting, or failed; exited
 * is never called.
 */
int cell_connect(struct cell *r, struct cell_command *c, uint32_t port, uint32_t family,
		 struct err *e);
/* cell_listen() - As cell_connect(), for a socket that the gate or the front serves. */
int cell_listen(struct cell *r, struct cell_command *c, enum init_listen_kind kind, uint32_t port,
		struct err *e);
void cell_signal(struct cell *r, const struct cell_command *c, enum init_target target, int signo);
/*
 * cell_signal_group() - Signal the process group of @pid, a pid in the cell, also when its command
 * is over.
 */
void cell_signal_group(struct cell *r, int pid, int signo);
/* cell_forget() - No function of @c is called any more; a program that runs goes on. Idempotent. */
void cell_forget(struct cell *r, struct cell_command *c);

/*
 * cell_gauge() - The usage so far, at once; members without a gauge keep their values. False:
 * unknown (the machine has no such files, or the cell or its python kernel may be over): use
 * cell_usage().
 */
bool cell_gauge(const struct cell *r, struct cell_usage *u);
void cell_usage(struct cell *r); /* at most one under way; ops->usage follows */
void cell_disk(struct cell *r);  /* ops->disk follows, from pid 1 itself; or gone */

/* For the files of this directory. */
struct cell *cell_new(struct image_use *g, const struct cell_limits *limits);
int cell_watch(struct cell *r, int channel); /* takes @channel, also on failure */
void cell_lost(struct cell *r);              /* the cell has ended, or is treated so */
uint32_t cell_name(struct cell *r);          /* the next id for pid 1; each is given once */
void cell_unkeep(struct cell *r);
/*
 * cell_command_heard() - Handle a message of pid 1 about a command. @fds: as in struct
 * cell_command.
 */
void cell_command_heard(struct cell *r, const struct init_msg *m, int *fds, size_t n_fds);

/*
 * cell_refuse() - Give up a cell whose pid 1 breaks the protocol: an attacker has taken it over.
 * The cell is treated as one that has ended, with @why in the log; gone is called.
 */
void cell_refuse(struct cell *r, const char *why);

/*
 * cell_end() - Destroy the cell. No function is called back afterwards. Idempotent until the end of
 * the round.
 */
void cell_end(struct cell *r);

#endif
