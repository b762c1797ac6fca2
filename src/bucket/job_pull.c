/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_pull.c - All objects of a place as one tar archive; and whether they have changed since.
 *
 * First comes the list, so that invalid keys are refused before anything is written. Then small
 * objects are read, several at a time into memory; large ones one by one, straight into the
 * archive. Each request names the version of the list: an object that changes meanwhile ends the
 * job, and nothing of it is used.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "archive/tar_writer.h"
#include "base/err.h"
#include "bucket/bucket.h"
#include "hash/hash.h"

#define SMALL_BYTES (1u << 20)
#define AT_ONCE 16u

struct pull {
	struct job *j;
	struct tar_writer out;
	const struct listing *all;
	const char *last;  /* the path before */
	struct manifest m; /* of the objects so far */
	struct hash hash;
	struct err *e;
};

/* A request for one object. */
struct want {
	const struct s3_object *o;
	struct s3_call call;
	char key[S3_KEY_MAX + 1];
	char match[S3_ETAG_MAX + 3];
};

static bool is_dir(const struct s3_object *o)
{
	return o->key[o->key_len - 1] == '/';
}

static int failed(struct pull *p, const struct s3_object *o, int r)
{
	char shown[120];

	return r < 0 ? err_wrap(p->e, "get '%s'",
				s3_key_show(o->key, o->key_len, shown, sizeof(shown))) :
		       0;
}

static int write_error(struct pull *p, int r)
{
	return r < 0 ? err_set(p->e, r, "hand the files over") : 0;
}

/* ---- the archive --------------------------------------------------------------------------- */

static int put_entry(const struct pull *p, const char *path, bool dir, uint64_t size, int64_t mtime)
{
	const struct tar_entry en = { .type = dir ? '5' : '0',
				      .mode = dir ? 0755 : 0644,
				      .size = size,
				      .mtime = mtime,
				      .path = path };

	return tar_put_head(&p->out, &en);
}

/* The directories that @o is in and the one before was not. */
static int put_parents(struct pull *p, const struct s3_object *o)
{
	for (char *slash = strchr(o->key, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t len = (size_t)(slash - o->key);
		char path[S3_KEY_MAX + 1];

		if (p->last && strncmp(p->last, o->key, len + 1) == 0)
			continue;
		memcpy(path, o->key, len);
		path[len] = '\0';
		int r = put_entry(p, path, true, 0, o->mtime);

		if (r < 0)
			return write_error(p, r);
	}
	p->last = o->key;
	return 0;
}

static int put_head(struct pull *p, const struct s3_object *o)
{
	int r = put_parents(p, o);

	if (r == 0 && is_dir(o))
		r = manifest_set(&p->m, o->key, o->size, o->etag, "");
	hash_begin(&p->hash);
	if (r < 0 || is_dir(o))
		return r < 0 && !p->e->code ? err_set(p->e, r, "remember a directory") : r;
	return write_error(p, put_entry(p, o->key, false, o->size, o->mtime));
}

/* Its content has been handed over, and hashed. */
static int put_tail(struct pull *p, const struct s3_object *o)
{
	char hash[S3_HASH_HEX + 1];
	int r = hash_end(&p->hash, hash) ? 0 : -EIO;

	p->j->r.files++;
	job_moved(p->j);
	if (r == 0)
		r = manifest_set(&p->m, o->key, o->size, o->etag, hash);
	if (r < 0)
		return err_set(p->e, r, "note an object in the manifest");
	return write_error(p, tar_put_padding(&p->out, o->size));
}

static int put_content(struct pull *p, const char *data, size_t len)
{
	hash_add(&p->hash, data, len);
	return p->out.put(p->out.arg, data, len);
}

/* ---- objects ------------------------------------------------------------------------------- */

static int prepare(struct pull *p, struct want *w, const struct s3_object *o)
{
	*w = (struct want){ .o = o };
	int n = snprintf(w->key, sizeof(w->key), "%s%s", p->j->place->prefix, o->key);

	if (n < 0 || (size_t)n >= sizeof(w->key))
		return err_say(p->e, -ENAMETOOLONG, "its key is longer than 1024 bytes");
	w->call.method = "GET";
	w->call.bucket = p->j->place->bucket;
	w->call.key = w->key;
	if (o->etag[0]) {
		(void)snprintf(w->match, sizeof(w->match), "\"%s\"", o->etag);
		w->call.headers[w->call.n_headers++] = (struct s3_header){ "if-match", w->match };
	}
	return 0;
}

static int check(struct pull *p, const struct want *w, uint64_t got)
{
	if (w->call.status == 404 || w->call.status == 412 ||
	    (w->call.status / 100 == 2 && got != w->o->size))
		return err_say(p->e, -EAGAIN, "it changed while the bucket was read; try again");
	return s3_check(&w->call, p->e);
}

/* Several small ones from @at on. Return: how many, or a negative errno. */
static int pull_small(struct pull *p, size_t at)
{
	static struct want wants[AT_ONCE];
	struct s3_call *calls[AT_ONCE];
	size_t n = 0;
	int r = 0;

	for (; r == 0 && n < AT_ONCE && at + n < p->all->n; n++) {
		const struct s3_object *o = &p->all->list[at + n];

		if (o->size > SMALL_BYTES || is_dir(o))
			break;
		r = failed(p, o, prepare(p, &wants[n], o));
		calls[n] = &wants[n].call;
	}
	if (r == 0)
		r = s3_run(&p->j->client, calls, n, p->e);
	for (size_t i = 0; i < n; i++) {
		const struct s3_object *o = wants[i].o;
		const struct buf *text = &wants[i].call.text;

		if (r == 0)
			r = failed(p, o, check(p, &wants[i], text->len));
		if (r == 0)
			r = put_head(p, o);
		if (r == 0)
			r = write_error(p, put_content(p, buf_str(text), text->len));
		p->j->r.bytes += r == 0 ? o->size : 0;
		if (r == 0)
			r = put_tail(p, o);
		s3_call_free(&wants[i].call);
	}
	return r < 0 ? r : (int)n;
}

static int on_large(void *arg, const char *data, size_t len)
{
	struct pull *p = arg;
	int r = put_content(p, data, len);

	p->j->r.bytes += len;
	job_moved(p->j);
	return r;
}

static int pull_large(struct pull *p, const struct s3_object *o)
{
	struct want w;
	struct s3_call *call = &w.call;
	int r = failed(p, o, prepare(p, &w, o));

	if (r == 0)
		r = put_head(p, o);
	if (r == 0) {
		w.call.sink = on_large;
		w.call.arg = p;
		r = s3_run(&p->j->client, &call, 1, p->e);
		r = failed(p, o, r < 0 ? r : check(p, &w, w.call.got));
		s3_call_free(&w.call);
	}
	return r == 0 ? put_tail(p, o) : r;
}

static int pull_all(struct pull *p)
{
	int r = 0;

	for (size_t at = 0; r >= 0 && at < p->all->n;) {
		const struct s3_object *o = &p->all->list[at];

		if (is_dir(o))
			r = put_head(p, o);
		else if (o->size > SMALL_BYTES)
			r = pull_large(p, o);
		else
			r = pull_small(p, at);
		at += r > 0 ? (size_t)r : 1;
	}
	return r < 0 ? r : write_error(p, tar_put_end(&p->out));
}

int job_pull(struct job *j, struct err *e)
{
	_listing_ struct listing all = { 0 };
	struct pull p = { .j = j, .out = { tar_put_fd, &j->fds[0] }, .all = &all, .e = e };
	int r = listing_read(j, j->q->max_files, j->q->max_bytes, &all, e);

	j->r.total_files = all.n;
	j->r.total_bytes = all.bytes;
	if (r == 0)
		r = pull_all(&p);
	if (r == 0)
		r = manifest_write(j, false, &p.m, e);
	manifest_free(&p.m);
	hash_close(&p.hash);
	return r;
}

int job_look(struct job *j, struct err *e)
{
	_listing_ struct listing all = { 0 };
	_manifest_ struct manifest m = { 0 };
	int r = manifest_read(j, &m, e);

	if (r == 0)
		r = listing_read(j, 0, 0, &all, e);
	if (r < 0)
		return r;
	bool same = all.n == m.n;

	for (size_t i = 0; same && i < m.n; i++)
		same = strcmp(all.list[i].key, m.list[i].path) == 0 &&
		       all.list[i].size == m.list[i].size &&
		       strcmp(all.list[i].etag, m.list[i].etag) == 0;
	j->r.changed = !same;
	j->r.total_files = all.n;
	j->r.total_bytes = all.bytes;
	return 0;
}
