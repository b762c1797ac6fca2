/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace.c - `caisson workspace create|ls|rm|diff|commit|discard|cp`: directories that outlive
 * sandboxes.
 *
 * Files go in and out through a sandbox that is made for the copy: the files of a workspace may
 * come from code that nobody has read, and new files are committed as any other change, as a whole
 * or not at all.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/near.h"
#include "client/fail.h"
#include "remote/copy.h"
#include "remote/list.h"
#include "remote/verb.h"

#define MIB (UINT64_C(1) << 20)
#define COMMIT_MS (30u * 60 * 1000)

static json_t *call(struct session *s, const char *method, const char *kind, const char *name,
		    const char *rest)
{
	return session_call(s, method, kind, name, rest, NULL, COMMIT_MS);
}

static int create(struct session *s)
{
	json_auto_t *body = json_pack("{s:s}", "name", s->o.rest[0]);
	struct err e = { 0 };

	if (options_given(&s->o.parsed, "--disk") &&
	    remote_options_units(body, "quota_mib", "--disk", s->o.disk_bytes, MIB, "MiB", &e) < 0)
		return problem_ours(&s->problem, &e);
	if (s->o.label[0])
		(void)json_object_set_new(body, "labels", remote_options_pairs(s->o.label));
	return session_show(s,
			    api_json_ms(&s->api, "POST", "/v1/workspaces", json_incref(body),
					COMMIT_MS, &s->problem),
			    session_print_name);
}

static int rm(struct session *s)
{
	for (int i = 0; i < s->o.n_rest; i++) {
		json_auto_t *gone = call(s, "DELETE", "workspaces", s->o.rest[i], "");

		if (gone && !s->o.json)
			(void)printf("%s\n", s->o.rest[i]);
		else if (!gone && !(s->o.force && s->problem.status == 404))
			session_fail(s);
	}
	return 0;
}

static int ls(struct session *s)
{
	static const struct list_column columns[] = {
		{ "NAME", .key = "name" },
		{ "GENERATION", LIST_NUMBER, .key = "generation" },
		{ "QUOTA", LIST_MIB, .key = "quota_mib" },
		{ "USED BY", LIST_COUNT, .key = "sandboxes" },
		{ "CHANGED", .key = "changed_at", .style = STYLE_DIM },
	};
	json_t *all = api_json(&s->api, "GET", "/v1/workspaces?limit=1000", NULL, &s->problem);

	return list_show(s, all, "workspaces", columns, ARRAY_SIZE(columns));
}

/* ---- diff, commit, discard ----------------------------------------------------------------- */

static void put_change(struct table *t, const json_t *c)
{
	const char *change = list_text(c, "change");

	table_cell(t, strcmp(change, "removed") == 0 ? STYLE_BAD : STYLE_GOOD, change);
}

static void print_changes(const struct session *s, const json_t *root)
{
	static const struct list_column columns[] = {
		{ "CHANGE", .put = put_change },
		{ "TYPE", .key = "type", .style = STYLE_DIM },
		{ "PATH", .key = "path" },
	};
	const json_t *changes = json_object_get(root, "changes");

	(void)s;
	if (json_array_size(changes) > 0)
		list_print(columns, ARRAY_SIZE(columns), changes);
	if (json_is_true(json_object_get(root, "truncated")))
		(void)fprintf(stderr, "caisson: there are more\n");
}

static int diff(struct session *s)
{
	return session_show(s, call(s, "GET", "sandboxes", s->o.rest[0], "/workspace/diff"),
			    print_changes);
}

static json_t *commit_of(struct session *s, const char *sandbox)
{
	return call(s, "POST", "sandboxes", sandbox, "/workspace/commit");
}

static int commit(struct session *s)
{
	return session_show(s, commit_of(s, s->o.rest[0]), print_changes);
}

static int discard(struct session *s)
{
	json_auto_t *v = call(s, "POST", "sandboxes", s->o.rest[0], "/workspace/discard");

	if (v && !s->o.json)
		session_print_name(s, v);
	return v ? 0 : -1;
}

/* ---- cp ------------------------------------------------------------------------------------ */

static int with_sandbox(struct session *s, const struct sandbox_path *from,
			const struct sandbox_path *to, struct copied *done)
{
	bool in = to->remote;
	struct sandbox_path at = in ? *to : *from;
	unsigned long long random = 0;
	int r;

	(void)!getrandom(&random, sizeof(random), 0);
	(void)snprintf(at.name, sizeof(at.name), "workspace-cp-%llx", random);
	json_auto_t *made = api_json_ms(&s->api, "POST", "/v1/sandboxes",
					json_pack("{s:s, s:{s:s, s:s}, s:i}", "name", at.name,
						  "workspace", "name", in ? to->name : from->name,
						  "mode", in ? "cow" : "ro", "idle_seconds", 600),
					COMMIT_MS, &s->problem);

	if (!made)
		return -1;
	r = in ? cp_put(s, from->path, &at, done) : cp_get(s, &at, to->path, done);
	json_auto_t *kept = r == 0 && in ? commit_of(s, at.name) : NULL;
	struct problem why = s->problem;

	if (in && !kept)
		r = -1;
	json_decref(call(s, "DELETE", "sandboxes", at.name, ""));
	s->problem = why;
	return r;
}

static int cp(struct session *s)
{
	struct sandbox_path from, to;
	struct copied done = { 0 };

	if (copy_sides(s, &from, &to, "one side is here, the other in a workspace: NAME:PATH",
		       "one side is here, the other in a workspace: NAME:PATH") < 0 ||
	    with_sandbox(s, &from, &to, &done) < 0)
		return -1;
	if (s->o.json)
		copy_json(&done);
	return 0;
}

/* ---- the verbs ----------------------------------------------------------------------------- */

static const struct verb verbs[] = {
	{ "create", OPT_WORKSPACE, "workspace create NAME [--disk SIZE] [--label KEY=VALUE]",
	  "Makes a workspace: a directory that sandboxes mount, and that outlives them.\n", 1, 1,
	  false, create },
	{ "ls", OPT_WORKSPACE, "workspace ls", "Lists your workspaces.\n", 0, 0, false, ls },
	{ "rm", OPT_WORKSPACE, "workspace rm [-f] NAME...",
	  "Removes workspaces with everything in them.\n", 1, -1, false, rm },
	{ "diff", OPT_WORKSPACE, "workspace diff SANDBOX",
	  "Lists the changes of a sandbox to its copy of the workspace.\n", 1, 1, false, diff },
	{ "commit", OPT_WORKSPACE, "workspace commit SANDBOX",
	  "Keeps the changes of the sandbox as a whole; if others have changed the same paths\n"
	  "since, keeps nothing.\n",
	  1, 1, false, commit },
	{ "discard", OPT_WORKSPACE, "workspace discard SANDBOX",
	  "Throws away the changes of the sandbox, together with its cell and everything that\n"
	  "runs in it.\n",
	  1, 1, false, discard },
	{ "cp", OPT_WORKSPACE, "workspace cp [-r] SRC DST",
	  "Copies a file, or with -r a directory, into or out of a workspace. One side is\n"
	  "NAME:PATH.\n",
	  2, 2, false, cp },
};

static int help(FILE *out)
{
	(void)fprintf(
		out,
		"Manages directories that outlive sandboxes, which mount them at /workspace.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		(void)fprintf(out, "  caisson %s\n", verbs[i].usage);
	(void)fprintf(out, "\n  caisson create NAME --workspace WORKSPACE[:ro|rw|cow] uses "
			   "one.\n\nOptions:\n");
	remote_options_help(OPT_WORKSPACE, out);
	return out == stdout ? 0 : EXIT_OURS;
}

int workspace_main(int argc, char **argv)
{
	if (argc < 2)
		return help(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help(stdout);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return session_run(&verbs[i], argc - 1, argv + 1);
	struct near n = near_word(argv[1], strlen(argv[1]));
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		near_try(&n, verbs[i].name);
	(void)err_say(&e, -EINVAL,
		      "unknown verb 'workspace %.60s'%s 'caisson workspace --help' lists them",
		      argv[1], near_hint(&n));
	return verb_fail(&e, 0, EXIT_OURS);
}
