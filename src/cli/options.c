/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - The option table and the parser over it. */
#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/near.h"
#include "base/num.h"
#include "cell/spec.h"
#include "client/state.h"
#include "image/ref.h"

#define TIMEOUT_DEFAULT_MS 30000u
#define TIMEOUT_MAX_MS (24ull * 3600 * 1000)
#define CAPTURE_DEFAULT 10000u
#define CAPTURE_MAX (64ull << 20)

/* ---- one parser per kind of value ---------------------------------------------------------- */

static int set_memory(struct options *o, const char *v, struct err *e)
{
	return num_parse_size(v, &o->spec.limits.memory_bytes, e);
}

static int set_disk(struct options *o, const char *v, struct err *e)
{
	return num_parse_size(v, &o->spec.limits.disk_bytes, e);
}

static int set_cpus(struct options *o, const char *v, struct err *e)
{
	uint64_t milli;
	int r = num_parse_cpus_milli(v, &milli, e);

	o->cpus_given = true;
	if (r == 0)
		o->spec.limits.cpu_milli = milli > UINT32_MAX ? UINT32_MAX : (uint32_t)milli;
	return r;
}

static int set_pids(struct options *o, const char *v, struct err *e)
{
	return num_parse_u64(v, 1, 32768, &o->spec.limits.pids, e);
}

static int set_inodes(struct options *o, const char *v, struct err *e)
{
	return num_parse_u64(v, 256, 1ull << 32, &o->spec.limits.inodes, e);
}

static int set_files(struct options *o, const char *v, struct err *e)
{
	return num_parse_u64(v, 16, 1048576, &o->spec.limits.files, e);
}

static int set_timeout(struct options *o, const char *v, struct err *e)
{
	int r = num_parse_duration_ms(v, &o->timeout_ms, e);

	if (r == 0 && (o->timeout_ms == 0 || o->timeout_ms > TIMEOUT_MAX_MS))
		return err_say(e, -EINVAL, "must be more than 0 and at most 24h");
	return r;
}

static int set_cpu_time(struct options *o, const char *v, struct err *e)
{
	int r = num_parse_duration_ms(v, &o->spec.limits.cpu_time_ms, e);

	if (r == 0 && o->spec.limits.cpu_time_ms == 0)
		return err_say(e, -EINVAL, "must be more than 0");
	return r;
}

static int set_max_output(struct options *o, const char *v, struct err *e)
{
	int r = num_parse_size(v, &o->max_output, e);

	if (r == 0 && o->max_output == 0)
		return err_say(e, -EINVAL, "must be more than 0");
	return r;
}

static int set_capture(struct options *o, const char *v, struct err *e)
{
	return num_parse_u64(v, 0, CAPTURE_MAX, &o->capture_chars, e);
}

static int set_lang(struct options *o, const char *v, struct err *e)
{
	(void)e;
	o->lang = v; /* checked against the languages' own table in lang.c */
	return 0;
}

static int set_code(struct options *o, const char *v, struct err *e)
{
	(void)e;
	o->code = v;
	return 0;
}

static int set_workdir(struct options *o, const char *v, struct err *e)
{
	if (strcmp(v, "/") != 0 && !spec_path_normal(v, CELL_DST_MAX))
		return err_say(
			e, -EINVAL,
			"must be an absolute path in the cell, without '.', '..' or a trailing slash");
	o->workdir = v;
	return 0;
}

static int set_state(struct options *o, const char *v, struct err *e)
{
	if (v[0] != '/')
		return err_say(e, -EINVAL, "must be an absolute path");
	o->state = v;
	return 0;
}

static int set_env(struct options *o, const char *v, struct err *e)
{
	const char *eq = strchr(v, '=');

	if (!eq || eq == v)
		return err_say(e, -EINVAL, "must be NAME=VALUE");
	if (o->n_env == OPTIONS_ENV_MAX)
		return err_say(e, -EINVAL, "at most %d variables", OPTIONS_ENV_MAX);
	o->env[o->n_env++] = v;
	return 0;
}

/* UID or UID:GID, numbers only: a name would be looked up in a file that the image brings. */
static int set_user(struct options *o, const char *v, struct err *e)
{
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
	o->user_given = true;
	return 0;
}

static int set_image(struct options *o, const char *v, struct err *e)
{
	bool dir = strncmp(v, "dir:", 4) == 0;
	struct ref ref;

	if (!*v || (dir && !v[4]))
		return err_say(
			e, -EINVAL,
			"must be host, dir:PATH, or the name of a pulled image, as in python:3.11-slim");
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

static int set_image_store(struct options *o, const char *v, struct err *e)
{
	o->image_store = v;
	return *v ? 0 : err_say(e, -EINVAL, "must name a directory");
}

/* SRC:DST[:ro|rw], split from the right so that SRC may hold colons. */
static int set_mount(struct options *o, const char *v, struct err *e)
{
	uint32_t n = o->spec.n_mounts;

	if (n == CELL_MOUNTS_MAX)
		return err_say(e, -EINVAL, "at most %d mounts", CELL_MOUNTS_MAX);
	struct cell_mount *m = &o->spec.mounts[n];
	char *src = strdup(v);

	if (!src)
		return err_set(e, -ENOMEM, "remember it");
	o->owned[n] = src;
	o->spec.n_mounts++;
	size_t len = strlen(src);

	m->flags = 0;
	if (len > 3 && (strcmp(src + len - 3, ":rw") == 0 || strcmp(src + len - 3, ":ro") == 0)) {
		m->flags = src[len - 1] == 'w' ? CELL_MOUNT_RW : 0u;
		src[len - 3] = '\0';
	}
	char *colon = strrchr(src, ':');

	if (!colon || colon == src || !colon[1])
		return err_say(e, -EINVAL,
			       "must be SOURCE:PLACE or SOURCE:PLACE:rw, as in ./data:/data");
	*colon = '\0';
	if (!spec_path_normal(colon + 1, CELL_DST_MAX))
		return err_say(
			e, -EINVAL,
			"'%s': the place in the cell must be an absolute path without '.', '..' "
			"or a trailing slash; a mode after it is ro or rw",
			colon + 1);
	memcpy(m->dst, colon + 1, strlen(colon + 1) + 1);
	o->mount_src[n] = src;
	return 0;
}

static int set_without(struct options *o, const char *v, struct err *e)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} layers[] = {
		{ "seccomp", CELL_WITHOUT_SECCOMP },
		{ "landlock", CELL_WITHOUT_LANDLOCK },
		{ "cgroup", CELL_WITHOUT_CGROUP },
	};

	while (*v) {
		size_t n = strcspn(v, ","), i = 0;

		while (i < ARRAY_SIZE(layers) &&
		       (strlen(layers[i].name) != n || strncmp(layers[i].name, v, n) != 0))
			i++;
		if (i == ARRAY_SIZE(layers))
			return err_say(
				e, -EINVAL,
				"'%.*s' is no layer that can be given up; there are: seccomp, landlock, cgroup",
				(int)n, v);
		o->spec.without |= layers[i].bit;
		v += n + (v[n] == ',');
	}
	return 0;
}

static int set_json(struct options *o, const char *v, struct err *e)
{
	(void)v;
	(void)e;
	o->json = true;
	return 0;
}

static int set_receipt(struct options *o, const char *v, struct err *e)
{
	(void)v;
	(void)e;
	o->receipt = true;
	return 0;
}

static int set_tty(struct options *o, const char *v, struct err *e)
{
	(void)v;
	(void)e;
	o->tty = true;
	return 0;
}

/* Who names a sandbox is with caisson-remote by now, see options_sandbox(). */
static int set_name(struct options *o, const char *v, struct err *e)
{
	(void)o;
	(void)v;
	return err_say(e, -EINVAL, "must come before the code");
}

/* ---- the table ------------------------------------------------------------------------------ */

#define CELLS (OPTIONS_RUN | OPTIONS_EXEC | OPTIONS_DOCTOR)
#define RUNS (OPTIONS_RUN | OPTIONS_EXEC)

static const struct option_row {
	const char *name, *alias;
	const char *value; /* NULL: a switch */
	const char *env;   /* environment twin */
	unsigned int verbs;
	int (*set)(struct options *o, const char *v, struct err *e);
	const char *help;
} rows[] = {
	{ "--lang", "-l", "LANG", "CAISSON_LANG", OPTIONS_RUN, set_lang,
	  "python (default), bash, javascript or r; a file's suffix decides otherwise" },
	{ "--code", "-c", "CODE", NULL, OPTIONS_RUN, set_code, "run CODE, whatever it looks like" },
	{ "--memory", "-m", "SIZE", "CAISSON_MEMORY", CELLS, set_memory,
	  "memory of the whole cell (512M)" },
	{ "--cpus", NULL, "N", "CAISSON_CPUS", CELLS, set_cpus,
	  "share of processors, as in 0.5 (1)" },
	{ "--pids", NULL, "N", "CAISSON_PIDS", CELLS, set_pids, "processes and threads (128)" },
	{ "--timeout", "-t", "TIME", "CAISSON_TIMEOUT", RUNS, set_timeout,
	  "wall time, as in 10, 500ms, 2m (30s)" },
	{ "--cpu-time", NULL, "TIME", "CAISSON_CPU_TIME", RUNS, set_cpu_time,
	  "cpu time of the whole cell (none)" },
	{ "--disk", NULL, "SIZE", "CAISSON_DISK", CELLS, set_disk,
	  "size of the writable layer, which lives in memory (1G)" },
	{ "--inodes", NULL, "N", "CAISSON_INODES", CELLS, set_inodes,
	  "files in the writable layer (262144)" },
	{ "--files", NULL, "N", "CAISSON_FILES", CELLS, set_files,
	  "open files per process (1024)" },
	{ "--max-output", NULL, "SIZE", "CAISSON_MAX_OUTPUT", RUNS, set_max_output,
	  "end the program after that much output (none)" },
	{ "--capture", NULL, "CHARS", "CAISSON_CAPTURE", RUNS, set_capture,
	  "with --json: characters kept of each stream (10000)" },
	{ "--env", "-e", "NAME=VALUE", NULL, RUNS, set_env,
	  "set a variable in the cell; may be repeated" },
	{ "--mount", "-v", "SRC:DST[:rw]", NULL, RUNS, set_mount,
	  "show a file or directory in the cell, read-only unless :rw; may be repeated" },
	{ "--workdir", "-w", "DIR", "CAISSON_WORKDIR", RUNS, set_workdir,
	  "working directory in the cell (/workspace)" },
	{ "--user", "-u", "UID[:GID]", "CAISSON_USER", RUNS, set_user,
	  "who runs it inside the cell (1000:1000)" },
	{ "--image", NULL, "IMAGE", "CAISSON_IMAGE", CELLS, set_image,
	  "host (default), a pulled image as in python:3.11-slim, or dir:PATH" },
	{ "--image-store", NULL, "DIR", "CAISSON_IMAGE_STORE", CELLS, set_image_store,
	  "where pulled images are (as for caisson image)" },
	{ "--name", NULL, "NAME", NULL, RUNS, set_name,
	  "in this sandbox of a daemon instead; its options: --name NAME --help" },
	{ "--tty", NULL, NULL, NULL, RUNS, set_tty, "run on a terminal of the cell's own" },
	{ "--json", NULL, NULL, "CAISSON_JSON", CELLS, set_json,
	  "print one result object instead of streaming" },
	{ "--receipt", NULL, NULL, "CAISSON_RECEIPT", RUNS, set_receipt,
	  "show which layers are in force, read from the running cell" },
	{ "--without", NULL, "LAYER", "CAISSON_WITHOUT", CELLS, set_without,
	  "give up a layer: seccomp, landlock or cgroup. Weaker, and said so" },
	{ "--state", NULL, "DIR", "CAISSON_STATE", CELLS, set_state, "where the journal is kept" },
};

static int from_environment(enum options_verb verb, struct options *o, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *v = rows[i].env && rows[i].verbs & verb ? getenv(rows[i].env) : NULL;

		if (!v || !*v)
			continue;
		if (!rows[i].value && strcmp(v, "0") == 0)
			continue;
		if (rows[i].set(o, v, e) < 0)
			return err_wrap(e, "%s", rows[i].env);
	}
	return 0;
}

static const struct option_row *find_row(enum options_verb verb, const char *arg, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *name = rows[i].name, *alias = rows[i].alias;

		if (rows[i].verbs & verb &&
		    ((strlen(name) == len && strncmp(name, arg, len) == 0) ||
		     (alias && strlen(alias) == len && strncmp(alias, arg, len) == 0)))
			return &rows[i];
	}
	return NULL;
}

static int unknown(enum options_verb verb, const char *verb_name, const char *arg, size_t len,
		   struct err *e)
{
	struct near n = near_word(arg, len);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].verbs & verb)
			near_try(&n, rows[i].name);
	return err_say(e, -EINVAL, "unknown option '%.*s'%s 'caisson %s --help' lists them",
		       len > 80 ? 80 : (int)len, arg, near_hint(&n), verb_name);
}

/* One option at argv[*at]; moves *at past it. */
static int parse_one(enum options_verb verb, int argc, char **argv, int *at, struct options *o,
		     struct err *e)
{
	const char *arg = argv[*at], *eq = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
	size_t len = eq ? (size_t)(eq - arg) : strlen(arg);
	const struct option_row *row = find_row(verb, arg, len);
	const char *value = "";

	if (!row)
		return unknown(verb, argv[0], arg, len, e);
	if (row->value) {
		if (!eq && *at + 1 >= argc)
			return err_say(e, -EINVAL, "%s needs a value: %s %s", row->name, row->name,
				       row->value);
		value = eq ? eq + 1 : argv[++*at];
	} else if (eq) {
		return err_say(e, -EINVAL, "%s takes no value", row->name);
	}
	++*at;
	return row->set(o, value, e) < 0 ? err_wrap(e, "%s", row->name) : 0;
}

bool options_sandbox(enum options_verb verb, int argc, char **argv)
{
	for (int at = 1; at < argc; at++) {
		const char *arg = argv[at];
		size_t len = strcspn(arg, "=");
		const struct option_row *row = find_row(verb, arg, len);

		if (arg[0] != '-' || !arg[1] || strcmp(arg, "--") == 0)
			return false;
		if (len == 6 && strncmp(arg, "--name", 6) == 0)
			return true;
		/* An option that we do not know has a value when something follows that can be one. */
		if (!arg[len] &&
		    (row ? row->value != NULL : at + 1 < argc && argv[at + 1][0] != '-'))
			at++;
	}
	return false;
}

int options_parse(enum options_verb verb, int argc, char **argv, struct options *ret, struct err *e)
{
	struct options *o = ret;
	int at = 1;

	memset(o, 0, sizeof(*o));
	spec_default(&o->spec);
	o->uid = CELL_UID;
	o->gid = CELL_GID;
	o->timeout_ms = TIMEOUT_DEFAULT_MS;
	o->capture_chars = CAPTURE_DEFAULT;
	int r = from_environment(verb, o, e);

	while (r == 0 && at < argc) {
		if (strcmp(argv[at], "--") == 0) {
			at++;
			break;
		}
		if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)
			return 1;
		if (argv[at][0] != '-' || strcmp(argv[at], "-") == 0)
			break;
		r = parse_one(verb, argc, argv, &at, o, e);
	}
	o->rest = at;
	if (r == 0)
		r = spec_check(&o->spec, e);
	if (r == 0 && o->cpus_given && o->spec.without & CELL_WITHOUT_CGROUP)
		r = err_say(e, -EINVAL, "--cpus: can not be kept with --without cgroup");
	if (r == 0 && o->tty && o->json)
		r = err_say(
			e, -EINVAL,
			"--tty and --json do not go together: a terminal has no separate streams");
	/* Who asked for JSON gets the failure as JSON, wherever the word stands. */
	for (int i = at; r < 0 && i < argc && strcmp(argv[i], "--") != 0; i++)
		o->json |= strcmp(argv[i], "--json") == 0;
	return r < 0 ? -EINVAL : 0;
}

void options_free(struct options *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(o->owned); i++)
		free(o->owned[i]);
}

void options_help(enum options_verb verb, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char left[64];

		if (!(rows[i].verbs & verb))
			continue;
		(void)snprintf(left, sizeof(left), "%s%s%s%s%s", rows[i].alias ? rows[i].alias : "",
			       rows[i].alias ? ", " : "    ", rows[i].name,
			       rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
		(void)fprintf(out, "  %-26s %s\n", left, rows[i].help);
	}
}

int options_state_dir(const struct options *o, char *path, size_t size, struct err *e)
{
	return state_dir(o->state, getenv("XDG_RUNTIME_DIR"), path, size, e);
}
