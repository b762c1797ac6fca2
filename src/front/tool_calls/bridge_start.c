/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bridge_start.c - Start caisson-bridge, before the jail.
 *
 * It gets our environment, because configurations refer to variables of it, and of our descriptors one socket and
 * stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "client/program.h"
#include "front/support/config.h"
#include "front/tool_calls/bridge_link.h"
#include "wire/bridge.h"

#define BRIDGE_NAME "caisson-bridge"

bool bridge_wanted(const struct config *c)
{
	return c->mcp_configs[0] || c->mcp_discover;
}

/* argv of it: posix_spawn() does not write to what it is given. */
static void arguments(const struct config *c, const char **argv)
{
	/* Level and format, by their first letters. */
	static const char *const logs[][2] = {
		{ "dt", "dj" }, { "it", "ij" }, { "wt", "wj" }, { "et", "ej" }
	};

	*argv++ = BRIDGE_NAME;
	for (size_t i = 0; c->mcp_configs[i]; i++) {
		*argv++ = "--config";
		*argv++ = c->mcp_configs[i];
	}
	if (c->mcp_discover)
		*argv++ = "--discover";
	if (c->mcp_user) {
		*argv++ = "--user";
		*argv++ = c->mcp_user;
	}
	*argv++ = "--listen";
	*argv++ = c->listen;
	*argv++ = "--log";
	*argv++ = logs[c->log_level][c->log_json];
	*argv = NULL;
}

static int spawn(const char *path, const char **argv, int theirs, struct err *e)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t usual, none;
	pid_t pid;

	(void)sigfillset(&usual);
	(void)sigemptyset(&none);
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &usual);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	/* A different number, so that the copy loses close-on-exec. */
	(void)posix_spawn_file_actions_adddup2(&actions, theirs, BRIDGE_FD);
	(void)posix_spawn_file_actions_addclosefrom_np(&actions, BRIDGE_FD + 1);
	int r = posix_spawn(&pid, path, &actions, &attr, (char **)(uintptr_t)argv, environ);

	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attr);
	return r ? err_set(e, -r, "start %s", path) : 0;
}

int bridge_start(const struct config *c, struct err *e)
{
	const char *argv[2 * CONFIG_LIST_MAX + 8];
	char path[4096];
	int pair[2];
	int r = program_find(BRIDGE_NAME, path, sizeof(path), e);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "socketpair");
	_fd_ int ours = pair[0];
	_fd_ int theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, BRIDGE_FD + 1);

	fd_close(pair[1]);
	if (theirs < 0)
		return err_set(e, -errno, "socketpair");
	arguments(c, argv);
	r = spawn(path, argv, theirs, e);
	return r < 0 ? r : TAKE_FD(ours);
}
