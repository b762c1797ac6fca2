/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - `caisson cp`: files and directories into and out of a sandbox.
 *
 * Names are decided as cp(1) decides them. A file that arrives here is written under another name
 * first, and gets its own when it is whole; directories are filled as they come, as tar archives.
 */
#include "remote/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "remote/dir_archive.h"
#include "remote/list.h"
#include "remote/tty.h"
#include "remote/verb.h"

#define PATH_BYTES 8192u

/* Either end of a copy. */
struct copy {
	int fd;
	const char *file; /* of our end */
	struct pack pack;
	struct unpack unpack;
	struct meter meter;
	struct err e; /* of our own end */
};

static void file_path(struct buf *b, const char *name, const char *route, const char *path)
{
	url_sandbox(b, name, route);
	url_query(b, "path", path);
}

/* The call about a file of the sandbox failed: name the file. Return: -1. */
static int refused(struct session *s, const char *name, const char *path)
{
	_buf_ struct buf file = BUF_INIT(PATH_BYTES);

	(void)buf_printf(&file, "%s:%s", name, path);
	if (s->problem.status && strcmp(s->problem.code, "no_such_sandbox") != 0)
		problem_about(&s->problem, buf_str(&file));
	return -1;
}

/* An error of our own end explains more than the cancelled call. */
static int finish(struct session *s, struct copy *c, const char *name, const char *path, int r,
		  struct copied *ret)
{
	meter_end(&c->meter);
	ret->bytes = c->meter.done;
	if (r < 0 && c->e.code)
		(void)problem_ours(&s->problem, &c->e);
	else if (r < 0)
		(void)refused(s, name, path);
	return r;
}

/* A new object, or NULL with s->problem (status 404: there is no such file). */
static json_t *stat_there(struct session *s, const char *name, const char *path)
{
	_buf_ struct buf url = BUF_INIT(64u << 10);

	file_path(&url, name, "/files/stat", path);
	return api_json(&s->api, "GET", buf_str(&url), NULL, &s->problem);
}

/* ---- into the sandbox ----------------------------------------------------------------------- */

static int64_t from_file(void *arg, char *data, size_t size)
{
	struct copy *c = arg;
	ssize_t n = TEMP_FAILURE_RETRY(read(c->fd, data, size));

	if (n < 0)
		(void)err_set(&c->e, -errno, "read %s", c->file);
	else
		meter_add(&c->meter, (size_t)n);
	return n;
}

static int64_t from_pack(void *arg, char *data, size_t size)
{
	struct copy *c = arg;
	int64_t n = pack_read(&c->pack, data, size, &c->e);

	if (n > 0)
		meter_add(&c->meter, (size_t)n);
	return n;
}

/* One call of any length. @source or @sink is NULL. */
static int transfer(struct session *s, const char *url, struct copy *c, int64_t size,
		    int64_t (*source)(void *arg, char *data, size_t size),
		    int (*sink)(void *arg, const char *data, size_t len))
{
	_answer_ struct api_answer answer = { 0 };
	const struct api_call call = { .method = source ? "PUT" : "GET",
				       .path = url,
				       .accept = source ? NULL : "*/*",
				       .source = source,
				       .source_size = size,
				       .sink = sink,
				       .arg = c,
				       .timeout_ms = API_ENDLESS };

	return api_call(&s->api, &call, &answer, &s->problem);
}

static int put_file(struct session *s, const char *from, const char *name, const char *path,
		    struct copied *ret)
{
	_buf_ struct buf url = BUF_INIT(64u << 10);
	bool is_stdin = strcmp(from, "-") == 0;
	struct copy c = { .fd = STDIN_FILENO, .file = is_stdin ? "standard input" : from };
	struct stat st = { 0 };
	char mode[8];

	_fd_ int fd = is_stdin ? -1 : open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (!is_stdin && (fd < 0 || fstat(fd, &st) < 0)) {
		(void)err_set(&c.e, -errno, "%s", from);
		return problem_ours(&s->problem, &c.e);
	}
	c.fd = is_stdin ? STDIN_FILENO : fd;
	file_path(&url, name, "/files", path);
	if (S_ISREG(st.st_mode)) {
		(void)snprintf(mode, sizeof(mode), "%03o", (unsigned int)st.st_mode & 0777);
		url_query(&url, "mode", mode);
	}
	meter_begin(&c.meter, (uint64_t)st.st_size);
	int r = transfer(s, buf_str(&url), &c, S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1,
			 from_file, NULL);

	return finish(s, &c, name, path, r, ret);
}

static int put_dir(struct session *s, const char *from, const char *name, const char *path,
		   struct copied *ret)
{
	_buf_ struct buf url = BUF_INIT(64u << 10);
	struct copy c = { .fd = -1 };
	int r = pack_open(&c.pack, from, &c.e);

	if (r == 0) {
		json_auto_t *made = api_sandbox(&s->api, "POST", name, "/files/mkdir",
						json_pack("{s:s, s:b}", "path", path, "parents", 1),
						&s->problem);

		file_path(&url, name, "/files/tar", path);
		meter_begin(&c.meter, 0);
		r = made ? transfer(s, buf_str(&url), &c, -1, from_pack, NULL) : -1;
	}
	ret->skipped = c.pack.skipped;
	pack_close(&c.pack);
	return finish(s, &c, name, path, r, ret);
}

/* ---- out of the sandbox --------------------------------------------------------------------- */

static int to_file(void *arg, const char *data, size_t len)
{
	struct copy *c = arg;
	int r = fd_write_all(c->fd, data, len);

	if (r < 0)
		return err_set(&c->e, r, "write %s", c->file);
	meter_add(&c->meter, len);
	return 0;
}

static int to_unpack(void *arg, const char *data, size_t len)
{
	struct copy *c = arg;

	meter_add(&c->meter, len);
	return unpack_feed(&c->unpack, data, len, &c->e);
}

/* A new file beside @to, under a random name; the descriptor, or -errno. */
static int open_beside(const char *to, unsigned int mode, struct buf *ret)
{
	for (int i = 0; i < 100; i++) {
		uint32_t number;
		size_t len;
		const char *base = sandbox_path_base(to, &len);

		if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
			return -EIO;
		buf_clear(ret);
		(void)buf_printf(ret, "%.*s.%.*s.%08x", (int)(base - to), to,
				 len > 200 ? 200 : (int)len, base, number);
		int fd = open(buf_str(ret), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			      mode);

		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static int get_file(struct session *s, const char *name, const char *path, const char *to,
		    unsigned int mode, struct copied *ret)
{
	_buf_ struct buf url = BUF_INIT(64u << 10), beside = BUF_INIT(8192);
	bool direct = strcmp(to, "-") == 0;
	struct copy c = { .fd = STDOUT_FILENO, .file = direct ? "standard output" : to };
	struct stat st;

	/* A device or a pipe is written to; only a file can be replaced. */
	bool special = !direct && stat(to, &st) == 0 && !S_ISREG(st.st_mode);

	_fd_ int fd = direct  ? -1 :
		      special ? open(to, O_WRONLY | O_CLOEXEC | O_NOCTTY) :
				open_beside(to, mode, &beside);

	if (!direct && fd < 0) {
		(void)err_set(&c.e, special ? -errno : fd, "write %s", to);
		return problem_ours(&s->problem, &c.e);
	}
	c.fd = direct ? STDOUT_FILENO : fd;
	file_path(&url, name, "/files", path);
	meter_begin(&c.meter, 0);
	int r = transfer(s, buf_str(&url), &c, 0, NULL, to_file);

	if (r == 0 && !direct && !special && rename(buf_str(&beside), to) < 0) {
		(void)err_set(&c.e, -errno, "write %s", to);
		r = -1;
	}
	if (r < 0 && !direct && !special)
		(void)unlink(buf_str(&beside));
	return finish(s, &c, name, path, r, ret);
}

static int get_dir(struct session *s, const char *name, const char *path, const char *to,
		   struct copied *ret)
{
	_buf_ struct buf url = BUF_INIT(64u << 10);
	struct copy c = { .fd = -1 };

	if (mkdir(to, 0777) < 0 && errno != EEXIST) {
		(void)err_set(&c.e, -errno, "make the directory %s", to);
		return problem_ours(&s->problem, &c.e);
	}
	_fd_ int dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0) {
		(void)err_set(&c.e, -errno, "%s", to);
		return problem_ours(&s->problem, &c.e);
	}
	unpack_open(&c.unpack, dir);
	file_path(&url, name, "/files/tar", path);
	meter_begin(&c.meter, 0);
	int r = transfer(s, buf_str(&url), &c, 0, NULL, to_unpack);

	if (r == 0)
		r = unpack_end(&c.unpack, &c.e);
	ret->skipped = c.unpack.reader.skipped;
	unpack_close(&c.unpack);
	return finish(s, &c, name, path, r, ret);
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool is_dir_type(const json_t *stat)
{
	return strncmp(list_text(stat, "type"), "dir", 3) == 0;
}

static bool ends_with_slash(const char *path)
{
	size_t n = strlen(path);

	return n > 0 && path[n - 1] == '/';
}

/* A file or directory that is copied into a directory keeps its name. */
static int below(struct buf *out, const char *dir, const char *from, struct err *e)
{
	size_t len;
	const char *base = sandbox_path_base(from, &len);

	if (len == 0 || (len == 1 && *base == '.') ||
	    (len == 2 && base[0] == '.' && base[1] == '.') || (len == 1 && *base == '-'))
		return err_say(e, -EINVAL,
			       "'%s' has no name of its own: name the file to copy it to", from);
	(void)buf_printf(out, "%s%s%.*s", dir, ends_with_slash(dir) ? "" : "/", (int)len, base);
	return 0;
}

static int need_recursive(const struct session *s, const char *what, struct err *e)
{
	return s->o.recursive ? 0 : err_say(e, -EISDIR, "%s is a directory: cp -r copies it", what);
}

int cp_put(struct session *s, const char *from, const struct sandbox_path *to, struct copied *done)
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
	json_auto_t *there = stat_there(s, to->name, to->path);
	bool into = there ? is_dir_type(there) : ends_with_slash(to->path);

	if (!there && (s->problem.status != 404 || strcmp(s->problem.code, "no_such_sandbox") == 0))
		return refused(s, to->name, to->path);
	if (into)
		r = below(&path, to->path, from, &e);
	else
		(void)buf_puts(&path, to->path);
	if (r < 0)
		return problem_ours(&s->problem, &e);
	return S_ISDIR(st.st_mode) ? put_dir(s, from, to->name, buf_str(&path), done) :
				     put_file(s, from, to->name, buf_str(&path), done);
}

static unsigned int mode_of(const json_t *stat)
{
	const char *text = list_text(stat, "mode");

	return *text ? (unsigned int)strtoul(text, NULL, 8) & 0777 : 0666;
}

int cp_get(struct session *s, const struct sandbox_path *from, const char *to, struct copied *done)
{
	_buf_ struct buf path = BUF_INIT(PATH_BYTES);
	struct err e = { 0 };
	struct stat st;
	json_auto_t *there = stat_there(s, from->name, from->path);
	bool is_dir = is_dir_type(there);
	unsigned int mode = mode_of(there);
	int r = 0;

	if (!there)
		return refused(s, from->name, from->path);
	if (is_dir)
		r = need_recursive(s, from->path, &e);
	if (r == 0 && is_dir && strcmp(to, "-") == 0)
		r = err_say(&e, -EINVAL, "a directory cannot be written to standard output");
	bool into = strcmp(to, "-") != 0 && ((stat(to, &st) == 0 && S_ISDIR(st.st_mode)) ||
					     (ends_with_slash(to) && !is_dir));

	/* "cp -r NAME:. DIR" fills DIR. */
	if (r == 0 && into && !(is_dir && strcmp(from->path, ".") == 0))
		r = below(&path, to, from->path, &e);
	else
		(void)buf_puts(&path, to);
	if (r < 0)
		return problem_ours(&s->problem, &e);
	return is_dir ? get_dir(s, from->name, from->path, buf_str(&path), done) :
			get_file(s, from->name, from->path, buf_str(&path), mode, done);
}

/* ---- the verb ------------------------------------------------------------------------------- */

int copy_sides(struct session *s, struct sandbox_path *from, struct sandbox_path *to,
	       const char *both, const char *neither)
{
	struct err e = { 0 };

	if (sandbox_path_parse(s->o.rest[0], from, &e) < 0 ||
	    sandbox_path_parse(s->o.rest[1], to, &e) < 0)
		return problem_ours(&s->problem, &e);
	if (from->remote == to->remote)
		return problem_wrong(&s->problem, "%s", from->remote ? both : neither);
	return 0;
}

void copy_json(const struct copied *done)
{
	json_auto_t *root = json_pack("{s:I, s:I}", "bytes", (json_int_t)done->bytes, "skipped",
				      (json_int_t)done->skipped);

	session_json(root);
}

int remote_cp(struct session *s)
{
	struct sandbox_path from, to;
	struct copied done = { 0 };
	int r = copy_sides(s, &from, &to,
			   "one side must be on this machine: copy out of the first sandbox, then "
			   "into the second",
			   "neither side is in a sandbox: NAME:PATH names one");

	if (r == 0)
		r = from.remote ? cp_get(s, &from, to.path, &done) :
				  cp_put(s, from.path, &to, &done);
	if (r == 0 && s->o.json)
		copy_json(&done);
	if (done.skipped)
		(void)fprintf(
			stderr,
			"caisson: %llu left out: not a file, directory or link that stays inside\n",
			(unsigned long long)done.skipped);
	return r;
}
