/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.c - Remove images that no reference names and no process uses: mark, then sweep.
 *
 * A manifest that cannot be read stops the collection: its layers are unknown, so no layer may go.
 * A layer is renamed into tmp/ before it is emptied, so half a layer never has a layer's name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/documents.h"
#include "image/image_store.h"

#define HEX_LEN 64
#define DEAD "dead-"

/* Names to keep, of all kinds together: no two kinds can have the same hash. */
struct marks {
	char (*hex)[HEX_LEN + 1];
	size_t n, cap;
};

static int mark(struct marks *m, const char *hex, struct err *e)
{
	if (mem_grow(&m->hex, &m->cap, m->n + 1, sizeof(*m->hex)) < 0)
		return err_set(e, -ENOMEM, "look through the image store");
	(void)snprintf(m->hex[m->n++], sizeof(*m->hex), "%.64s", hex);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool marked(const struct marks *m, const char *hex)
{
	return m->n && bsearch(hex, m->hex, m->n, sizeof(*m->hex), by_text);
}

static int mark_image(const struct store *s, struct marks *m, const char *digest, struct err *e)
{
	struct manifest manifest;
	struct config config;
	int r = store_documents(s, digest, &manifest, &config, e);

	if (r < 0)
		return r;
	if ((r = mark(m, digest_hex(digest), e)) == 0)
		r = mark(m, digest_hex(manifest.config.digest), e);
	for (size_t i = 0; i < config.n_layers && r == 0; i++)
		r = mark(m, digest_hex(config.diff_ids[i]), e);
	config_free(&config);
	return r;
}

static int try_lease(const struct store *s, const char *hex)
{
	_fd_ int fd = openat(s->leases, hex, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

bool gc_in_use(const struct store *s, const char *digest)
{
	return try_lease(s, digest_hex(digest)) == -EWOULDBLOCK;
}

/* ---- directories --------------------------------------------------------------------------- */

struct gc {
	const struct store *s;
	struct marks marks;
	struct gc_result *ret;
	bool parts;
};

static int mark_lease(void *arg, const char *name, struct err *e)
{
	struct gc *gc = arg;
	char digest[IMAGE_DIGEST_MAX];

	(void)snprintf(digest, sizeof(digest), "sha256:%.64s", name);
	if (!ref_digest_ok(digest) || try_lease(gc->s, name) != -EWOULDBLOCK)
		return 0;
	return mark_image(gc->s, &gc->marks, digest, e);
}

static int drop_lease(void *arg, const char *name, struct err *e)
{
	struct gc *gc = arg;

	(void)e;
	if (!marked(&gc->marks, name) && unlinkat(gc->s->leases, name, 0) == 0)
		gc->ret->images++;
	return 0;
}

static int drop_blob(void *arg, const char *name, struct err *e)
{
	struct gc *gc = arg;

	if (marked(&gc->marks, name))
		return 0;
	int r = tree_remove(gc->s->blobs, name, &gc->ret->bytes);

	return r < 0 ? err_set(e, r, "remove %s", name) : 0;
}

static int drop_layer(void *arg, const char *name, struct err *e)
{
	struct gc *gc = arg;
	char dead[STORE_NAME_MAX], hex[HEX_LEN + 1];

	/* A layer and its seal have the same digits; the seal has ".seal" after them. */
	(void)snprintf(hex, sizeof(hex), "%.64s", name);
	if (marked(&gc->marks, hex))
		return 0;
	(void)snprintf(dead, sizeof(dead), DEAD "%.70s", name);
	if (renameat(gc->s->layers, name, gc->s->tmp, dead) < 0)
		return err_set(e, -errno, "remove layer %s", name);
	gc->ret->layers += strlen(name) == HEX_LEN;
	return 0;
}

static int drop_rest(void *arg, const char *name, struct err *e)
{
	struct gc *gc = arg;
	int r = 0;

	if (gc->parts || strncmp(name, DEAD, strlen(DEAD)) == 0)
		r = tree_remove(gc->s->tmp, name, &gc->ret->bytes);
	return r < 0 ? err_set(e, r, "remove %s", name) : 0;
}

static int mark_all(struct gc *gc, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	int r = refs_load(gc->s, &refs, e);

	for (size_t i = 0; i < refs.n && r == 0; i++) {
		r = mark_image(gc->s, &gc->marks, refs.rows[i].digest, e);
		if (r < 0)
			return err_wrap(
				e,
				"%.200s cannot be read, so nothing is removed ('caisson image "
				"rm' it)",
				refs.rows[i].ref);
	}
	if (r == 0)
		r = store_each(gc->s->leases, mark_lease, gc, e);
	if (r == 0 && gc->marks.n > 1)
		qsort(gc->marks.hex, gc->marks.n, sizeof(*gc->marks.hex), by_text);
	return r;
}

static int take_away(struct gc *gc, struct err *e)
{
	_fd_ int lock = store_lock(gc->s, true, e);
	int r;

	if (lock < 0)
		return lock;
	if ((r = mark_all(gc, e)) < 0 || (r = store_each(gc->s->leases, drop_lease, gc, e)) < 0 ||
	    (r = store_each(gc->s->blobs, drop_blob, gc, e)) < 0)
		return r;
	return store_each(gc->s->layers, drop_layer, gc, e);
}

/* Layers lose their names under the lock; their removal delays no process that opens images. */
int gc_run(const struct store *s, bool parts, struct gc_result *ret, struct err *e)
{
	struct gc gc = { .s = s, .ret = ret, .parts = parts };

	*ret = (struct gc_result){ 0 };
	int r = take_away(&gc, e);

	if (r == 0)
		r = store_each(s->tmp, drop_rest, &gc, e);
	free(gc.marks.hex);
	return r;
}
