/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_options.c - The options of `caisson run`, `exec` and `doctor`.
 *
 * The table below is read by base/options.c. Ranges of a cell's limits are not in it: spec_check()
 * has them, for the daemon too, and its messages name the option.
 */
#include "cli/run_options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "cell/spec.h"
#include "image/ref.h"

#define DAY_MS (24ull * 3600 * 1000)
#define CAPTURE_MAX (64ull << 20)

/* ---- values with a form of their own ------------------------------------------------------- */

static int check_workdir(const char *v, struct err *e)
{
	if (strcmp(v, "/") == 0 || spec_path_normal(v, CELL_DST_MAX))
		return 0;
	return err_say(
		e, -EINVAL,
		"must be an absolute path in the cell, without '.', '..' or a trailing slash");
}

static int check_pull(const char *v, struct err *e)
{
	return strcmp(v, "missing") == 0 || strcmp(v, "never") == 0 ?
		       0 :
		       err_say(e, -EINVAL, "must be missing or never");
}

/* UID or UID:GID, numbers only: a name would be looked up in a file that the image brings. */
static int set_user(void *target, const char *v, struct err *e)
{
	struct run_options *o = target;
	char uid[16];
	const char *colon = strchr(v, ':');
	size_t n = colon ? (size_t)(colon - v) : strlen(v);
	uint64_t u, g;

	if (n >= sizeof(uid))
		return err_say(e, -EINVAL, "must be UID or UID:GID, numbers from 1 to 65535");
	memcpy(uid, v, n);
	uid[n] = '\0';
	if (num_parse_u64(uid, 1, 65535, &u, NULL) < 0 ||
	    num_parse_u64(colon ? colon + 1 : uid, 1, 65535, &g, NULL) < 0)
		return err_say(e, -EINVAL, "must be UID or UID:GID, numbers from 1 to 65535");
	o->uid = (uint32_t)u;
	o->gid = (uint32_t)g;
	return 0;
}

static int set_image(void *target, const char *v, struct err *e)
{
	struct run_options *o = target;
	bool dir = strncmp(v, "dir:", 4) == 0;
	struct ref ref;

	if (!*v || (dir && !v[4]))
		return err_say(e, -EINVAL,
			       "must be host, dir:PATH, or the name of a pulled image, as in "
			       "python:3.11-slim");
	o->image_path = o->image_ref = NULL;
	o->spec.n_layers = 0;
	if (strcmp(v, "host") == 0) {
		o->spec.image = CELL_IMAGE_HOST;
	} else if (dir) {
		o->spec.image = CELL_IMAGE_DIR;
		o->image_path = v + 4;
	} else if (ref_parse(v, &ref, e) < 0) {
		return -EINVAL;
	} else {
		o->spec.image = CELL_IMAGE_LAYERS;
		o->spec.n_layers = 1; /* until it is opened */
		o->image_ref = v;
	}
	return 0;
}

/* SRC:DST[:ro|rw], split from the right so that SRC may hold colons. */
static int set_mount(void *target, const char *v, struct err *e)
{
	struct run_options *o = target;
	uint32_t n = o->spec.n_mounts;

	if (n == CELL_MOUNTS_MAX)
		return err_say(e, -EINVAL, "at most %d mounts", CELL_MOUNTS_MAX);
	struct cell_mount *m = &o->spec.mounts[n];
	char *src = options_own(&o->parsed, v, strlen(v));

	if (!src)
		return err_set(e, -ENOMEM, "store the value");
	o->spec.n_mounts++;
	size_t len = strlen(src);

	m->flags = 0;
	if (len > 3 && (strcmp(src + len - 3, ":rw") == 0 || strcmp(src + len - 3, ":ro") == 0)) {
		m->flags = src[len - 1] == 'w' ? CELL_MOUNT_RW : 0u;
		src[len - 3] = '\0';
	}
	char *colon = strrchr(src, ':');

	if (!colon || colon == src || !colon[1])
		return err_say(e, -EINVAL, "must be SRC:DST or SRC:DST:rw, as in ./data:/data");
	*colon = '\0';
	if (!spec_path_normal(colon + 1, CELL_DST_MAX))
		return err_say(
			e, -EINVAL,
			"'%s': DST must be an absolute path in the cell without '.', '..' or a "
			"trailing slash; the mode after it is ro or rw",
			colon + 1);
	memcpy(m->dst, colon + 1, strlen(colon + 1) + 1);
	o->mount_src[n] = src;
	return 0;
}

static int set_without(void *target, const char *v, struct err *e)
{
	struct run_options *o = target;

	return spec_without(v, &o->spec.without, e);
}

static int set_oom(void *target, const char *v, struct err *e)
{
	struct run_options *o = target;

	if (strcmp(v, "process") != 0 && strcmp(v, "sandbox") != 0)
		return err_say(e, -EINVAL, "must be process or sandbox");
	o->spec.limits.oom = *v == 'p' ? CELL_OOM_PROCESS : CELL_OOM_CELL;
	return 0;
}

/* run_options_sandbox() leaves a sandbox's options to caisson-remote; this --name came too late. */
static int set_name(void *target, const char *v, struct err *e)
{
	(void)target;
	(void)v;
	return err_say(e, -EINVAL, "must come before the code");
}

/* ---- the table ------------------------------------------------------------------------------ */

#define MIB (UINT64_C(1) << 20)
#define GIB (1024 * MIB)
#define CELLS (VERB_RUN | VERB_EXEC | VERB_DOCTOR)
#define RUNS (VERB_RUN | VERB_EXEC)
#define AT(member) offsetof(struct run_options, member)
#define LIMIT(member) offsetof(struct run_options, spec.limits.member)

static const struct option_row rows[] = {
	{ "--lang", "-l", "LANG", OPTION_STRING, AT(lang), .verbs = VERB_RUN, .env = true,
	  .help = "python (default), bash, javascript or r; without it the suffix of "
		  "a file decides" },
	{ "--code", "-c", "CODE", OPTION_STRING, AT(code), .verbs = VERB_RUN,
	  .help = "run CODE, even if it looks like a file name" },
	{ "--memory", "-m", "SIZE", OPTION_SIZE, LIMIT(memory_bytes), .verbs = CELLS, .env = true,
	  .min = 16 * MIB, .max = 1024 * GIB, .help = "memory of the whole cell (512M)" },
	{ "--oom", NULL, "WHAT", OPTION_CUSTOM, 0, .verbs = RUNS, .env = true, .set = set_oom,
	  .help = "what ends when memory is used up: process (the largest; default) or sandbox" },
	{ "--cpus", NULL, "N", OPTION_CPUS, LIMIT(cpu_milli), .verbs = CELLS, .env = true,
	  .help = "processors that the cell may use, as in 0.5 (1)" },
	{ "--pids", NULL, "N", OPTION_NUMBER, LIMIT(pids), .verbs = CELLS, .env = true, .min = 1,
	  .max = 32768, .help = "processes and threads (128)" },
	{ "--timeout", "-t", "TIME", OPTION_DURATION, AT(timeout_ms), .verbs = RUNS, .env = true,
	  .min = 1, .max = DAY_MS, .initial = "30s", .help = "wall time, as in 10, 500ms, 2m" },
	{ "--cpu-time", NULL, "TIME", OPTION_DURATION, LIMIT(cpu_time_ms), .verbs = RUNS,
	  .env = true, .min = 10, .max = DAY_MS, .help = "CPU time of the whole cell (no limit)" },
	{ "--disk", NULL, "SIZE", OPTION_SIZE, LIMIT(disk_bytes), .verbs = CELLS, .env = true,
	  .min = MIB, .max = 1024 * GIB,
	  .help = "size of the writable layer, which is kept in memory (1G)" },
	{ "--inodes", NULL, "N", OPTION_NUMBER, LIMIT(inodes), .verbs = CELLS, .env = true,
	  .min = 256, .max = 1ull << 32, .help = "files in the writable layer (262144)" },
	{ "--files", NULL, "N", OPTION_NUMBER, LIMIT(files), .verbs = CELLS, .env = true, .min = 16,
	  .max = 1048576, .help = "open files per process (1024)" },
	{ "--max-output", NULL, "SIZE", OPTION_SIZE, AT(max_output), .verbs = RUNS, .env = true,
	  .min = 1, .help = "end the cell after this number of bytes of output (no limit)" },
	{ "--capture", NULL, "CHARS", OPTION_NUMBER, AT(capture_chars), .verbs = RUNS, .env = true,
	  .max = CAPTURE_MAX, .initial = "10000",
	  .help = "with --json: characters kept of each stream" },
	{ "--env", "-e", "NAME=VALUE", OPTION_PAIRS, AT(env), .verbs = RUNS, .max = RUN_ENV_MAX,
	  .help = "set an environment variable in the cell; may be repeated" },
	{ "--mount", "-v", "SRC:DST[:rw]", OPTION_CUSTOM, 0, .verbs = RUNS, .set = set_mount,
	  .help = "show a file or directory in the cell, read-only unless :rw; may be repeated" },
	{ "--workdir", "-w", "DIR", OPTION_TEXT, AT(workdir), .verbs = RUNS, .env = true,
	  .check = check_workdir, .help = "working directory in the cell (/workspace)" },
	{ "--user", "-u", "UID[:GID]", OPTION_CUSTOM, 0, .verbs = RUNS, .env = true,
	  .set = set_user, .help = "user that runs the program in the cell (1000:1000)" },
	{ "--image", NULL, "IMAGE", OPTION_CUSTOM, 0, .verbs = CELLS, .env = true, .set = set_image,
	  .help = "host (default), a pulled image as in python:3.11-slim, or dir:PATH" },
	{ "--image-store", NULL, "DIR", OPTION_TEXT, AT(image_store), .verbs = CELLS, .env = true,
	  .help = "directory of pulled images (as for caisson image)" },
	{ "--image-pull", NULL, "WHEN", OPTION_TEXT, AT(image_pull), .verbs = RUNS, .env = true,
	  .check = check_pull, .initial = "missing",
	  .help = "pull an image that is not there: missing (default) or never" },
	{ "--name", NULL, "NAME", OPTION_CUSTOM, 0, .verbs = RUNS, .set = set_name,
	  .help = "run in this sandbox of a daemon; --name NAME --help lists the options "
		  "for that" },
	{ "--tty", NULL, NULL, OPTION_FLAG, AT(tty), .verbs = RUNS,
	  .help = "run on a terminal that belongs to the cell" },
	{ "--json", NULL, NULL, OPTION_FLAG, AT(json), .verbs = CELLS, .env = true,
	  .help = "print one result object instead of streaming" },
	{ "--receipt", NULL, NULL, OPTION_FLAG, AT(receipt), .verbs = RUNS, .env = true,
	  .help = "show which layers are in force, read from the running cell" },
	{ "--without", NULL, "LAYER", OPTION_CUSTOM, 0, .verbs = CELLS, .env = true,
	  .set = set_without,
	  .help = "run without a layer: seccomp, landlock or cgroup; makes isolation weaker" },
	{ "--state", NULL, "DIR", OPTION_PATH, AT(state), .verbs = CELLS, .env = true,
	  .help = "directory of the journal of live cells" },
};

static struct options table(enum run_verb verb)
{
	return (struct options){
		.rows = rows,
		.n_rows = ARRAY_SIZE(rows),
		.verb = verb,
		.command = verb == VERB_RUN  ? "caisson run" :
			   verb == VERB_EXEC ? "caisson exec" :
					       "caisson doctor",
		.env = environ,
		.stop = true,
	};
}

bool run_options_sandbox(enum run_verb verb, int argc, char **argv)
{
	struct options p = table(verb);

	return options_has(&p, argc, argv, "--name");
}

static int agree(const struct run_options *o, struct err *e)
{
	if (spec_check(&o->spec, e) < 0)
		return -EINVAL;
	if (options_given(&o->parsed, "--cpus") && o->spec.without & CELL_WITHOUT_CGROUP)
		return err_say(e, -EINVAL, "--cpus: cannot be enforced with --without cgroup");
	if (o->tty && o->json)
		return err_say(
			e, -EINVAL,
			"--tty and --json do not go together: a terminal has no separate streams");
	return 0;
}

int run_options_parse(enum run_verb verb, int argc, char **argv, struct run_options *ret,
		      struct err *e)
{
	struct run_options *o = ret;

	memset(o, 0, sizeof(*o));
	o->parsed = table(verb);
	o->parsed.target = o;
	spec_default(&o->spec);
	o->uid = CELL_UID;
	o->gid = CELL_GID;
	int r = options_parse(&o->parsed, argc, argv, e);

	if (r == 0)
		r = agree(o, e);
	/* A caller that asked for JSON gets the failure as JSON, wherever the word stands. */
	if (r < 0)
		o->json |= options_has_word(argc, argv, "--json");
	return r < 0 ? -EINVAL : r;
}

void run_options_help(enum run_verb verb, FILE *out)
{
	struct options p = table(verb);

	options_help(&p, 0, out);
}
