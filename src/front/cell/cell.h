/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.h - A cell and the kernels in it, as the front holds them.
 *
 * Life: cell_make() -> making -> ready -> cell_end(). For a cell that ends by itself (out of
 * memory, pid 1 killed) gone is called, once. A cell belongs to the pool until it is taken, then to
 * one sandbox, and is never given to another. Memory is freed at the end of a round of the loop, so
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

/* Requests to pid 1 whose answer only marks a moment: this plus a language. Commands begin at 1. */
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
	int ends[KERNEL_FDS]; /* forked: ours until then; otherwise -1 */
	struct watch pidfd;   /* forked: readable when it has ended */
	int pid;              /* as it reports it, for signals; 0: unknown */
	uint32_t command;     /* cold: init's name for it; 0 = forked */
	uint64_t started_ns;
	bool killed;   /* with everything in the cell; while it starts: it is started again */
	bool joined;   /* of a former front; see cell_adopt.c */
	bool kept;     /* the keeper has its pipes */
	bool settling; /* busy for a front that is gone: see cell_adopt.c */
	bool rested;   /* ... and has reported that it is done */
	struct timer settle;
	uint64_t settle_until_ns;
	char probe[33];    /* id of the execution whose end shows that it rests; empty: not sent */
	uint64_t packages; /* trees.changes when it was told its packages; 0: it was not */
	bool asked_packages; /* it waits for an install_response */
	bool env_sent;       /* python: the sandbox's environment went with an execution */
	const char *why;     /* how it broke the protocol, for which it was killed; or NULL */
	struct timer closed; /* it closed its channel: until it is found dead */
	struct timer warm;   /* forked: until its hello; then it is started cold */
};

/*
 * A program, a file call or a socket in a cell. The struct is the asker's. After failed or exited
 * it is forgotten here; when the cell is over none of the functions is called.
 */
struct cell_command {
	uint32_t id;             /* pid 1's name for it; 0: not under way */
	enum foreign_kind hands; /* of the descriptors that pid 1 sends for it; checked */
	/* It runs. After cell_connect() and cell_listen(): the socket is there, and nothing
	 * follows. @fds: what is kept is set to -1, the rest is closed. */
	void (*started)(struct cell_command *c, int pid, int *fds, size_t n_fds);
	void (*failed)(struct cell_command *c, const struct init_failed *f);
	void (*exited)(struct cell_command *c, const struct init_exited *x);
	struct cell_command *next;
};

/* A cell for one sandbox, which differs from those of the pool. */
struct cell_want {
	struct cell_limits limits;
	struct mount_set mounts; /* of the operator */
	bool fetcher;            /* for fetching packages: packages/fetcher.h */
	/* Add mounts of the sandbox. Return: how many descriptors were put into @fds. */
	size_t (*add_mounts)(const struct cell_want *want, struct cell_spec *spec, int *fds);
};

/* Mounts of a part above cells, for each of them. */
struct cell_hooks {
	/* Mounts of packages. Return: how many descriptors were put into @fds. */
	size_t (*mounts)(const struct packages *packages, bool fetcher, struct cell_spec *spec,
			 int *fds);
	const struct packages *packages; /* for mounts */
};

struct cell_ops {
	void (*ready)(struct cell *r); /* made; with python when that was asked for */
	void (*failed)(struct cell *r, const char *message); /* could not be made; end it */
	void (*kernel_ready)(struct cell *r, struct kernel *s);
	/* It could not be started: @missing when the image has no such interpreter. */
	void (*kernel_failed)(struct cell *r, struct kernel *s, bool missing, const char *message);
	/* The next two may be NULL. */
	void (*message)(struct cell *r, struct kernel *s, const char *type, json_t *m);
	void (*output)(struct cell *r, struct kernel *s, enum kernel_stream stream,
		       const char *data, size_t len);
	/* A message of a kernel that settles: no execution waits for it. */
	void (*stray)(struct kernel *s, const char *type, json_t *m);
	void (*drained)(struct cell *r, struct kernel *s); /* kernel.h; may be NULL */
	/* The process is over; all of its output has been handed up. @status as from wait. */
	void (*kernel_ended)(struct cell *r, struct kernel *s, int status);
	void (*usage)(struct cell *r, const struct cell_usage *u); /* answer to cell_usage() */
	void (*disk)(struct cell *r, const struct init_disk *d);   /* answer to cell_disk() */
	void (*gone)(struct cell *r, const struct cell_usage *u);
};

struct cell {
	struct cells *cells;
	struct image_use *image; /* lives longer */
	const struct cell_ops *ops;
	void *holder;
	struct cell *prev, *next; /* in a list of the holder's */
	uint32_t handle; /* warden's handle, 0 while it is being made or after it is gone */
	uint32_t zygote; /* whose kernels may enter */
	int slot;        /* in the keeper's table; -1: the next front will not have it */
	bool want_python, sealed, ending, lost;
	const struct cell_want *want; /* of its sandbox, which lives longer; NULL: for the pool */
	struct mount_set mounts;      /* of the operator; unknown in an adopted cell */
	struct watch channel;
	struct init_ready layers;
	struct kernel kernels[LANG_MAX_];
	uint32_t names; /* given to pid 1 so far */
	struct cell_command *commands;
	struct cell_limits limits;
	json_t *env; /* variables for kernels; borrowed from the holder, may be NULL */
	struct gauges gauges;
	struct warden_call create_call, kernel_call, usage_call, gone_call, end_call;
	struct timer start_timer;
	struct deferred reaper;
	uint64_t asked_ns;
	unsigned int gone_tries;
	uint64_t rest_until_ns; /* its terminals were slow: none is read or written before */
	uint64_t stalled_ns;    /* time that pipes of its commands blocked us: base/foreign.h */
	struct timer gone_timer;
};

/*
 * cell_make() - @want: of the sandbox that it is for; NULL: one for the pool, with the daemon's own
 * limits and what each caller has. NULL, with why in @e, when none can be begun now.
 */
struct cell *cell_make(struct image_use *g, const struct cell_want *want, bool with_python,
		       const struct cell_ops *ops, void *holder, struct err *e);
/*
 * cell_adopt() - The cell of a former front in @slot. @ret_lost: how many of its kernels are gone.
 * Return: 0; -ESRCH when the cell is over; -ENOENT when it cannot be adopted.
 */
int cell_adopt(struct image_use *g, const struct cell_limits *limits, int slot,
	       const struct keeper_slot *was, struct cell **ret, unsigned int *ret_lost);
/* cell_settling() - A kernel still works for a front that is gone. */
bool cell_settling(const struct cell *r);

/* cell_keep() - Leave it with the keeper, in @slot. cell_note(): the state of a kernel has changed.
 */
void cell_keep(struct cell *r, int slot);
void cell_note(struct cell *r);

/* cell_alive() - Whether neither the cell nor its python kernel has ended, noticed or not. */
bool cell_alive(const struct cell *r);

/* cell_hung_up() - Its pid 1 is dead; if gone was not called yet, it will be. */
bool cell_hung_up(const struct cell *r);

void cell_hold(struct cell *r, const struct cell_ops *ops, void *holder);

/* cell_start() - A kernel for @l; kernel_ready or kernel_failed follows, later. */
void cell_start(struct cell *r, const struct language *l);

/* Signals to a kernel and what it started; to everything in the cell. */
void cell_interrupt(struct cell *r, struct kernel *s);
void cell_kill_all(struct cell *r);
void cell_signal_all(struct cell *r, int signo); /* a kernel that ends may start again */

/* cell_exec() - Ask pid 1 to run @q; q->id is set here. -EPIPE when the cell is over. */
int cell_exec(struct cell *r, struct cell_command *c, struct exec_request *q, struct err *e);
/* cell_files() - The same with a file call (client/files_client.h). */
int cell_files(struct cell *r, struct cell_command *c, struct files_request *q, struct err *e);
/* cell_connect() - A socket to @port of its loopback; @family: 4 or 6. It is started, with one
 * descriptor that is non-blocking and may still be connecting, or failed; it never exits. */
int cell_connect(struct cell *r, struct cell_command *c, uint32_t port, uint32_t family,
		 struct err *e);
/* cell_listen() - The same with a socket for the gate. */
int cell_listen(struct cell *r, struct cell_command *c, enum init_listen_kind kind, uint32_t port,
		struct err *e);
void cell_signal(struct cell *r, const struct cell_command *c, enum init_target target, int signo);
/* cell_signal_group() - To the process group of a pid of the cell, also when its command is over.
 */
void cell_signal_group(struct cell *r, int pid, int signo);
/* cell_forget() - Nothing is called any more; what runs goes on. Idempotent. */
void cell_forget(struct cell *r, struct cell_command *c);

/*
 * cell_gauge() - The usage so far, at once; fields that it does not know stay. False: it is not
 * known (no such files here, or the cell or its python may be over): ask with cell_usage().
 */
bool cell_gauge(const struct cell *r, struct cell_usage *u);
void cell_usage(struct cell *r); /* at most one under way; ops->usage follows */
void cell_disk(struct cell *r);

/* For the files of this directory. */
struct cell *cell_new(struct image_use *g, const struct cell_limits *limits);
int cell_watch(struct cell *r, int channel); /* @channel is the cell's, also on failure */
void cell_lost(struct cell *r);              /* the cell is over, or as good as */
uint32_t cell_name(struct cell *r);          /* for pid 1: each is given once */
void cell_unkeep(struct cell *r);
/* cell_command_heard() - A message of pid 1 about a command. @fds: as in struct cell_command. */
void cell_command_heard(struct cell *r, const struct init_msg *m, int *fds, size_t n_fds);

/*
 * cell_refuse() - Its pid 1 breaks the protocol: an attacker has taken it over. The cell is treated
 * as one that has ended, with @why in the log; gone is called.
 */
void cell_refuse(struct cell *r, const char *why);

/* cell_end() - Destroy the cell. Nothing is called back after this. */
void cell_end(struct cell *r);

#endif
