/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h - Between the warden, a zygote, and the kernel that the zygote forks.
 *
 * A zygote is a warm interpreter (src/guest/python) of the machine itself, the image `host`, that
 * never runs a client's code or an image's. The warden sends it one request per kernel, with
 * descriptors (enum zygote_fd). The zygote forks, the child joins the cell's namespaces and forks
 * once more (a process cannot move itself into a pid namespace), and the grandchild is the kernel.
 * It waits for one byte on the hello socket: the warden has found it in the cell, and it is in the
 * cell's cgroups. Then it seals itself (src/zygote/enter.c) and sends struct kernel_hello.
 *
 * The zygote has no capability. It may enter a cell because the cell's user namespace belongs to
 * the zygote's user: the warden made it so, for the cells of this zygote and for no others. No
 * descriptor that it is given lets it do more than that: the pipes are the cell's, and the cgroup
 * files were opened as its own user (cell/cgroup.h).
 */
#ifndef CAISSON_WIRE_ZYGOTE_H
#define CAISSON_WIRE_ZYGOTE_H

#include <stdint.h>

#include "wire/init.h"
#include "wire/machine.h"
#include "wire/warden.h"

#define ZYGOTE_WARDEN_FD 3    /* requests of the warden; SEQPACKET */
#define ZYGOTE_STATUS_FD 4    /* to the client: JSON, see docs/protocol/zygote.md; SEQPACKET */
#define ZYGOTE_DIR "/caisson" /* in its root: kernel.pyz, enter.so */

/* The descriptors of a request, in this order. */
enum zygote_fd {
	ZYGOTE_FD_INIT,  /* pidfd of the cell's pid 1 */
	ZYGOTE_FD_HELLO, /* the kernel's end of the hello socket */
	ZYGOTE_FD_PIPES, /* its ends of its pipes, in the order of enum kernel_pipe */
	ZYGOTE_FD_CGROUPS = ZYGOTE_FD_PIPES + KERNEL_PIPES, /* files to write "0" to */
};

struct zygote_req {
	uint64_t seq;
	struct init_config config; /* the limits and layers of the cell, as its init has them */
	uint32_t n_cgroups;
	uint32_t pad_;
	struct machine_cpus cpus;
};

struct zygote_reply {
	uint64_t seq;
	int32_t code; /* 0 or negative errno */
	int32_t pid;  /* of the kernel, as the zygote's pid namespace counts */
};

/* After the warden's byte: the kernel is sealed, or could not be. */
struct kernel_hello {
	uint32_t magic;
	int32_t code;  /* 0, or the negative errno of the step that failed */
	uint32_t step; /* enum enter_step */
	uint32_t landlock_on, seccomp_on;
};

#define KERNEL_HELLO_MAGIC 0x43414953u

enum enter_step {
	ENTER_CGROUP = 1,
	ENTER_NAMESPACES,
	ENTER_FORK,
	ENTER_CREDS,
	ENTER_LIMITS,
	ENTER_STDIO,
	ENTER_LANDLOCK,
	ENTER_SECCOMP,
	ENTER_DONE,
};

#endif
