/* SPDX-License-Identifier: Apache-2.0 */
/* command_line.c - Puts the arguments, environment and directory of a command together. */
#include "front/cell/command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "cell/spec.h"
#include "front/support/refusal.h"
#include "wire/init.h"

/*
 * The most bytes of arguments and environment: as much as pid 1 reads at once, with room for the
 * rest of the request.
 */
#define LINE_BYTES_MAX (INIT_BLOB_MAX - 65536u)

static const char *const base_env[] = {
	"PATH=" CELL_PATH,    "HOME=" CELL_HOME, "USER=" CELL_USER,
	"LOGNAME=" CELL_USER, "SHELL=/bin/bash", "LANG=C.UTF-8",
};
/* For everything but the fetcher's installers, which are patient and have an index. */
static const char *const tools_env[] = {
	"PATH=" CELL_TOOLS_PATH(CELL_PATH),
	"PYTHONPATH=" CELL_TOOLS_PYTHONPATH,
	CELL_PROGRAMS_ENV,
};
static const char *const terminal_env[] = { "TERM=xterm-256color" };

bool command_env_name(const char *name)
{
	return name[0] && !strchr(name, '=');
}

/* ---- environment --------------------------------------------------------------------------- */

static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

/* Add @entry, or replace the entry of the same name. Takes @entry. */
static void put(char **envp, size_t *n, char *entry)
{
	size_t len = name_length(entry);

	for (size_t i = 0; i < *n; i++)
		if (name_length(envp[i]) == len && strncmp(envp[i], entry, len) == 0) {
			free(envp[i]);
			envp[i] = entry;
			return;
		}
	envp[(*n)++] = entry;
}

static int put_all(char **envp, size_t *n, const json_t *map, struct refusal *r)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)map, name, value)
	{
		char *entry = NULL;

		if (!command_env_name(name))
			return refusal_set(r, REFUSAL_INVALID, "invalid_value", "env",
					   "a name is not empty and has no '=' in it",
					   "'env' has an invalid name");
		if (asprintf(&entry, "%s=%s", name, json_string_value(value)) < 0)
			return refusal_no_memory(r);
		put(envp, n, entry);
	}
	return 0;
}

static bool put_table(char **envp, size_t *n, const char *const *rows, size_t n_rows)
{
	for (size_t i = 0; i < n_rows; i++) {
		char *entry = strdup(rows[i]);

		if (!entry)
			return false;
		put(envp, n, entry);
	}
	return true;
}

static int make_env(const struct command_words *w, struct command_line *l, struct refusal *r)
{
	size_t n = 0, most = ARRAY_SIZE(base_env) + ARRAY_SIZE(tools_env) + 2 +
			     json_object_size(w->image_env) + json_object_size(w->packages_env) +
			     json_object_size(w->sandbox_env) + json_object_size(w->env);

	l->envp = calloc(most, sizeof(char *));
	if (!l->envp)
		return refusal_no_memory(r);
	if (!put_table(l->envp, &n, base_env, ARRAY_SIZE(base_env)) ||
	    (!w->fetcher && !put_table(l->envp, &n, tools_env, ARRAY_SIZE(tools_env))) ||
	    (w->terminal && !put_table(l->envp, &n, terminal_env, ARRAY_SIZE(terminal_env))))
		return refusal_no_memory(r);
	if (put_all(l->envp, &n, w->image_env, r) < 0 ||
	    put_all(l->envp, &n, w->packages_env, r) < 0 ||
	    put_all(l->envp, &n, w->sandbox_env, r) < 0)
		return -1;
	return put_all(l->envp, &n, w->env, r);
}

/* ---- arguments and directory --------------------------------------------------------------- */

static const char *word(const struct command_words *w, size_t i)
{
	if (w->tail)
		return w->tail[i];
	return json_string_value(json_array_get(w->args, i));
}

static int make_argv(const struct command_words *w, struct command_line *l, struct refusal *r)
{
	size_t n = json_array_size(w->args);

	for (size_t i = 0; w->tail && w->tail[i]; i++)
		n = i + 1;
	l->argv = calloc(n + 2, sizeof(char *));
	if (!l->argv || !(l->argv[0] = strdup(w->program)))
		return refusal_no_memory(r);
	for (size_t i = 0; i < n; i++)
		if (!(l->argv[i + 1] = strdup(word(w, i))))
			return refusal_no_memory(r);
	return 0;
}

static int make_cwd(const struct command_words *w, struct command_line *l, struct refusal *r)
{
	const char *cwd = w->cwd ? w->cwd : "";
	bool absolute = cwd[0] == '/';

	if (asprintf(&l->cwd, "%s%s%s", absolute ? "" : CELL_WORKDIR, absolute || !*cwd ? "" : "/",
		     cwd) < 0) {
		l->cwd = NULL;
		return refusal_no_memory(r);
	}
	if (strlen(l->cwd) > COMMAND_CWD_MAX)
		return refusal_set(r, REFUSAL_INVALID, "out_of_range", "cwd", NULL,
				   "'cwd' is too long a path");
	return 0;
}

static size_t bytes_of(char *const *words)
{
	size_t n = 0;

	for (; *words; words++)
		n += strlen(*words) + 1;
	return n;
}

int command_line_make(const struct command_words *w, struct command_line *ret,
		      struct refusal *ret_why)
{
	*ret = (struct command_line){ .argv = NULL };
	if (make_argv(w, ret, ret_why) < 0 || make_env(w, ret, ret_why) < 0 ||
	    make_cwd(w, ret, ret_why) < 0)
		return -1;
	if (bytes_of(ret->argv) + bytes_of(ret->envp) > LINE_BYTES_MAX)
		return refusal_set(ret_why, REFUSAL_INVALID, "out_of_range", NULL,
				   "write long input to a file of the sandbox, or to stdin",
				   "arguments and environment are too long together");
	ret->other = w->other;
	return 0;
}

static void free_words(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

void command_line_free(struct command_line *l)
{
	free_words(l->argv);
	for (size_t i = 0; l->envp && l->envp[i]; i++)
		explicit_bzero(l->envp[i], strlen(l->envp[i])); /* secrets may be among them */
	free_words(l->envp);
	free(l->cwd);
	*l = (struct command_line){ .argv = NULL };
}
