/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bridge_start.c - Start caisson-bridge, before the jail.
 *
 * It gets our environment, because configurations refer to variables of it, and of our descriptors
 * one socket and stderr.
 */
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "base/err.h"
#include "base/spawn.h"
#include "client/program.h"
#include "front/support/config.h"
#include "front/tool_calls/bridge_link.h"
#include "wire/bridge.h"

#define BRIDGE_NAME "caisson-bridge"

bool bridge_wanted(const struct config *c)
{
	return c->mcp_configs[0] || c->mcp_discover;
}

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

int bridge_start(const struct config *c, struct err *e)
{
	const char *argv[2 * CONFIG_LIST_MAX + 8];
	sigset_t all;
	struct spawn s = { .argv = (char **)(uintptr_t)argv,
			   .envp = environ,
			   .no_input = true,
			   .no_output = true,
			   .own_group = true,
			   .unignored = &all };

	(void)sigfillset(&all);
	arguments(c, argv);
	return program_start(&s, BRIDGE_FD, NULL, e);
}
