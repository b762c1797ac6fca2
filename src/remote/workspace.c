/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace.c - `caisson workspace create|ls|rm|diff|commit|discard|cp`: directories that outlive
 * sandboxes.
 *
 * Files go in and out through a sandbox that is made for the copy: what comes out was made by code
 * that nobody has read, and what goes in is committed as any other change, as a whole or not at
 * all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "remote/copy.h"
#include "remote/list.h"
#include "remote/place.h"
#include "remote/session.h"
#include "remote/table.h"
#include "remote/verbs.h"

#define OUT_MAX (64u << 20)
#define MIB (UINT64_C(1) << 20)
#define COMMIT_MS (30u * 60 * 1000)

static json_t *call(struct session *s, const char *method, const char *path, json_t *body)
{
	struct api_answer answer = { 0 };
	const struct api_call c = {
		.method = method, .path = path, .json = body, .timeout_ms = COMMIT_MS
	};
	json_t *root = NULL;

	if (api_call(&s->api, &c, &answer, &s->problem) == 0) {
		root = json_loadb(buf_str(&answer.body), answer.body.len, 0, NULL);
		root = root ? root : json_object();
	}
	api_answer_free(&answer);
	return root;
}

static json_t *call_named(struct session *s, const char *method, const char *name)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct err e = { 0 };

	if (place_check_name(name, &e) < 0) {
		(void)problem_ours(&s->problem, &e);
		return NULL;
	}
	(void)buf_puts(&path, "/v1/workspaces/");
	url_escape(&path, name);
	return call(s, method, buf_str(&path), NULL);
}

static json_t *call_sandbox(struct session *s, const char *method, const char *name,
			    const char *rest, json_t *body)
{
	_buf_ struct buf path = BUF_INIT(1024);
	struct err e = { 0 };

	if (place_check_name(name, &e) < 0) {
		(void)problem_ours(&s->problem, &e);
		return NULL;
	}
	url_sandbox(&path, name, rest);
	return call(s, method, buf_str(&path), body);
}

/* ---- create, rm ---------------------------------------------------------------------------- */

static int create(struct session *s)
{
	json_t *body = json_pack("{s:s}", "name", s->o.rest[0]), *made;
	struct err e = { 0 };

	if (options_given(&s->o.parsed, "--disk") &&
	    (s->o.disk_bytes == 0 || s->o.disk_bytes % MIB)) {
		json_decref(body);
		(void)err_say(&e, -EINVAL,
			      "--disk: must be a whole number of MiB, and at least one");
		return problem_ours(&s->problem, &e);
	}
	if (options_given(&s->o.parsed, "--disk"))
		(void)json_object_set_new(body, "quota_mib",
					  json_integer((json_int_t)(s->o.disk_bytes / MIB)));
	if (s->o.label[0])
		(void)json_object_set_new(body, "labels", remote_options_pairs(s->o.label));
	made = call(s, "POST", "/v1/workspaces", body);
	if (made && s->o.json)
		session_json(made);
	else if (made)
		(void)printf("%s\n", s->o.rest[0]);
	json_decref(body);
	json_decref(made);
	return made ? 0 : -1;
}

static int rm(struct session *s)
{
	int r = 0;

	for (int i = 0; i < s->o.n_rest; i++) {
		json_t *gone = call_named(s, "DELETE", s->o.rest[i]);

		if (gone && !s->o.json)
			(void)printf("%s\n", s->o.rest[i]);
		else if (!gone && !(s->o.force && s->problem.status == 404)) {
			session_fail(s);
			r = 1; /* said */
		}
		json_decref(gone);
	}
	return r;
}

/* ---- ls ------------------------------------------------------------------------------------ */

static void put_row(struct table *t, const json_t *w)
{
	char text[NUM_FORMAT_MAX];

	table_cell(t, STYLE_PLAIN, list_text(w, "name"));
	table_printf(t, "%llu", (unsigned long long)list_uint(w, "generation"));
	table_cell(t, STYLE_PLAIN,
		   num_format_size(list_uint(w, "quota_mib") << 20, text, sizeof(text)));
	table_printf(t, "%zu", json_array_size(json_object_get(w, "sandboxes")));
	table_cell(t, STYLE_DIM, list_text(w, "changed_at"));
}

static int ls(struct session *s)
{
	static const struct table_column columns[] = {
		{ "NAME", false },   { "GENERATION", true }, { "QUOTA", true },
		{ "USED BY", true }, { "CHANGED", false },
	};
	_buf_ struct buf out = BUF_INIT(OUT_MAX);
	json_t *root = call(s, "GET", "/v1/workspaces?limit=1000", NULL), *w;
	struct table t;
	size_t i;

	if (!root)
		return -1;
	if (s->o.json) {
		session_json(root);
	} else {
		table_init(&t, columns, ARRAY_SIZE(columns));
		json_array_foreach(json_object_get(root, "workspaces"), i, w) put_row(&t, w);
		table_render(&t, session_color(), 0, &out);
		(void)fwrite(buf_str(&out), 1, out.len, stdout);
		table_free(&t);
	}
	json_decref(root);
	return 0;
}

/* ---- diff, commit, discard ----------------------------------------------------------------- */

static void show_changes(const json_t *root)
{
	static const struct table_column columns[] = { { "CHANGE", false },
						       { "TYPE", false },
						       { "PATH", false } };
	_buf_ struct buf out = BUF_INIT(OUT_MAX);
	struct table t;
	size_t i;
	json_t *c;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach(json_object_get(root, "changes"), i, c)
	{
		const char *change = list_text(c, "change");

		table_cell(&t, strcmp(change, "removed") == 0 ? STYLE_BAD : STYLE_GOOD, change);
		table_cell(&t, STYLE_DIM, list_text(c, "type"));
		table_cell(&t, STYLE_PLAIN, list_text(c, "path"));
	}
	if (i > 0)
		table_render(&t, session_color(), 0, &out);
	(void)fwrite(buf_str(&out), 1, out.len, stdout);
	table_free(&t);
	if (json_is_true(json_object_get(root, "truncated")))
		(void)fprintf(stderr, "caisson: there are more\n");
}

static int say_changes(struct session *s, json_t *root)
{
	if (root && s->o.json)
		session_json(root);
	else if (root)
		show_changes(root);
	json_decref(root);
	return root ? 0 : -1;
}

static int diff(struct session *s)
{
	return say_changes(s, call_sandbox(s, "GET", s->o.rest[0], "/workspace/diff", NULL));
}

static int post(struct session *s, const char *name, const char *rest, json_t **ret)
{
	json_t *body = json_object();

	*ret = call_sandbox(s, "POST", name, rest, body);
	json_decref(body);
	return *ret ? 0 : -1;
}

static int commit(struct session *s)
{
	json_t *root;

	(void)post(s, s->o.rest[0], "/workspace/commit", &root);
	return say_changes(s, root);
}

static int discard(struct session *s)
{
	json_t *root;
	int r = post(s, s->o.rest[0], "/workspace/discard", &root);

	if (r == 0 && !s->o.json)
		(void)printf("%s\n", s->o.rest[0]);
	json_decref(root);
	return r;
}

/* ---- cp ------------------------------------------------------------------------------------ */

static int with_sandbox(struct session *s, const struct place *from, const struct place *to,
			struct copied *done)
{
	bool in = to->remote;
	struct place at = in ? *to : *from;
	unsigned long long random = 0;
	json_t *body, *made, *ignored;
	int r = -1;

	(void)!getrandom(&random, sizeof(random), 0);
	(void)snprintf(at.name, sizeof(at.name), "workspace-cp-%llx", random);
	body = json_pack("{s:s, s:{s:s, s:s}, s:i}", "name", at.name, "workspace", "name",
			 in ? to->name : from->name, "mode", in ? "cow" : "ro", "idle_seconds",
			 600);
	made = call(s, "POST", "/v1/sandboxes", body);
	json_decref(body);
	if (!made)
		return -1;
	json_decref(made);
	r = in ? cp_put(s, from->path, &at, done) : cp_get(s, &at, to->path, done);
	if (r == 0 && in) {
		r = post(s, at.name, "/workspace/commit", &ignored);
		json_decref(ignored);
	}
	struct problem why = s->problem;

	json_decref(call_sandbox(s, "DELETE", at.name, "", NULL));
	s->problem = why;
	return r;
}

static int cp(struct session *s)
{
	struct place from, to;
	struct copied done = { 0 };
	struct err e = { 0 };
	int r = place_parse(s->o.rest[0], &from, &e);

	if (r == 0)
		r = place_parse(s->o.rest[1], &to, &e);
	if (r == 0 && from.remote == to.remote)
		r = err_say(&e, -EINVAL, "one side is here, the other in a workspace: NAME:PATH");
	if (r < 0)
		return problem_ours(&s->problem, &e);
	r = with_sandbox(s, &from, &to, &done);
	if (r == 0 && s->o.json) {
		json_t *root = json_pack("{s:I, s:I}", "bytes", (json_int_t)done.bytes, "skipped",
					 (json_int_t)done.skipped);

		session_json(root);
		json_decref(root);
	}
	return r;
}

/* ---- which --------------------------------------------------------------------------------- */

static const struct sub {
	const char *name;
	struct form form;
	int (*run)(struct session *s); /* 0; -1: with s->problem; 1: said */
} subs[] = {
	{ "create",
	  { OPT_WORKSPACE, "workspace create NAME [--disk SIZE] [--label KEY=VALUE]",
	    "Makes a workspace: a directory that sandboxes mount, and that outlives them.\n", 1,
	    1 },
	  create },
	{ "ls", { OPT_WORKSPACE, "workspace ls", "Lists your workspaces.\n", 0, 0 }, ls },
	{ "rm",
	  { OPT_WORKSPACE, "workspace rm [-f] NAME...",
	    "Removes workspaces with everything in them.\n", 1, -1 },
	  rm },
	{ "diff",
	  { OPT_WORKSPACE, "workspace diff SANDBOX",
	    "What a sandbox changed in its copy of the workspace.\n", 1, 1 },
	  diff },
	{ "commit",
	  { OPT_WORKSPACE, "workspace commit SANDBOX",
	    "Keeps what the sandbox changed: all of it, or nothing when others changed the same.\n",
	    1, 1 },
	  commit },
	{ "discard",
	  { OPT_WORKSPACE, "workspace discard SANDBOX",
	    "Throws away what the sandbox changed. Its cell is replaced, with all that runs in it.\n",
	    1, 1 },
	  discard },
	{ "cp",
	  { OPT_WORKSPACE, "workspace cp [-r] SRC DST",
	    "Copies a file, or with -r a directory, into or out of a workspace. One side is NAME:PATH.\n",
	    2, 2 },
	  cp },
};

static int help(FILE *out)
{
	(void)fprintf(out, "Directories that outlive sandboxes, mounted there at /workspace.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(subs); i++)
		(void)fprintf(out, "  caisson %s\n", subs[i].form.usage);
	(void)fprintf(
		out,
		"\n  caisson create NAME --workspace WORKSPACE[:ro|rw|cow] uses one.\n\nOptions:\n");
	remote_options_help(OPT_WORKSPACE, out);
	return out == stdout ? 0 : EXIT_CAISSON;
}

int verb_workspace(int argc, char **argv)
{
	struct session s;

	if (argc < 2)
		return help(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help(stdout);
	for (size_t i = 0; i < ARRAY_SIZE(subs); i++) {
		if (strcmp(argv[1], subs[i].name) != 0)
			continue;
		if (session_begin(&s, &subs[i].form, argc - 1, argv + 1) && subs[i].run(&s) < 0)
			session_fail(&s);
		return session_end(&s);
	}
	return help(stderr);
}
