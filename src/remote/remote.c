/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - caisson-remote: the verbs that need a daemon, or what a daemon left.
 *
 * `caisson VERB` becomes this program for them (src/cli/serve.c). argv[0] is the verb. A new one is
 * a row here, a row in src/cli/caisson.c, and a file in this directory.
 */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "remote/verbs.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{ "approve", verb_approve }, { "audit", verb_audit }, { "cp", verb_cp },
	{ "create", verb_create },   { "exec", verb_exec },   { "install", verb_install },
	{ "kill", verb_kill },       { "logs", verb_logs },   { "mcp", verb_mcp },
	{ "net", verb_net },         { "port", verb_port },   { "ps", verb_ps },
	{ "rm", verb_rm },           { "run", verb_run },     { "shell", verb_shell },
	{ "stop", verb_stop },       { "top", verb_top },     { "workspace", verb_workspace },
};

/* A request without one of its members is another request: who can not build it ends, before it is
 * sent. */
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
	/* How wide a character is, whatever the caller's locale: text is UTF-8 here. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	if (argc > 0)
		for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
			if (strcmp(verbs[i].name, argv[0]) == 0)
				return verbs[i].run(argc, argv);
	(void)err_say(&e, -2,
		      "caisson-remote is started by caisson: 'caisson --help' lists its verbs");
	return verb_fail(&e, 0, EXIT_CAISSON);
}
