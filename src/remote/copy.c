/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - The four ways of a copy. */
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
#include "remote/meter.h"
#include "remote/pack.h"
#include "remote/place.h"
#include "remote/session.h"
#include "remote/unpack.h"

/* Either end of a copy. */
struct copy {
	int fd;
	struct pack *pack;
	struct unpack *unpack;
	struct meter meter;
	struct err e; /* of what happened here */
};

static void file_path(struct buf *b, const char *name, const char *route, const char *path)
{
	url_sandbox(b, name, route);
	url_query(b, "path", path);
}

/* What happened here explains more than that the call was given up. */
static int finish(struct session *s, struct copy *c, int r, struct copied *ret)
{
	meter_end(&c->meter);
	ret->bytes = c->meter.done;
	if (r < 0 && c->e.code)
		(void)problem_ours(&s->problem, &c->e);
	return r;
}

json_t *copy_stat(struct session *s, const char *name, const char *path)
{
	_buf_ struct buf url = BUF_INIT(64u << 10);

	file_path(&url, name, "/files/stat", path);
	return api_json(&s->api, "GET", buf_str(&url), NULL, &s->problem);
}

/* ---- there --------------------------------------------------------------------------------- */

static int64_t from_file(void *arg, char *data, size_t size)
{
	struct copy *c = arg;
	ssize_t n;

	do
		n = read(c->fd, data, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		(void)err_set(&c->e, -errno, "read the file");
	else
		meter_add(&c->meter, (size_t)n);
	return n;
}

static int64_t from_pack(void *arg, char *data, size_t size)
{
	struct copy *c = arg;
	int64_t n = pack_read(c->pack, data, size);

	if (n < 0)
		c->e = *pack_error(c->pack);
	else
		meter_add(&c->meter, (size_t)n);
	return n;
}

static int upload(struct session *s, const char *url, int64_t size,
		  int64_t (*source)(void *arg, char *data, size_t size), struct copy *c)
{
	struct api_answer answer = { 0 };
	struct api_call call = { .method = "PUT",
				 .path = url,
				 .source = source,
				 .source_size = size,
				 .arg = c,
				 .timeout_ms = API_ENDLESS };
	int r = api_call(&s->api, &call, &answer, &s->problem);

	api_answer_free(&answer);
	return r;
}

int copy_put_file(struct session *s, const char *from, const char *name, const char *path,
		  struct copied *ret)
{
	_buf_ struct buf url = BUF_INIT(64u << 10);
	struct copy c = { .fd = STDIN_FILENO };
	struct stat st = { 0 };
	bool is_stdin = strcmp(from, "-") == 0;
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
	int r = upload(s, buf_str(&url), S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1, from_file,
		       &c);

	return finish(s, &c, r, ret);
}

static int make_dir(struct session *s, const char *name, const char *path)
{
	_buf_ struct buf url = BUF_INIT(1024);
	json_t *body = json_pack("{s:s, s:b}", "path", path, "parents", 1);

	url_sandbox(&url, name, "/files/mkdir");
	json_t *made = api_json(&s->api, "POST", buf_str(&url), body, &s->problem);

	json_decref(body);
	json_decref(made);
	return made ? 0 : -1;
}

int copy_put_dir(struct session *s, const char *from, const char *name, const char *path,
		 struct copied *ret)
{
	_buf_ struct buf url = BUF_INIT(64u << 10);
	struct copy c = { .fd = -1 };

	c.pack = pack_open(from, &c.e);
	if (!c.pack)
		return problem_ours(&s->problem, &c.e);
	int r = make_dir(s, name, path);

	if (r == 0) {
		file_path(&url, name, "/files/tar", path);
		meter_begin(&c.meter, 0);
		r = upload(s, buf_str(&url), -1, from_pack, &c);
	}
	ret->skipped = pack_skipped(c.pack);
	pack_close(c.pack);
	return finish(s, &c, r, ret);
}

/* ---- here ---------------------------------------------------------------------------------- */

static int to_file(void *arg, const char *data, size_t len)
{
	struct copy *c = arg;
	int r = fd_write_all(c->fd, data, len);

	if (r < 0)
		return err_set(&c->e, r, "write the file");
	meter_add(&c->meter, len);
	return 0;
}

static int to_unpack(void *arg, const char *data, size_t len)
{
	struct copy *c = arg;

	meter_add(&c->meter, len);
	return unpack_feed(c->unpack, data, len, &c->e);
}

static int download(struct session *s, const char *url, int (*sink)(void *, const char *, size_t),
		    struct copy *c)
{
	struct api_answer answer = { 0 };
	struct api_call call = { .method = "GET",
				 .path = url,
				 .accept = "*/*",
				 .sink = sink,
				 .arg = c,
				 .timeout_ms = API_ENDLESS };
	int r = api_call(&s->api, &call, &answer, &s->problem);

	api_answer_free(&answer);
	return r;
}

/* A name beside @to that nobody has; the descriptor, or -errno. */
static int open_beside(const char *to, unsigned int mode, struct buf *ret)
{
	for (int i = 0; i < 100; i++) {
		uint32_t number;
		size_t len;
		const char *base = place_base(to, &len);

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

int copy_get_file(struct session *s, const char *name, const char *path, const char *to,
		  unsigned int mode, struct copied *ret)
{
	_buf_ struct buf url = BUF_INIT(64u << 10), beside = BUF_INIT(8192);
	struct copy c = { .fd = STDOUT_FILENO };
	bool direct = strcmp(to, "-") == 0;
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
	int r = download(s, buf_str(&url), to_file, &c);

	if (r == 0 && !direct && !special && rename(buf_str(&beside), to) < 0) {
		(void)err_set(&c.e, -errno, "write %s", to);
		r = -1;
	}
	if (r < 0 && !direct && !special)
		(void)unlink(buf_str(&beside));
	return finish(s, &c, r, ret);
}

int copy_get_dir(struct session *s, const char *name, const char *path, const char *to,
		 struct copied *ret)
{
	_buf_ struct buf url = BUF_INIT(64u << 10);
	struct copy c = { .fd = -1 };

	if (mkdir(to, 0777) < 0 && errno != EEXIST) {
		(void)err_set(&c.e, -errno, "make the directory %s", to);
		return problem_ours(&s->problem, &c.e);
	}
	_fd_ int dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		(void)err_set(&c.e, -errno, "%s", to);
	else
		c.unpack = unpack_open(dir, &c.e);
	if (!c.unpack)
		return problem_ours(&s->problem, &c.e);
	file_path(&url, name, "/files/tar", path);
	meter_begin(&c.meter, 0);
	int r = download(s, buf_str(&url), to_unpack, &c);

	if (r == 0)
		r = unpack_end(c.unpack, &c.e) < 0 ? -1 : 0;
	ret->skipped = unpack_skipped(c.unpack);
	unpack_close(c.unpack);
	return finish(s, &c, r, ret);
}
