/* SPDX-License-Identifier: Apache-2.0 */
/* caisson.c - The command: a table of verbs, and the help that comes from it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/verbs.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage, *help;
} verbs[] = {
	{ "run", verb_run, "caisson run [OPTIONS] CODE|FILE|- [ARGS...]",
	  "run code in a fresh cell" },
	{ "exec", verb_exec, "caisson exec [OPTIONS] -- PROGRAM [ARGS...]",
	  "run any program in a fresh cell" },
	{ "serve", verb_serve, "caisson serve [OPTIONS]",
	  "HTTP daemon with warm, stateful interpreters" },
	{ "doctor", verb_doctor, "caisson doctor [--json]",
	  "say what this machine enforces, and what is missing" },
};

static int help(FILE *out)
{
	(void)fprintf(out, "caisson runs code that nobody has read, in sealed cells.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		(void)fprintf(out, "  %-48s %s\n", verbs[i].usage, verbs[i].help);
	(void)fprintf(out, "  %-48s %s\n", "caisson VERB --help", "the options of a verb");
	(void)fprintf(
		out,
		"\nExit code: the program's own; 128+n after signal n; 124 time limit; 137 memory or output\n"
		"limit; 125 caisson itself failed; 126 not executable; 127 not found.\n");
	return out == stdout ? 0 : EXIT_CAISSON;
}

/* One line, whatever is in it: a message may quote what somebody typed or named a file. */
static void print_line(const char *msg)
{
	char line[4 * sizeof(((struct err *)0)->msg) + 1];
	size_t n = 0;

	for (const unsigned char *p = (const unsigned char *)msg; *p && n + 5 < sizeof(line); p++) {
		if (*p < 0x20 || *p == 0x7f)
			n += (size_t)snprintf(line + n, sizeof(line) - n, "\\x%02x", *p);
		else
			line[n++] = (char)*p;
	}
	line[n] = '\0';
	(void)fprintf(stderr, "caisson: %s\n", line);
}

int verb_fail(const struct err *e, int json, int exit_code)
{
	if (json) {
		_buf_ struct buf b = BUF_INIT(16384);
		struct json j;

		json_init(&j, &b);
		json_object_begin(&j);
		json_member_str(&j, "status", "failed");
		json_member_int(&j, "exit_code", exit_code);
		json_key(&j, "error");
		json_object_begin(&j);
		json_member_str(&j, "code",
				strerrorname_np(-e->code) ? strerrorname_np(-e->code) : "EIO");
		json_member_str(&j, "message", e->msg);
		json_member_str(&j, "hint",
				e->code == -EINVAL ? "caisson VERB --help lists the options" :
						     "caisson doctor says what is missing here");
		json_object_end(&j);
		json_object_end(&j);
		if (json_finish(&j) == 0)
			(void)printf("%s\n", buf_str(&b));
	} else {
		print_line(e->msg);
	}
	return exit_code;
}

/* Whoever started us may have closed them; a descriptor of ours must not become "stdout". */
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
			return verbs[i].run(verb_argc, verb_argv);
	struct err e;

	(void)err_say(&e, -2, "unknown verb '%s'; 'caisson --help' lists them", name);
	return verb_fail(&e, 0, EXIT_CAISSON);
}
