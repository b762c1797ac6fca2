/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - caisson-image: the store of images. `caisson image VERB` becomes this program.
 *
 * A new verb is a row here and a file in this directory.
 */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "client/fail.h"
#include "image/verbs.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage, *help;
} verbs[] = {
	{ "pull", verb_pull, "pull REF", "bring an image from its registry" },
	{ "import", verb_import, "import PATH [--name REF]",
	  "an OCI layout, or what 'docker save' wrote" },
	{ "build", verb_build, "build [NAME]",
	  "python, numpy, node and more, from Debian packages" },
	{ "ls", verb_ls, "ls", "what is in the store" },
	{ "inspect", verb_inspect, "inspect REF", "one image: layers, environment, command" },
	{ "verify", verb_verify, "verify [REF...]", "whether layers still are what was unpacked" },
	{ "rm", verb_rm, "rm REF...", "forget references, and remove what only they meant" },
	{ "prune", verb_prune, "prune [--all]", "remove what no reference means and nobody uses" },
};

static int help(FILE *out)
{
	(void)fprintf(
		out,
		"caisson image VERB: images that cells can be made of, in a store on this machine.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		(void)fprintf(out, "  caisson image %-28s %s\n", verbs[i].usage, verbs[i].help);
	(void)fprintf(
		out,
		"\n  caisson image VERB --help                  the options of a verb\n"
		"\nExit code: 0; 4 the registry or --allow refuses, 5 no such image, 6 in use, 7 damaged or refused,\n"
		"8 the registry can not be reached, 125 used wrongly, 1 anything else.\n");
	return out == stdout ? 0 : EXIT_CAISSON;
}

int main(int argc, char **argv)
{
	struct err e;

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		return help(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help(stdout);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, argv[1]) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	(void)err_say(&e, -22, "unknown verb 'image %.40s'; 'caisson image --help' lists them",
		      argv[1]);
	return verb_fail(&e, 0, EXIT_CAISSON);
}
