/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_command.h - Start one command in the cell, with nothing that was not declared.
 */
#ifndef CAISSON_INIT_INIT_COMMAND_H
#define CAISSON_INIT_INIT_COMMAND_H

#include <stdint.h>
#include <sys/types.h>

#include "init/blob.h"
#include "wire/init.h"

struct files_call;

/* A request, unpacked: pointers go into the mapped blob. */
struct command {
	uint32_t flags;
	uint16_t rows, cols;
	uint32_t uid, gid;
	const char *cwd;
	const char *script_path;
	char **argv, **envp;
	int script_fd;
	int stdio[3]; /* all -1 with INIT_TTY, INIT_CONTROL, INIT_PIPES and files */
	struct blob blob;
	char **vectors;                 /* one allocation for argv and envp */
	const struct files_call *files; /* not NULL: this instead of a program; borrowed */
};

/*
 * command_unpack() - Check a request and find its strings.
 * @fds: as they came with the message; ownership moves to the command, also on failure
 *
 * Return: 0, or a positive errno for INIT_STAGE_REQUEST. command_free() in either case.
 */
int command_unpack(const struct init_exec *x, const int *fds, size_t n_fds, struct command *ret);

void command_free(struct command *c);

struct command_start {
	pid_t pid;
	int fds[INIT_FDS_MAX]; /* for the client; owned by the caller */
	size_t n_fds;
	struct init_failed failed;
};

/*
 * command_start() - Fork and execute. 0, or -1 with ret->failed filled and nothing running.
 * @held: with INIT_HOLD, called when the child stands before execve; it goes on when this returns
 */
int command_start(const struct command *c, const struct init_config *config,
		  void (*held)(uint32_t id, pid_t pid), uint32_t id, struct command_start *ret);

/*
 * command_shed() - For a child of init: become @uid, without groups and capabilities.
 * Return: 0 or a positive errno; the child must then end.
 */
int command_shed(uint32_t uid, uint32_t gid, const struct init_config *config);

#endif
