/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - caisson-remote: the verbs that need a daemon, or the files of one.
 *
 * `caisson VERB` becomes this program for them (src/cli/caisson.c). argv[0] is the verb. A new verb
 * is a row here, a row in src/cli/caisson.c, and a function in a file of this directory.
 */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "client/fail.h"
#include "remote/verb.h"

static const struct verb verbs[] = {
	{ "approve", OPT_APPROVE, "approve [ls | ID] [--deny] [--reason TEXT]",
	  "Without ID: lists the tool calls of code in your sandboxes that wait for a person.\n"
	  "With ID, or the beginning of one: approves that call, once; with --deny, denies it. A\n"
	  "call without a decision in time is denied.\n",
	  0, 1, false, remote_approve },
	{ "cp", OPT_CP, "cp [-r] SRC DST",
	  "Copies a file, or with -r a directory, into or out of a sandbox. One side is\n"
	  "NAME:PATH; a relative PATH is below /workspace. '-' is standard input or output.\n",
	  2, 2, false, remote_cp },
	{ "create", OPT_CREATE, "create [NAME] [OPTIONS]",
	  "Makes a sandbox that keeps files and variables under NAME until it is removed or was\n"
	  "idle for too long (--idle), and prints its name. Succeeds if the sandbox exists with\n"
	  "the same options. Without NAME it gets a new one.\n",
	  0, 1, true, remote_create },
	{ "exec", OPT_EXEC, "exec --name NAME [OPTIONS] -- PROGRAM [ARGS...]",
	  "Runs a program in a sandbox, without a shell. Its output arrives while it runs, byte\n"
	  "for byte; the exit code is the program's. Without --name: runs it in a fresh cell on\n"
	  "this machine.\n",
	  1, -1, false, remote_exec },
	{ "install", OPT_INSTALL, "install NAME [PACKAGE...] [--lang LANG] [--upgrade]",
	  "Installs packages from the daemon's index into the sandbox NAME. A PACKAGE is a name\n"
	  "with optional versions, as in numpy or 'requests>=2,<3'. Code can import them at once.\n"
	  "Without PACKAGE: lists the installed packages, and those of the image that they use.\n",
	  1, -1, true, remote_install },
	{ "kill", OPT_KILL, "kill NAME...",
	  "Ends everything in the sandbox at once and keeps the name as stopped. Its variables\n"
	  "and files are lost.\n",
	  1, -1, false, remote_kill },
	{ "logs", OPT_LOGS, "logs [-f] [--tail N] NAME",
	  "Shows the latest output of code and commands in the sandbox (the last 64 KiB), byte\n"
	  "for byte. With -f: continues until the sandbox ends.\n",
	  1, 1, true, remote_logs },
	{ "mcp", OPT_MCP, "mcp [OPTIONS] [-- SERVE OPTIONS]",
	  "Speaks the Model Context Protocol on standard input and output, one message per line.\n"
	  "Uses the running daemon. If no daemon runs, or if -- is given, starts a private one,\n"
	  "which ends with it. Arguments after -- are its options ('caisson serve'), as in:\n"
	  "caisson mcp -- --memory 1G\n",
	  0, -1, false, remote_mcp },
	{ "net", OPT_NET, "net NAME [--egress HOST]...",
	  "Shows the outgoing connections of a sandbox, the names that it looked up, the last\n"
	  "refused attempts, and the number of bytes. With --egress: from now on the sandbox may\n"
	  "reach only these hosts; 'none' means no hosts.\n",
	  1, 1, true, remote_net },
	{ "port", OPT_PORT, "port NAME [PORT] [--listen [ADDRESS:]PORT | --close]",
	  "Opens a port of the sandbox and prints its URL at the daemon. Everybody who has the\n"
	  "URL can use it. With --listen: forwards a local port to it, for any protocol over TCP.\n"
	  "Without PORT: lists the open ports.\n",
	  1, 2, true, remote_port },
	{ "ps", OPT_PS, "ps [-a] [--label KEY=VALUE] [OPTIONS]",
	  "Lists your running sandboxes; with -a: also those that are stopped or lost.\n", 0, 0,
	  false, remote_ps },
	{ "report", OPT_REPORT, "doctor", "For 'caisson doctor'.\n", 0, 0, false, remote_report },
	{ "rm", OPT_RM, "rm [-f] NAME...",
	  "Removes sandboxes, with everything that runs in them and all their files.\n", 1, -1,
	  false, remote_rm },
	{ "run", OPT_RUN, "run --name NAME [OPTIONS] CODE|FILE|-",
	  "Runs code in the interpreter of a sandbox, which keeps variables. Prints the value of\n"
	  "the last expression. Without --name: runs the code in a fresh cell on this machine.\n",
	  0, -1, false, remote_run },
	{ "shell", OPT_SHELL, "shell NAME [OPTIONS] [-- PROGRAM ARGS...]",
	  "Opens a shell (/bin/bash, or PROGRAM) in a sandbox, on a terminal of its own. The\n"
	  "exit code is the shell's.\n",
	  1, -1, true, remote_shell },
	{ "stop", OPT_STOP, "stop [--grace TIME] NAME...",
	  "Sends SIGTERM to everything in the sandbox, ends the rest by force after a grace\n"
	  "period, and keeps the name as stopped. Its variables and files are lost.\n",
	  1, -1, false, remote_stop },
	{ "top", OPT_TOP, "top [-a] [--label KEY=VALUE] [OPTIONS]",
	  "Shows the sandboxes and their resource usage once a second; q quits. Without a\n"
	  "terminal, or with --json: prints once.\n",
	  0, 0, false, remote_top },
};

/* A request without one of its members would be another request, so no memory ends the program. */
static void *must(size_t n)
{
	void *p = malloc(n);
	struct err e;

	if (!p) {
		(void)err_set(&e, -ENOMEM, "ask the daemon");
		exit(verb_fail(&e, 0, EXIT_CAISSON));
	}
	return p;
}

int main(int argc, char **argv)
{
	struct err e;

	json_set_alloc_funcs(must, free);
	/* For the width of characters: text is UTF-8 here, whatever the caller's locale. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	if (argc > 0 && strcmp(argv[0], "audit") == 0)
		return audit_main(argc, argv);
	if (argc > 0 && strcmp(argv[0], "workspace") == 0)
		return workspace_main(argc, argv);
	for (size_t i = 0; argc > 0 && i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, argv[0]) == 0)
			return session_run(&verbs[i], argc, argv);
	(void)err_say(&e, -ENOENT,
		      "caisson-remote is started by caisson: 'caisson --help' lists its verbs");
	return verb_fail(&e, 0, EXIT_CAISSON);
}
