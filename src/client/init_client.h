/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_client.h - The client of a cell's pid 1: start commands, signal them, receive reports.
 */
#ifndef CAISSON_CLIENT_INIT_CLIENT_H
#define CAISSON_CLIENT_INIT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/init.h"

struct err;

/* A command. Strings are borrowed. */
struct exec_request {
	uint32_t id;
	uint32_t flags; /* enum init_exec_flag; INIT_SCRIPT is set from script_fd */
	const char *cwd;
	const char *const *argv; /* NULL-terminated */
	const char *const *envp; /* NULL-terminated */
	const char *script_path; /* in the cell; with script_fd */
	int script_fd;     /* -1, or a descriptor whose content is written there first; borrowed */
	int stdio[3];      /* the cell's ends; borrowed; ignored with INIT_TTY, INIT_CONTROL and
			      INIT_PIPES */
	uint32_t uid, gid; /* not 0 */
	uint16_t rows, cols;
};

/* init_exec() - Ask for a command. The answer comes as INIT_STARTED or INIT_FAILED. */
int init_exec(int channel, const struct exec_request *x, struct err *e);

/* init_go() - Let a command that was asked for with INIT_HOLD, and is held, execute. */
int init_go(int channel, uint32_t id, struct err *e);

/* init_signal() - @id for a command, @pid for INIT_TARGET_PID_GROUP. */
int init_signal(int channel, uint32_t id, enum init_target target, int pid, int signo,
		struct err *e);

/*
 * init_signal_others() - To the process groups of all commands but @spare, at most INIT_SPARE_MAX
 * of them; zeros are ignored.
 */
int init_signal_others(int channel, const uint32_t *spare, size_t n, int signo, struct err *e);

/* init_disk() - Ask for the use of the writable layer. The answer comes as INIT_DISK with @id. */
int init_disk(int channel, uint32_t id, struct err *e);

/*
 * init_connect() - Ask for a connection to @port of the cell's loopback; @family: 4 or 6. The
 * answer comes as INIT_CONNECTED, with a socket that may still be connecting, or as INIT_FAILED.
 */
int init_connect(int channel, uint32_t id, uint32_t port, uint32_t family, struct err *e);

/* init_listen() - Ask for a socket of the cell's network for the gate. Answered as init_connect()
 * is. */
int init_listen(int channel, uint32_t id, enum init_listen_kind kind, uint32_t port, struct err *e);

/*
 * init_recv() - The next message.
 * @ret_fds: descriptors that came with it, @ret_n of them; the caller's
 * Return: 1, 0 when the cell is gone, -EAGAIN on a non-blocking channel, or another -errno.
 */
int init_recv(int channel, struct init_msg *ret, int ret_fds[INIT_FDS_MAX], size_t *ret_n,
	      struct err *e);

/* init_explain() - A message for a failed start. Return: the exit code that a shell would give. */
int init_explain(const struct init_failed *f, const char *program, const char *cwd, struct err *e);

#endif
