/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caisson.c - The command: a table of verbs, and the help that comes from it.
 *
 * Some verbs are programs of their own: they need libraries (HTTP, TLS, JSON) that the static
 * command does not, and that would make `caisson run` start later. These programs have their own
 * options, also for --help (src/front/support/config.c, src/remote, src/image).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/near.h"
#include "cli/prepare.h"
#include "client/fail.h"

#define REMOTE "caisson-remote"

enum group { RUN_HERE, DAEMON, SANDBOXES, GROUP_MAX_ };

static const char *const titles[] = {
	[RUN_HERE] = "Run here, in a fresh cell:",
	[DAEMON] = "The daemon and this machine:",
	[SANDBOXES] = "Sandboxes of a daemon, which keep files and variables under a name:",
};
_Static_assert(ARRAY_SIZE(titles) == GROUP_MAX_, "titles[] vs enum group");

static const struct verb {
	enum group group;
	const char *name;
	int (*run)(int argc, char **argv); /* NULL: */
	const char *program;               /* the one that this becomes */
	const char *usage, *help;
} verbs[] = {
	{ RUN_HERE, "run", verb_run, NULL, "caisson run [OPTIONS] CODE|FILE|- [ARGS...]",
	  "run code in a fresh cell" },
	{ RUN_HERE, "exec", verb_exec, NULL, "caisson exec [OPTIONS] -- PROGRAM [ARGS...]",
	  "run any program in a fresh cell" },
	{ DAEMON, "serve", verb_serve, NULL, "caisson serve [OPTIONS]",
	  "start the HTTP daemon, with warm interpreters" },
	{ DAEMON, "mcp", NULL, REMOTE, "caisson mcp [OPTIONS] [-- SERVE OPTIONS]",
	  "offer tools to models: MCP on standard streams" },
	{ DAEMON, "audit", NULL, REMOTE, "caisson audit ls|verify [OPTIONS]",
	  "show the audit log, or check its hash chain" },
	{ DAEMON, "approve", NULL, REMOTE, "caisson approve [ID] [--deny]",
	  "list, approve or deny waiting tool calls" },
	{ DAEMON, "image", NULL, "caisson-image", "caisson image VERB",
	  "manage images for cells: pull, import, build, ls, ..." },
	{ DAEMON, "policy", NULL, "caisson-front", "caisson policy check FILE [-- SERVE OPTIONS]",
	  "check a policy file as a daemon would" },
	{ DAEMON, "doctor", verb_doctor, NULL, "caisson doctor [--json]",
	  "report what this machine enforces or lacks" },
	{ SANDBOXES, "create", NULL, REMOTE, "caisson create [NAME] [OPTIONS]", "make a sandbox" },
	{ SANDBOXES, "run", verb_run, NULL, "caisson run --name NAME CODE|FILE|-",
	  "run code in its interpreter, which keeps variables" },
	{ SANDBOXES, "exec", verb_exec, NULL, "caisson exec --name NAME -- PROGRAM [ARGS...]",
	  "run any program in it" },
	{ SANDBOXES, "shell", NULL, REMOTE, "caisson shell NAME",
	  "open an interactive shell in it" },
	{ SANDBOXES, "cp", NULL, REMOTE, "caisson cp [-r] SRC DST",
	  "copy files; NAME:PATH is in a sandbox" },
	{ SANDBOXES, "install", NULL, REMOTE, "caisson install NAME [PACKAGE...]",
	  "install packages from the daemon's index" },
	{ SANDBOXES, "ps", NULL, REMOTE, "caisson ps [-a]", "list sandboxes" },
	{ SANDBOXES, "top", NULL, REMOTE, "caisson top", "show their resource usage, live" },
	{ SANDBOXES, "logs", NULL, REMOTE, "caisson logs [-f] NAME", "show its latest output" },
	{ SANDBOXES, "port", NULL, REMOTE, "caisson port NAME PORT",
	  "open a port of it and print the URL" },
	{ SANDBOXES, "net", NULL, REMOTE, "caisson net NAME",
	  "show its connections, or set its allowed hosts" },
	{ SANDBOXES, "workspace", NULL, REMOTE, "caisson workspace VERB",
	  "manage directories that outlive sandboxes" },
	{ SANDBOXES, "stop", NULL, REMOTE, "caisson stop NAME...",
	  "end its programs, keep the name" },
	{ SANDBOXES, "kill", NULL, REMOTE, "caisson kill NAME...",
	  "end its programs at once, keep the name" },
	{ SANDBOXES, "rm", NULL, REMOTE, "caisson rm NAME...", "remove it with all its files" },
};

/* Names of them in other tools. */
static const struct {
	const char *word, *verb;
} others[] = {
	{ "attach", "shell" },     { "copy", "cp" },         { "daemon", "serve" },
	{ "delete", "rm" },        { "destroy", "rm" },      { "download", "cp" },
	{ "health", "doctor" },    { "images", "image ls" }, { "info", "doctor" },
	{ "list", "ps" },          { "log", "logs" },        { "ls", "ps" },
	{ "network", "net" },      { "new", "create" },      { "pip", "install" },
	{ "ports", "port" },       { "pull", "image pull" }, { "remove", "rm" },
	{ "repl", "shell" },       { "sandboxes", "ps" },    { "server", "serve" },
	{ "sessions", "ps" },      { "ssh", "shell" },       { "start", "create" },
	{ "stats", "top" },        { "status", "doctor" },   { "terminate", "kill" },
	{ "up", "serve" },         { "upload", "cp" },       { "version", "--version" },
	{ "volume", "workspace" },
};

static int help(FILE *out)
{
	(void)fprintf(out, "caisson runs untrusted code in sealed cells.\n");
	for (int g = 0; g < GROUP_MAX_; g++) {
		(void)fprintf(out, "\n%s\n", titles[g]);
		for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
			if ((int)verbs[i].group == g)
				(void)fprintf(out, "  %-48s %s\n", verbs[i].usage, verbs[i].help);
	}
	(void)fprintf(out, "\n  %-48s %s\n", "caisson VERB --help", "the options of a verb");
	(void)fprintf(
		out,
		"\nExit code: the program's own; 128+n after signal n; 124 time limit; 137 memory\n"
		"or output limit; 125 caisson itself failed; 126 not executable; 127 not found.\n"
		"Verbs that run nothing: 3 no daemon, 4 not allowed, 5 not found, 6 conflict,\n"
		"7 refused, 8 try later, 1 other.\n");
	return out == stdout ? 0 : EXIT_CAISSON;
}

/* The caller may have closed them; a descriptor of ours must not become "stdout". */
static void open_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
}

int main(int argc, char **argv)
{
	open_stdio();
	(void)signal(SIGCHLD, SIG_DFL); /* ignored, it would leave nothing to wait for */
	if (argc < 2)
		return help(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    (strcmp(argv[1], "help") == 0 && argc == 2))
		return help(stdout);
	if (strcmp(argv[1], "--version") == 0) {
		(void)printf("caisson %s\n", CAISSON_VERSION);
		return 0;
	}
	const char *name = argv[1];
	char help_arg[] = "--help";
	char *help_argv[] = { argv[2], help_arg, NULL };
	char **verb_argv = argv + 1;
	int verb_argc = argc - 1;

	if (strcmp(name, "help") == 0) {
		name = argv[2];
		verb_argv = help_argv;
		verb_argc = 2;
	}
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return verbs[i].run ? verbs[i].run(verb_argc, verb_argv) :
					      become(verbs[i].program, verb_argv);
	struct near n = near_word(name, strlen(name));
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		near_try(&n, verbs[i].name);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcmp(others[i].word, name) == 0)
			n.found = others[i].verb;
	(void)err_say(&e, -2, "unknown verb '%.80s'%s 'caisson --help' lists them", name,
		      near_hint(&n));
	return verb_fail(&e, 0, EXIT_CAISSON);
}
