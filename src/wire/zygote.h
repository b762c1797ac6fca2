/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h - Between the warden, a zygote, and the kernel that the zygote forks.
 *
 * A zygote is a warm interpreter (src/guest/python) that never runs a client's code. The warden
 * sends it one request per kernel, with descriptors: the pidfd of the cell's pid 1, the socket for
 * the kernel's hello, and the cgroup files to write "0" to. The zygote forks, the child joins the
 * cell's namespaces and forks once more (a process can not move itself into a pid namespace), and the
 * grandchild is the kernel: it seals itself (src/zygote/enter.c), makes its pipes as the cell's user and
 * sends the host's ends over the hello socket.
 *
 * The zygote has no capability. It may enter a cell because the cell's user namespace belongs to
 * the zygote's user: the warden made it so, for the cells of this zygote and for no others.
 */
#ifndef CAISSON_WIRE_ZYGOTE_H
#define CAISSON_WIRE_ZYGOTE_H

#include <stdint.h>

#include "wire/init.h"

#define ZYGOTE_WARDEN_FD 3 /* requests of the warden; SEQPACKET */
#define ZYGOTE_STATUS_FD 4 /* to the client: JSON, see docs/protocol/zygote.md; SEQPACKET */
#define ZYGOTE_CGROUPS_MAX 16
#define ZYGOTE_DIR                                                                                 \
	"/caisson" /* in its root: kernel.pyz, enter.so. At the top, where it can always be made */

struct zygote_req {
	uint64_t seq;
	struct init_config config; /* the limits and layers of the cell, as its init has them */
	uint32_t n_cgroups;
	uint32_t pad_;
};

struct zygote_reply {
	uint64_t seq;
	int32_t code; /* 0 or negative errno */
	int32_t pid;  /* of the kernel, as the zygote's pid namespace counts */
};

/* With it: the host's ends of control in, control out, stdout, stderr, in this order. */
struct kernel_hello {
	uint32_t magic;
	int32_t code;  /* 0, or the negative errno of the step that failed: no descriptors then */
	uint32_t step; /* enum enter_step */
	uint32_t landlock_on, seccomp_on;
};

#define KERNEL_HELLO_MAGIC 0x43414953u
#define KERNEL_HELLO_FDS 4u

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
