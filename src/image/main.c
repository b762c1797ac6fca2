/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - caisson-image: the store of images. `caisson image VERB` becomes this program.
 *
 * A new verb is a row here and a function in a file verb_*.c.
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/options.h"
#include "client/fail.h"
#include "image/verbs.h"

enum {
	PULL = 1 << 0,
	IMPORT = 1 << 1,
	BUILD = 1 << 2,
	LS = 1 << 3,
	INSPECT = 1 << 4,
	VERIFY = 1 << 5,
	RM = 1 << 6,
	PRUNE = 1 << 7,
};

#define AT(member) offsetof(struct image_options, member)

static const struct option_row rows[] = {
	{ "--store", NULL, "DIR", OPTION_TEXT, AT(store), .help = "directory of the image store" },
	{ "--name", NULL, "REF", OPTION_TEXT, AT(name), .verbs = IMPORT,
	  .help = "reference for the image (the one in the archive)" },
	{ "--allow", NULL, "PATTERN,...", OPTION_TEXT, AT(allow), .verbs = PULL | IMPORT,
	  .help = "accept only references that match a pattern; * matches any characters" },
	{ "--authfile", NULL, "FILE", OPTION_TEXT, AT(authfile), .verbs = PULL,
	  .help = "credentials in the format of docker's config.json" },
	{ "--ca", NULL, "FILE", OPTION_TEXT, AT(ca), .verbs = PULL,
	  .help = "CA certificates for the registry, instead of those of the system" },
	{ "--insecure", NULL, NULL, OPTION_FLAG, AT(insecure), .verbs = PULL,
	  .help = "accept any certificate, and plain HTTP, which a registry on this machine "
		  "may always use" },
	{ "--all", NULL, NULL, OPTION_FLAG, AT(all), .verbs = PRUNE,
	  .help = "also remove images that have a reference, if they are not in use" },
	{ "--package", NULL, "NAME,...", OPTION_TEXT, AT(package), .verbs = BUILD,
	  .help = "additional Debian packages" },
	{ "--suite", NULL, "NAME", OPTION_TEXT, AT(suite), .verbs = BUILD,
	  .help = "Debian release (bookworm)" },
	{ "--mirror", NULL, "URL", OPTION_TEXT, AT(mirror), .verbs = BUILD,
	  .help = "Debian mirror" },
	{ "--quiet", NULL, NULL, OPTION_FLAG, AT(quiet), .verbs = PULL | IMPORT | BUILD,
	  .help = "show no progress" },
	{ "--json", NULL, NULL, OPTION_FLAG, AT(json), .help = "print JSON" },
};

static const struct verb {
	const char *name;
	unsigned int bit;
	int min, max; /* how many other arguments; max -1: any number */
	int (*run)(const struct image_options *o, struct store *s, struct err *e);
	const char *usage, *help; /* in the list of verbs */
	const char *text;         /* of --help */
} verbs[] = {
	{ "pull", PULL, 1, 1, verb_pull, "pull REF", "download an image from its registry",
	  "Downloads an image from its registry into the store. REF is a name, as in\n"
	  "python:3.11-slim or registry.example.com/x/y@sha256:... Layers that the store already\n"
	  "has are not downloaded again, and interrupted downloads continue. Prints the canonical\n"
	  "reference and the manifest's digest.\n" },
	{ "import", IMPORT, 1, 1, verb_import, "import PATH [--name REF]",
	  "import an OCI layout, or the output of 'docker save'",
	  "Reads an image from an OCI layout (a directory, or an archive of one) or from the\n"
	  "output of 'docker save' or 'podman save'. Prints the canonical reference and the\n"
	  "manifest's digest.\n" },
	{ "build", BUILD, 0, 1, verb_build, "build [NAME]",
	  "make an image of Debian packages: python, node and more",
	  "Makes an image of Debian packages: python3 with numpy, pandas and matplotlib, node,\n"
	  "git, curl, and those that --package names. Its name is NAME, or\n" IMAGE_BUILD_NAME
	  ". Requires mmdebstrap and a Debian mirror, and takes some minutes. The packages'\n"
	  "scripts run as root of a user namespace, never as root of this machine.\n" },
	{ "ls", LS, 0, 0, verb_ls, "ls", "list the images of the store",
	  "Lists the images of the store.\n" },
	{ "inspect", INSPECT, 1, 1, verb_inspect, "inspect REF",
	  "describe an image: layers, environment, command", "Describes one image, as JSON.\n" },
	{ "verify", VERIFY, 0, -1, verb_verify, "verify [REF...]",
	  "check that layers are unchanged since they were unpacked",
	  "Reads every file of the layers of these images, or of all images, and checks that they\n"
	  "are unchanged since they were unpacked. Stops at the first layer that is changed.\n" },
	{ "rm", RM, 1, -1, verb_rm, "rm REF...",
	  "remove references, and images that only they name",
	  "Removes references, and images and layers that no other reference needs. If one of the\n"
	  "images is in use, nothing is removed.\n" },
	{ "prune", PRUNE, 0, 0, verb_rm, "prune [--all]",
	  "remove images without a reference that are not in use",
	  "Removes images without a reference that are not in use, and unfinished downloads.\n"
	  "With --all: also images with a reference that are not in use.\n" },
};

static int help(FILE *out)
{
	(void)fprintf(out, "caisson image VERB: manage images for cells, in a store on this "
			   "machine.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		(void)fprintf(out, "  caisson image %-28s %s\n", verbs[i].usage, verbs[i].help);
	(void)fprintf(
		out,
		"\n  caisson image VERB --help                  the options of a verb\n"
		"\nExit code: 0; 4 the registry or --allow refuses, 5 no such image, 6 in use, 7\n"
		"damaged or refused, 8 the registry cannot be reached, 125 used wrongly, 1\n"
		"anything else.\n");
	return out == stdout ? 0 : EXIT_CAISSON;
}

static int exit_code(int code)
{
	static const struct {
		int code, exit;
	} codes[] = {
		{ -EINVAL, EXIT_CAISSON }, { -EACCES, 4 }, { -ENOENT, 5 }, { -EBUSY, 6 },
		{ -EBADMSG, 7 },           { -EPERM, 7 },  { -EFBIG, 7 },  { -EHOSTUNREACH, 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].code == code)
			return codes[i].exit;
	return code ? 1 : 0;
}

static int fail(const struct err *e, bool json)
{
	struct err full = *e;

	if (e->code == -ENOSPC || e->code == -EDQUOT)
		(void)err_say(
			&full, e->code,
			"%.380s. The image store's disk is full: free space, for example with "
			"'caisson image prune'",
			e->msg);
	return verb_fail(&full, json, exit_code(e->code));
}

static int run(const struct verb *v, int argc, char **argv)
{
	_mem_ char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	_store_ struct store s = STORE_NONE;
	struct image_options o = { .rest = rest, .prune = v->bit == PRUNE };
	struct err e = { 0 };
	char command[64];
	struct options p = { .rows = rows,
			     .n_rows = ARRAY_SIZE(rows),
			     .verb = v->bit,
			     .command = command,
			     .target = &o,
			     .rest = rest };

	(void)snprintf(command, sizeof(command), "caisson image %s", v->name);
	int r = rest ? options_parse(&p, argc, argv, &e) : err_set(&e, -ENOMEM, "read the options");

	if (r == 1) {
		(void)printf("usage: caisson image %s [OPTIONS]\n\n%s\n", v->usage, v->text);
		options_help(&p, 0, stdout);
		return 0;
	}
	o.n_rest = p.n_rest;
	if (r == 0 && (o.n_rest < v->min || (v->max >= 0 && o.n_rest > v->max)))
		r = err_say(&e, -EINVAL, "usage: caisson image %s", v->usage);
	if (r < 0)
		return fail(&e, o.json || options_has_word(argc, argv, "--json"));
	return v->run(&o, &s, &e) < 0 ? fail(&e, o.json) : 0;
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
			return run(&verbs[i], argc - 1, argv + 1);
	(void)err_say(&e, -EINVAL, "unknown verb 'image %.40s'; 'caisson image --help' lists them",
		      argv[1]);
	return verb_fail(&e, 0, EXIT_CAISSON);
}
