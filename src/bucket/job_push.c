/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_push.c - The changes of a workspace go into its bucket; one object goes there; reports of
 * progress.
 *
 * The manifest lists the content of the bucket when both were the same. The tree comes twice, as
 * tar: the first time it is only hashed, which finds changed and removed files; the second time the
 * changed files are put. So the history of the tree does not matter, nor what a failed job put
 * before.
 *
 * Before anything is written, the bucket is listed. If an object that would be replaced or removed
 * is not the one of the manifest, somebody else wrote it, and the job does nothing. Each object is
 * put on the condition that this has not changed. The manifest is written also when the job fails
 * in the middle: the next job goes on from there.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "bucket/bucket.h"
#include "hash/hash.h"
#include "s3/object.h"

#define NAMED 3u
#define CHUNK (256u << 10)
#define TELL_NS (CLOCK_NS_PER_S / 4)

void job_moved(struct job *j)
{
	struct pollfd p = { .fd = j->answer, .events = POLLOUT };
	uint64_t now = clock_now_ns();

	/* A front that does not read now gets a later report: never wait for it. */
	if (now - j->told_ns < TELL_NS || poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return;
	j->told_ns = now;
	j->r.version = BUCKET_VERSION;
	j->r.say = BUCKET_MOVED;
	(void)fd_write_all(j->answer, &j->r, sizeof(j->r));
}

/* ---- one object ---------------------------------------------------------------------------- */

static int from_pipe(void *arg, char *data, size_t len)
{
	const struct job *j = arg;
	ssize_t n = fd_read_full(j->fds[0], data, len);

	/* Less than @len: the file became shorter, or the job was given up. */
	return n < 0 ? (int)n : (size_t)n < len ? -ENODATA : 0;
}

static void put_moved(void *arg, uint64_t bytes)
{
	struct job *j = arg;

	j->r.bytes = bytes;
	job_moved(j);
}

int job_put(struct job *j, struct err *e)
{
	_buf_ struct buf key = BUF_INIT(S3_KEY_MAX), link = BUF_INIT(sizeof(j->r.link) - 1);
	const char *problem = s3_key_problem(j->q->key, strlen(j->q->key));
	struct s3_new n = { .bucket = j->place->bucket,
			    .size = j->q->size,
			    .type = j->q->type[0] ? j->q->type : NULL };

	if (problem)
		return err_say(e, -EINVAL, "the name %s", problem);
	if (buf_printf(&key, "%s%s", j->place->prefix, j->q->key) < 0)
		return err_say(e, -EINVAL, "the name is longer than 1024 bytes");
	if (n.type && strpbrk(n.type, "\r\n"))
		return err_say(e, -EINVAL, "the type is not valid in a header");
	n.key = buf_str(&key);
	j->r.total_bytes = n.size;
	int r = s3_put(&j->client, &n, from_pipe, j, put_moved, e);

	if (r < 0)
		return r;
	j->r.bytes = n.size;
	if (!j->q->expires)
		return 0;
	r = s3_link(&j->client, n.bucket, n.key, j->q->expires, &link);
	if (r < 0)
		return err_set(e, r, "make a link");
	memcpy(j->r.link, buf_str(&link), link.len + 1);
	return 0;
}

/* ---- changes ------------------------------------------------------------------------------- */

struct push {
	struct job *j;
	struct archive_in first, second; /* the tree, to be hashed and to be put */
	struct manifest m;               /* what the bucket holds, as it changes */
	struct manifest todo;            /* what is to be put: size and hash */
	struct listing now;
	struct hash hash;
	uint64_t done; /* bytes before the object at hand */
	size_t odd;    /* entries that no bucket can hold */
	struct buf odd_names;
	struct err *e;
};

static int hash_entry(struct push *p, const struct tar_entry *a, char out[S3_HASH_HEX + 1])
{
	static char data[CHUNK];
	uint64_t left = a->size;
	int r = 0;

	hash_begin(&p->hash);
	while (r == 0 && left > 0) {
		size_t n = left < sizeof(data) ? (size_t)left : sizeof(data);

		r = archive_read(&p->first, data, n);
		hash_add(&p->hash, data, n);
		left -= n;
	}
	return r == 0 && !hash_end(&p->hash, out) ? -EIO : r;
}

static int look_at_file(struct push *p, const struct tar_entry *a)
{
	struct manifest_line *was = manifest_find(&p->m, a->path);
	char hash[S3_HASH_HEX + 1];
	int r = hash_entry(p, a, hash);

	if (was)
		was->seen = true;
	if (r < 0 || (was && was->size == a->size && strcmp(was->sha256, hash) == 0))
		return r;
	p->j->r.total_bytes += a->size;
	return manifest_set(&p->todo, a->path, a->size, "", hash);
}

/* A bucket has no directories, except those with a mark, and no links and pipes. */
static void look_at_other(struct push *p, const struct tar_entry *a)
{
	char shown[80], mark[S3_KEY_MAX + 3];
	struct manifest_line *was;

	(void)snprintf(mark, sizeof(mark), "%s/", a->path);
	was = a->type == '5' ? manifest_find(&p->m, mark) : NULL;
	if (was)
		was->seen = true;
	if (a->type != '5' && p->odd++ < NAMED)
		(void)buf_printf(&p->odd_names, "%s'%s'", p->odd > 1 ? ", " : "",
				 s3_key_show(a->path, strlen(a->path), shown, sizeof(shown)));
}

static int look(struct push *p)
{
	struct tar_entry a;
	int r;

	while ((r = archive_next(&p->first, &a, p->e)) > 0) {
		const char *problem = s3_key_problem(a.path, strlen(a.path));
		char shown[120];

		if (problem)
			return err_say(p->e, -EINVAL, "'%s' is not a valid key of a bucket: it %s",
				       s3_key_show(a.path, strlen(a.path), shown, sizeof(shown)),
				       problem);
		if (a.type == '0')
			r = look_at_file(p, &a);
		else
			look_at_other(p, &a);
		if (r < 0)
			return err_set(p->e, r, "read the workspace");
	}
	return r;
}

/* ---- conflicts ----------------------------------------------------------------------------- */

/* Whether the bucket has the object of the manifest at @path. Without both ETags, existence
 * decides. */
static bool as_it_was(const struct push *p, const char *path)
{
	const struct manifest_line *was = manifest_find(&p->m, path);
	const struct s3_object *is = listing_find(&p->now, path);

	if (!was || !is)
		return !was && !is;
	return !was->etag[0] || !is->etag[0] || strcmp(was->etag, is->etag) == 0;
}

static void name_conflict(const char *path, struct buf *names, size_t *n)
{
	char shown[100];

	if ((*n)++ < NAMED)
		(void)buf_printf(names, "%s'%s'", *n > 1 ? ", " : "",
				 s3_key_show(path, strlen(path), shown, sizeof(shown)));
}

static int find_conflicts(struct push *p)
{
	_buf_ struct buf names = BUF_INIT(400);
	size_t n = 0;

	for (size_t i = 0; i < p->todo.n; i++)
		if (!as_it_was(p, p->todo.list[i].path))
			name_conflict(p->todo.list[i].path, &names, &n);
	for (size_t i = 0; i < p->m.n; i++)
		if (!p->m.list[i].seen && listing_find(&p->now, p->m.list[i].path) &&
		    !as_it_was(p, p->m.list[i].path))
			name_conflict(p->m.list[i].path, &names, &n);
	return n == 0 ? 0 :
			err_say(p->e, -ESTALE,
				"conflict: the bucket has another version of %s%s; nothing was put",
				buf_str(&names), n > NAMED ? " and others" : "");
}

/* ---- objects ------------------------------------------------------------------------------- */

static int key_of(const struct push *p, const char *path, char out[S3_KEY_MAX + 1])
{
	int n = snprintf(out, S3_KEY_MAX + 1, "%s%s", p->j->place->prefix, path);

	return n < 0 || (size_t)n > S3_KEY_MAX ?
		       err_say(p->e, -ENAMETOOLONG,
			       "'%.100s...': the key is longer than 1024 bytes", path) :
		       0;
}

static int source(void *arg, char *data, size_t len)
{
	struct push *p = arg;
	int r = archive_read(&p->second, data, len);

	if (r == 0)
		hash_add(&p->hash, data, len);
	return r;
}

static void moved(void *arg, uint64_t bytes)
{
	struct push *p = arg;

	p->j->r.bytes = p->done + bytes;
	job_moved(p->j);
}

static int put_one(struct push *p, const struct tar_entry *a)
{
	const struct manifest_line *was = manifest_find(&p->m, a->path);
	char key[S3_KEY_MAX + 1], hash[S3_HASH_HEX + 1];
	struct s3_new n = { .bucket = p->j->place->bucket,
			    .key = key,
			    .size = a->size,
			    .match = !was         ? "" :
				     was->etag[0] ? was->etag :
						    NULL };
	int r = key_of(p, a->path, key);

	hash_begin(&p->hash);
	if (r == 0)
		r = s3_put(&p->j->client, &n, source, p, moved, p->e);
	if (r == 0 && !hash_end(&p->hash, hash))
		r = -EIO;
	if (r == 0)
		r = manifest_set(&p->m, a->path, a->size, n.etag, hash);
	if (r == 0)
		manifest_find(&p->m, a->path)->seen = true;
	p->done += a->size;
	p->j->r.bytes = p->done;
	p->j->r.files++;
	if (r == -ESTALE)
		return err_say(p->e, r, "conflict: the bucket has another version of '%.200s'",
			       a->path);
	return r < 0 && !p->e->code ? err_set(p->e, r, "put '%.200s'", a->path) : r;
}

static int put_all(struct push *p)
{
	struct tar_entry a;
	int r = 0;

	while (p->todo.n > 0 && (r = archive_next(&p->second, &a, p->e)) > 0) {
		if (a.type == '0' && manifest_find(&p->todo, a.path))
			r = put_one(p, &a);
		if (r < 0)
			return r;
	}
	return r;
}

static int remove_gone(struct push *p)
{
	int r = 0;

	for (size_t i = p->m.n; r == 0 && i-- > 0;) {
		struct manifest_line *l = &p->m.list[i];
		char key[S3_KEY_MAX + 1];

		if (l->seen)
			continue;
		r = key_of(p, l->path, key);
		if (r == 0)
			r = s3_remove(&p->j->client, p->j->place->bucket, key, p->e);
		if (r == 0)
			manifest_drop(&p->m, l);
		p->j->r.files++;
		job_moved(p->j);
	}
	return r;
}

/* ---- the job ------------------------------------------------------------------------------- */

static int write_all(struct push *p)
{
	struct err e2 = { 0 };
	int r = put_all(p);

	if (r == 0)
		r = remove_gone(p);
	if (manifest_write(p->j, true, &p->m, &e2) < 0)
		return r < 0 ? r : err_say(p->e, e2.code, "%s", e2.msg);
	return r;
}

static bool is_anything(const struct push *p)
{
	size_t gone = 0;

	for (size_t i = 0; i < p->m.n; i++)
		gone += !p->m.list[i].seen;
	p->j->r.total_files = p->todo.n + gone;
	p->j->r.changed = p->todo.n + gone > 0;
	return p->j->r.changed;
}

int job_push(struct job *j, struct err *e)
{
	struct push p = { .j = j, .e = e, .odd_names = BUF_INIT(300) };
	int r = manifest_read(j, &p.m, e);

	archive_open(&p.first, j->fds[0]);
	archive_open(&p.second, j->fds[1]);
	if (r == 0)
		r = look(&p);
	if (r == 0 && is_anything(&p)) {
		r = listing_read(j, 0, 0, &p.now, e);
		if (r == 0)
			r = find_conflicts(&p);
		if (r == 0)
			r = write_all(&p);
	}
	if (r == 0 && p.odd > 0)
		(void)snprintf(j->r.msg, sizeof(j->r.msg),
			       "%zu links and special files are not in the bucket: %s%s", p.odd,
			       buf_str(&p.odd_names), p.odd > NAMED ? ", and others" : "");
	archive_free(&p.first);
	archive_free(&p.second);
	listing_free(&p.now);
	manifest_free(&p.m);
	manifest_free(&p.todo);
	hash_close(&p.hash);
	buf_free(&p.odd_names);
	return r;
}
