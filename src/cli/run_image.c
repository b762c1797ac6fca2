/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_image.c - The configuration of an image, applied to a run.
 *
 * Its variables override the cell's own, and those of the command line override them; HOME, USER
 * and LOGNAME are always the cell's. Its directory and user count when the command line names none;
 * root becomes the agent, because nothing in a cell runs as its root.
 */
#include "cli/run_image.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "cli/run_options.h"
#include "client/program.h"

static int take(struct run_image *im, size_t *at, uint32_t n, const char **list, size_t *count)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *s = loan_string(&im->loan, at);

		if (!s || *count == RUN_IMAGE_WORDS_MAX)
			return -EPROTO;
		list[(*count)++] = s;
	}
	return 0;
}

static size_t drop_own(const char **env, size_t n)
{
	static const char *const ours[] = { "HOME=", "USER=", "LOGNAME=" };
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < ARRAY_SIZE(ours) && strncmp(env[i], ours[k], strlen(ours[k])) != 0)
			k++;
		if (k == ARRAY_SIZE(ours))
			env[kept++] = env[i];
	}
	return kept;
}

/* The image opener is gone when this returns: nothing of ours outlives the command. */
static int borrow(const struct run_options *o, struct loan *ret, struct err *e)
{
	pid_t pid;
	int opener = image_opener_start(o->image_store, &pid, e);

	if (opener < 0)
		return opener;
	int code = image_opener_ask(opener, o->image_ref, NULL, ret, e);

	fd_close(opener);
	if (code == -ETIMEDOUT)
		(void)kill(pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
	return code;
}

/*
 * `caisson image pull`, with bars on a terminal and its own errors on stderr. A run's stderr is its
 * program's, so elsewhere it is silent. Its store, and nothing else, is named on our command line.
 */
static int pull(const struct run_options *o, struct err *e)
{
	char name[] = "caisson-image", verb[] = "pull", quiet[] = "--quiet", end[] = "--";
	char path[4096], ref[512], store[4096 + 16];
	char *argv[7] = { name, verb };
	const struct spawn s = {
		.path = path, .argv = argv, .envp = environ, .no_input = true, .no_output = true
	};
	int status = 0;
	size_t n = 2;
	pid_t pid;

	if (o->json || !isatty(STDERR_FILENO))
		argv[n++] = quiet;
	if (o->image_store) {
		if ((size_t)snprintf(store, sizeof(store), "--store=%s", o->image_store) >=
		    sizeof(store))
			return err_say(e, -ENAMETOOLONG, "--image-store: the path is too long");
		argv[n++] = store;
	}
	argv[n++] = end;
	argv[n] = ref;
	(void)snprintf(ref, sizeof(ref), "%s", o->image_ref);
	if (program_find(name, path, sizeof(path), e) < 0 || spawn_program(&s, &pid, e) < 0)
		return e->code;
	if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) == pid && status == 0)
		return 0;
	return err_say(e, -EIO, "it is not in the store, and 'caisson image pull' has failed");
}

static int get(const struct run_options *o, struct loan *ret, struct err *e)
{
	int code = borrow(o, ret, e);

	/* doctor looks, and changes nothing. */
	if (code != -ENOENT || o->parsed.verb == VERB_DOCTOR ||
	    strcmp(o->image_pull, "missing") != 0)
		return code;
	*e = (struct err){ 0 };
	code = pull(o, e);
	return code < 0 ? code : borrow(o, ret, e);
}

int run_image_open(struct run_options *o, struct run_image *ret, struct err *e)
{
	const struct image_opener_reply *r = &ret->loan.reply;
	size_t at = 0;

	if (!o->image_ref)
		return 0;
	int code = get(o, &ret->loan, e);

	if (code < 0)
		return err_wrap(e, "--image %.200s", o->image_ref);
	o->spec.n_layers = r->n_layers;
	ret->workdir = loan_string(&ret->loan, &at);
	if (ret->workdir && !*ret->workdir)
		ret->workdir = NULL;
	if (take(ret, &at, r->n_env, ret->env, &ret->n_env) < 0 ||
	    take(ret, &at, r->n_entrypoint, ret->command, &ret->n_command) < 0 ||
	    take(ret, &at, r->n_cmd, ret->command, &ret->n_command) < 0)
		return err_say(e, -EPROTO, "--image: the image opener broke the protocol");
	ret->n_env = drop_own(ret->env, ret->n_env);
	/* Without root there is one user in a cell, and it is the agent. */
	if (!options_given(&o->parsed, "--user") && r->uid && geteuid() == 0) {
		o->uid = r->uid;
		o->gid = r->gid ? r->gid : r->uid;
	}
	return 0;
}
