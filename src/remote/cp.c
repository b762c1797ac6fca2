/* SPDX-License-Identifier: Apache-2.0 */
/* cp.c - `caisson cp`: which of the four copies, and under which name. As cp(1) decides it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "remote/copy.h"
#include "remote/list.h"
#include "remote/place.h"
#include "remote/session.h"
#include "remote/verbs.h"

#define PATH_BYTES 8192u

static bool is_dir_type(const json_t *stat)
{
	return strncmp(list_text(stat, "type"), "dir", 3) == 0;
}

static bool ends_with_slash(const char *path)
{
	size_t n = strlen(path);

	return n > 0 && path[n - 1] == '/';
}

/* Into a directory a thing goes under its own name. */
static int below(struct buf *out, const char *dir, const char *from, struct err *e)
{
	size_t len;
	const char *base = place_base(from, &len);

	if (len == 0 || (len == 1 && *base == '.') ||
	    (len == 2 && base[0] == '.' && base[1] == '.') || (len == 1 && *base == '-'))
		return err_say(e, -EINVAL,
			       "'%s' has no name of its own: say under which to copy it", from);
	(void)buf_printf(out, "%s%s%.*s", dir, ends_with_slash(dir) ? "" : "/", (int)len, base);
	return 0;
}

static int need_recursive(const struct session *s, const char *what, struct err *e)
{
	return s->o.recursive ? 0 : err_say(e, -EISDIR, "%s is a directory: cp -r copies it", what);
}

int cp_put(struct session *s, const char *from, const struct place *to, struct copied *done)
{
	_buf_ struct buf path = BUF_INIT(PATH_BYTES);
	struct err e = { 0 };
	struct stat st = { 0 };
	int r = 0;

	if (strcmp(from, "-") != 0 && stat(from, &st) < 0)
		r = err_set(&e, -errno, "%s", from);
	else if (S_ISDIR(st.st_mode))
		r = need_recursive(s, from, &e);
	if (r < 0)
		return problem_ours(&s->problem, &e);
	json_t *there = copy_stat(s, to->name, to->path);
	bool into = there ? is_dir_type(there) : ends_with_slash(to->path);

	json_decref(there);
	if (!there && (s->problem.status != 404 || strcmp(s->problem.code, "no_such_sandbox") == 0))
		return -1;
	if (into)
		r = below(&path, to->path, from, &e);
	else
		(void)buf_puts(&path, to->path);
	if (r < 0)
		return problem_ours(&s->problem, &e);
	return S_ISDIR(st.st_mode) ? copy_put_dir(s, from, to->name, buf_str(&path), done) :
				     copy_put_file(s, from, to->name, buf_str(&path), done);
}

static unsigned int mode_of(const json_t *stat)
{
	const json_t *mode = json_object_get(stat, "mode");
	const char *text = json_string_value(mode);
	unsigned long v = text ? strtoul(text, NULL, 8) : (unsigned long)json_integer_value(mode);

	return mode ? (unsigned int)v & 0777 : 0666;
}

int cp_get(struct session *s, const struct place *from, const char *to, struct copied *done)
{
	_buf_ struct buf path = BUF_INIT(PATH_BYTES);
	struct err e = { 0 };
	struct stat st;
	json_t *there = copy_stat(s, from->name, from->path);
	bool is_dir = is_dir_type(there);
	unsigned int mode = mode_of(there);
	int r = 0;

	json_decref(there);
	if (!there)
		return -1;
	if (is_dir)
		r = need_recursive(s, from->path, &e);
	if (r == 0 && is_dir && strcmp(to, "-") == 0)
		r = err_say(&e, -EINVAL, "a directory can not be written to standard output");
	bool into = strcmp(to, "-") != 0 && ((stat(to, &st) == 0 && S_ISDIR(st.st_mode)) ||
					     (ends_with_slash(to) && !is_dir));

	/* "cp -r NAME:. DIR" fills DIR. */
	if (r == 0 && into && !(is_dir && strcmp(from->path, ".") == 0))
		r = below(&path, to, from->path, &e);
	else
		(void)buf_puts(&path, to);
	if (r < 0)
		return problem_ours(&s->problem, &e);
	return is_dir ? copy_get_dir(s, from->name, from->path, buf_str(&path), done) :
			copy_get_file(s, from->name, from->path, buf_str(&path), mode, done);
}

static int copy(struct session *s, struct copied *done)
{
	struct place from, to;
	struct err e = { 0 };
	int r = place_parse(s->o.rest[0], &from, &e);

	if (r == 0)
		r = place_parse(s->o.rest[1], &to, &e);
	if (r == 0 && from.remote == to.remote)
		r = err_say(&e, -EINVAL,
			    from.remote ?
				    "one side must be here: copy out of the one sandbox first" :
				    "neither side is in a sandbox: NAME:PATH names one");
	if (r < 0)
		return problem_ours(&s->problem, &e);
	return from.remote ? cp_get(s, &from, to.path, done) : cp_put(s, from.path, &to, done);
}

int verb_cp(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_CP,
		.usage = "cp [-r] SRC DST",
		.text = "Copies a file, or with -r a directory, into or out of a sandbox. One side is NAME:PATH; a\n"
			"relative PATH is below /workspace. '-' is standard input or output.\n",
		.min = 2,
		.max = 2,
	};
	struct session s;

	if (session_begin(&s, &form, argc, argv)) {
		struct copied done = { 0 };

		if (copy(&s, &done) < 0) {
			session_fail(&s);
		} else if (s.o.json) {
			json_t *root = json_pack("{s:I, s:I}", "bytes", (json_int_t)done.bytes,
						 "skipped", (json_int_t)done.skipped);

			session_json(root);
			json_decref(root);
		}
		if (done.skipped)
			(void)fprintf(
				stderr,
				"caisson: %llu left out: no file, directory or link that stays inside\n",
				(unsigned long long)done.skipped);
	}
	return session_end(&s);
}
