/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_verb.c - `caisson run` and `caisson exec`: from arguments to a job, from its outcome to an
 * exit code.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cell/container.h"
#include "cell/spec.h"
#include "cli/cell_job.h"
#include "cli/lang.h"
#include "cli/prepare.h"
#include "cli/run_image.h"
#include "cli/run_options.h"
#include "client/fail.h"
#include "client/network_words.h"
#include "client/program.h"

#define ARG_CODE_MAX 100000u /* longer code goes as a file: one argument has at most 128 KiB */
#define ARGV_MAX 32768
#define WALL_BACKSTOP_MS 5000u

/* ---- the program ----------------------------------------------------------------------------- */

struct program {
	const char *argv[ARGV_MAX];
	size_t argc;
	int script_fd; /* -1, or a memfd with what is written to script_path */
	char script_path[PATH_MAX + CELL_DST_MAX];
};

static int push(struct program *p, const char *arg, struct err *e)
{
	if (p->argc + 1 >= ARGV_MAX)
		return err_say(e, -E2BIG, "more than %d arguments", ARGV_MAX - 2);
	p->argv[p->argc++] = arg;
	p->argv[p->argc] = NULL;
	return 0;
}

static int push_all(struct program *p, const char *const *args, struct err *e)
{
	int r = 0;

	for (; r == 0 && *args; args++)
		r = push(p, *args, e);
	return r;
}

/* A script in a directory that is mounted is already there: its path in the cell. */
static bool is_mounted(const struct run_options *o, const char *file, char *path, size_t size)
{
	char real[PATH_MAX], src[PATH_MAX];

	if (!realpath(file, real))
		return false;
	for (uint32_t i = 0; i < o->spec.n_mounts; i++) {
		size_t n = realpath(o->mount_src[i], src) ? strlen(src) : 0;

		if (n > 0 && strncmp(real, src, n) == 0 && (real[n] == '/' || real[n] == '\0') &&
		    (size_t)snprintf(path, size, "%s%s", o->spec.mounts[i].dst, real + n) < size)
			return true;
	}
	return false;
}

/* Where a copy of a script goes: never into a directory of the host. */
static const char *script_dir(const struct run_options *o)
{
	for (uint32_t i = 0; i < o->spec.n_mounts; i++)
		if (strcmp(o->spec.mounts[i].dst, CELL_WORKDIR) == 0)
			return "/tmp";
	return CELL_WORKDIR;
}

/* The interpreter, and the script at p->script_path. */
static int push_script(struct program *p, const struct lang *lang, struct err *e)
{
	int r = push_all(p, lang->file_prefix, e);

	return r < 0 ? r : push(p, p->script_path, e);
}

/* A copy in a sealed memfd: the cell never holds a descriptor of the host's file. */
static int use_script(struct program *p, const struct run_options *o, const struct lang *lang,
		      const char *stem, const char *suffix, const void *data, size_t len,
		      struct err *e)
{
	if ((size_t)snprintf(p->script_path, sizeof(p->script_path), "%s/%s%s", script_dir(o), stem,
			     suffix) >= sizeof(p->script_path))
		return err_say(e, -ENAMETOOLONG, "%s: the name is too long", stem);
	p->script_fd = fd_memfd("caisson-script", data, len);
	if (p->script_fd < 0)
		return err_set(e, p->script_fd, "keep %s", stem);
	return push_script(p, lang, e);
}

static int use_code(struct program *p, const struct run_options *o, const struct source *s,
		    struct err *e)
{
	const struct lang *lang = s->lang;
	size_t len = strlen(s->code);
	int r;

	if (len > ARG_CODE_MAX)
		return use_script(p, o, lang, "main", lang->suffix, s->code, len, e);
	r = push_all(p, lang->inline_prefix, e);
	if (r == 0)
		r = push(p, s->code, e);
	if (r == 0 && lang->after_code)
		r = push(p, lang->after_code, e);
	return r;
}

static int use_source(struct program *p, const struct run_options *o, const char *arg,
		      struct err *e)
{
	_buf_ struct buf b = BUF_INIT(LANG_SOURCE_MAX);
	struct source s;

	if (lang_source(o->lang, o->code, arg, &s, e) < 0)
		return e->code;
	if (s.code)
		return use_code(p, o, &s, e);
	bool is_stdin = strcmp(s.name, "-") == 0;
	_fd_ int fd = is_stdin ? -1 : s.fd;

	if (!is_stdin && is_mounted(o, s.name, p->script_path, sizeof(p->script_path)))
		return push_script(p, s.lang, e);
	if (lang_read(s.fd, is_stdin ? "standard input" : s.name, &b, e) < 0)
		return e->code;
	return use_script(p, o, s.lang, is_stdin ? "stdin" : basename(s.name),
			  is_stdin ? s.lang->suffix : "", buf_str(&b), b.len, e);
}

/* Without arguments: the command of an image of the store. */
static int use_own_command(struct program *p, const struct run_image *im, enum run_verb verb,
			   struct err *e)
{
	int r = 0;

	if (im->n_command == 0 && im->loan.reply.digest[0])
		return err_say(e, -EINVAL, "nothing to run: the image has no command of its own");
	if (im->n_command == 0)
		return err_say(e, -EINVAL,
			       verb == VERB_RUN ? "nothing to run: caisson run 'print(6*7)'" :
						  "nothing to run: caisson exec -- /usr/bin/env");
	for (size_t i = 0; r == 0 && i < im->n_command; i++)
		r = push(p, im->command[i], e);
	return r;
}

/* ---- the environment ----------------------------------------------------------------------- */

struct environment {
	const char *v[RUN_ENV_MAX + RUN_IMAGE_WORDS_MAX + 16];
	size_t n;
	char term[80];
};

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n + 1) == 0;
}

static void env_set(struct environment *env, const char *kv)
{
	for (size_t i = 0; i < env->n; i++)
		if (same_name(kv, env->v[i])) {
			env->v[i] = kv;
			return;
		}
	env->v[env->n++] = kv;
	env->v[env->n] = NULL;
}

/* A clean one: nothing of the caller's environment goes in unless it is named. */
static void make_env(const struct run_options *o, const struct run_image *im,
		     struct environment *env)
{
	static const char *const base[] = {
		"PATH=" CELL_PATH,    "HOME=" CELL_HOME, "USER=" CELL_USER,
		"LOGNAME=" CELL_USER, "SHELL=/bin/bash", "LANG=C.UTF-8",
	};

	env->n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(base); i++)
		env_set(env, base[i]);
	for (size_t i = 0; i < im->n_env; i++)
		env_set(env, im->env[i]);
	if (o->tty) {
		const char *term = getenv("TERM");

		(void)snprintf(env->term, sizeof(env->term), "TERM=%s",
			       term && *term ? term : "xterm");
		env_set(env, env->term);
	}
	for (size_t i = 0; o->env[i]; i++)
		env_set(env, o->env[i]);
}

/* ---- mounts -------------------------------------------------------------------------------- */

struct opened {
	int fds[CELL_FDS_MAX];
	size_t n;
};

/* Opened here, with the rights of the caller: a cell gets only files that the caller may reach. */
static int open_sources(const struct run_options *o, struct run_image *im, struct opened *s,
			struct err *e)
{
	struct stat st;

	if (o->image_path) {
		int fd = open(o->image_path, O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0)
			return err_set(e, -errno, "--image dir:%s", o->image_path);
		s->fds[s->n++] = fd;
	}
	for (; s->n < im->loan.n_fds; s->n++)
		s->fds[s->n] = TAKE_FD(im->loan.fds[s->n]);
	for (uint32_t i = 0; i < o->spec.n_mounts; i++) {
		int fd = open(o->mount_src[i], O_PATH | O_CLOEXEC);

		if (fd < 0)
			return err_set(e, -errno, "--mount %s", o->mount_src[i]);
		s->fds[s->n++] = fd;
		/* O_PATH asks for no permission at all; the files of a directory we may not enter
		 * are not ours to give away. */
		if (fstat(fd, &st) < 0 ||
		    faccessat(fd, "", S_ISDIR(st.st_mode) ? R_OK | X_OK : R_OK,
			      AT_EMPTY_PATH | AT_EACCESS) < 0)
			return err_set(e, -errno, "--mount %s", o->mount_src[i]);
		if (o->spec.mounts[i].flags & CELL_MOUNT_RW &&
		    faccessat(fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) < 0)
			return err_set(e, -errno, "--mount %s: not writable", o->mount_src[i]);
	}
	return 0;
}

/* ---- results ------------------------------------------------------------------------------- */

static bool write_capture(struct json *j, const char *key, const struct buf *b, uint64_t chars,
			  uint64_t bytes)
{
	char base64_key[32];
	size_t n = utf8_truncate(buf_str(b), b->len, chars);

	json_key(j, key);
	if (json_strn(j, buf_str(b), n)) {
		(void)snprintf(base64_key, sizeof(base64_key), "%s_base64", key);
		json_key(j, base64_key);
		json_base64(j, buf_str(b), n);
	}
	return bytes > n;
}

static int print_json(const struct run_options *o, const struct run_image *im,
		      const struct job *job, const struct result *r, const struct outcome *out)
{
	_buf_ struct buf b = BUF_INIT(512u << 20);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	result_json(&j, r, out);
	bool cut = write_capture(&j, "stdout", &job->out, o->capture_chars, out->stdout_bytes);

	cut |= write_capture(&j, "stderr", &job->err, o->capture_chars, out->stderr_bytes);
	json_member_bool(&j, "truncated", cut);
	if (o->image_ref) {
		json_member_str(&j, "image", im->loan.reply.ref);
		json_member_str(&j, "image_digest", im->loan.reply.digest);
	}
	if (o->receipt && job->receipt_json.len > 0) {
		json_key(&j, "receipt");
		json_buf(&j, &job->receipt_json);
	}
	json_object_end(&j);
	if (json_finish(&j) < 0)
		return -1;
	(void)buf_puts(&b, "\n");
	return b.err ? -1 : fd_write_all(STDOUT_FILENO, buf_str(&b), b.len);
}

/* A fresh cell has no network. Like that of a daemon (front/sandbox/network_hint.c), but for people
 * at a terminal. */
static void hint_at_network(const struct job *job, struct result *r)
{
	bool failed = r->status != RESULT_OK;

	if (r->hint[0] || !(network_words(buf_str(&job->err), job->err.len) ||
			    (failed && network_words(buf_str(&job->out), job->out.len))))
		return;
	(void)snprintf(
		r->hint, sizeof(r->hint),
		"this looks like a connection that a fresh cell denies: it reaches no host; a "
		"sandbox of a daemon reaches the hosts that it names: 'caisson create NAME "
		"--egress HOST', then 'caisson run --name NAME'");
}

static int report(const struct run_options *o, const struct run_image *im, const struct job *job,
		  const struct outcome *out)
{
	struct result r;

	result_judge(out, &o->spec, &r);
	hint_at_network(job, &r);
	if (o->json) {
		if (print_json(o, im, job, &r, out) < 0) {
			struct err e;

			(void)err_say(
				&e, -EIO,
				"the result could not be written (too large, or stdout is closed)");
			return verb_fail(&e, false, EXIT_CAISSON);
		}
		return r.exit_code;
	}
	/* A program prints its own failures; a limit needs a line of ours, and so does a cause that
	 * the program cannot know. */
	if (r.status == RESULT_TIMEOUT || r.status == RESULT_LIMIT || r.status == RESULT_FAILED ||
	    (r.status == RESULT_ERROR && r.hint[0]))
		(void)fprintf(stderr, "caisson: %s\n", r.hint);
	if (o->receipt)
		(void)fprintf(stderr, "%s\n", buf_str(&job->receipt_json));
	return r.exit_code;
}

static int run_job(struct run_options *o, struct run_image *im, struct program *p)
{
	static struct environment env;
	char state[4096];
	struct opened sources = { .n = 0 };
	struct outcome out;
	struct err e = { 0 };
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int r = state_dir(o->state, getenv("XDG_RUNTIME_DIR"), state, sizeof(state), &e);

	if (r == 0)
		r = open_sources(o, im, &sources, &e);
	if (r < 0) {
		fd_close_all(sources.fds, sources.n);
		return verb_fail(&e, o->json, EXIT_CAISSON);
	}
	if (o->spec.without && !o->json)
		(void)fprintf(stderr, "caisson: warning: weaker by request, without:%s%s%s\n",
			      o->spec.without & CELL_WITHOUT_SECCOMP ? " seccomp" : "",
			      o->spec.without & CELL_WITHOUT_LANDLOCK ? " landlock" : "",
			      o->spec.without & CELL_WITHOUT_CGROUP ? " cgroup" : "");
	make_env(o, im, &env);
	/* The deadline in job_run() counts; the warden's only matters should we hang. */
	o->spec.limits.wall_ms = o->timeout_ms + WALL_BACKSTOP_MS;
	if (o->tty)
		(void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
	struct job job = {
		.state = state,
		.spec = &o->spec,
		.fds = sources.fds,
		.n_fds = sources.n,
		.exec = {
			.id = 1,
			.flags = o->tty ? INIT_TTY : 0u,
			.cwd = o->workdir ? o->workdir : im->workdir ? im->workdir : CELL_WORKDIR,
			.argv = p->argv,
			.envp = env.v,
			.script_path = p->script_path,
			.script_fd = p->script_fd,
			.stdio = { -1, -1, -1 },
			.uid = o->uid,
			.gid = o->gid,
			.rows = size.ws_row,
			.cols = size.ws_col,
		},
		.timeout_ms = o->timeout_ms,
		.max_output = o->max_output,
		.capture = o->json,
		.capture_bytes = o->capture_chars * 4 > NETWORK_WORDS_MAX ? o->capture_chars * 4 :
									    NETWORK_WORDS_MAX,
		.receipt = o->receipt,
	};

	r = job_run(&job, &out, &e);
	fd_close_all(sources.fds, sources.n);
	/* In a container, all options that are missing say more than the first step that failed. */
	if (r < 0 && job.start_code == EXIT_CAISSON)
		(void)container_check(&e);
	int code = r < 0 ? verb_fail(&e, o->json, job.start_code) : report(o, im, &job, &out);

	job_free(&job);
	return code;
}

static int run_verb(enum run_verb verb, int argc, char **argv)
{
	static struct run_options o;
	static struct program p = { .script_fd = -1 };
	static struct run_image im;
	struct err e = { 0 };

	if (run_options_sandbox(verb, argc, argv))
		return become("caisson-remote", argv);
	int r = run_options_parse(verb, argc, argv, &o, &e);

	if (r == 1) {
		(void)printf(verb == VERB_RUN ?
				     "Usage: caisson run [OPTIONS] CODE|FILE|- [ARGS...]\n\n" :
				     "Usage: caisson exec [OPTIONS] -- PROGRAM [ARGS...]\n\n");
		run_options_help(verb, stdout);
		return 0;
	}
	if (r == 0)
		r = spec_check_memory(o.spec.limits.memory_bytes, &e);
	if (r == 0 && (r = container_enter(&e)) == 0)
		r = run_image_open(&o, &im, &e);
	int at = o.parsed.end;
	bool named = at < argc || o.code;

	if (r == 0 && !named)
		r = use_own_command(&p, &im, verb, &e);
	if (r == 0 && named && verb == VERB_RUN)
		r = use_source(&p, &o, o.code ? NULL : argv[at++], &e);
	while (r == 0 && at < argc)
		r = push(&p, argv[at++], &e);
	int code = r < 0 ? verb_fail(&e, o.json, EXIT_CAISSON) : run_job(&o, &im, &p);

	loan_close(&im.loan);
	fd_close(p.script_fd);
	options_free(&o.parsed);
	return code;
}

int verb_run(int argc, char **argv)
{
	return run_verb(VERB_RUN, argc, argv);
}

int verb_exec(int argc, char **argv)
{
	return run_verb(VERB_EXEC, argc, argv);
}
