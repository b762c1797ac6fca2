/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull.c - `caisson image pull`: manifest, configuration, layers; then all of it gets its names at
 * once.
 *
 * Theory of operation. The configuration comes before the layers, because it has the digests of the
 * unpacked layers: a layer that the store has under such a digest is not loaded. The others are
 * loaded, LOADS_MAX at a time, into files of the store, which a later pull continues if this one
 * ends. A layer is unpacked as soon as its file is complete and has the right digest, while others
 * are still loading, with as many unpackers at once as there are processors. One thread waits for
 * libcurl's handle and for the reports of the unpackers together.
 */
#include "image/incoming.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/registry.h"
#include "image/transfer.h"
#include "image/verbs.h"

#define LOADS_MAX 3
#define STEP_MS 100

struct pull_layer {
	enum show_state state;
	struct transfer transfer;
};

struct pull {
	struct incoming in;
	struct registry r;
	struct pull_layer *layers;
};

/* ---- documents ----------------------------------------------------------------------------- */

/* A document into @ret; @type: gets its Content-Type, may be NULL. */
static int get(struct pull *p, const char *kind, const char *what, const struct blob *want,
	       struct buf *ret, char *digest, char type[128], struct err *e)
{
	struct transfer t = { .kind = kind,
			      .what = what,
			      .digest = want ? want->digest : NULL,
			      .size = want ? want->size : 0,
			      .fd = -1 };
	int r;

	transfer_begin(&t, &p->r);
	r = transfer_wait(&t);
	if (r < 0) {
		*e = t.err;
	} else {
		buf_clear(ret);
		r = buf_append(ret, buf_str(&t.body), t.body.len);
		if (r < 0)
			(void)err_set(e, r, "keep the manifest");
		(void)snprintf(digest, IMAGE_DIGEST_MAX, "%s", t.got);
		if (type)
			memcpy(type, t.type, sizeof(t.type));
	}
	transfer_end(&t);
	return r;
}

static int get_manifest(struct pull *p, struct err *e)
{
	const struct ref *ref = &p->r.ref;
	const struct platform here = platform_here();
	struct buf *text = &p->in.manifest;
	char type[128], *digest = p->in.ret->digest;
	struct blob one;
	int r = get(p, "manifests", ref->digest[0] ? ref->digest : ref->tag, NULL, text, digest,
		    type, e);

	if (r < 0)
		return r;
	if (ref->digest[0] && strcmp(ref->digest, digest) != 0)
		return err_say(e, -EBADMSG, "the registry's manifest is %s, not the requested %s",
			       digest, ref->digest);
	r = manifest_kind(buf_str(text), text->len, type, e);
	if (r == MANIFEST_INDEX) {
		r = index_choose(buf_str(text), text->len, &here, &one, e);
		if (r == 0)
			r = get(p, "manifests", one.digest, &one, text, digest, NULL, e);
	}
	return r < 0 ? r : manifest_parse(buf_str(text), text->len, &p->in.m, e);
}

static int get_config(struct pull *p, struct err *e)
{
	const struct blob *config = &p->in.m.config;
	char digest[IMAGE_DIGEST_MAX];
	int r = store_blob_read(p->in.s, config->digest, &p->in.config, NULL);

	if (r < 0)
		r = get(p, "blobs", config->digest, config, &p->in.config, digest, NULL, e);
	return r < 0 ? r : incoming_check(&p->in, e);
}

/* ---- layers -------------------------------------------------------------------------------- */

static void plan_layers(struct pull *p)
{
	for (size_t i = 0; i < p->in.m.n_layers; i++) {
		p->layers[i].transfer.fd = -1;
		if (incoming_has(&p->in, i)) {
			p->layers[i].state = SHOW_HERE;
			show_row(p->in.show, i, SHOW_HERE, p->in.m.layers[i].size);
		}
	}
}

static int begin_load(struct pull *p, size_t i, struct err *e)
{
	const struct blob *b = &p->in.m.layers[i];
	struct pull_layer *l = &p->layers[i];
	int fd = store_part_open(p->in.s, b->digest, e);

	if (fd < 0)
		return fd;
	l->transfer = (struct transfer){
		.kind = "blobs", .what = b->digest, .digest = b->digest, .size = b->size, .fd = fd
	};
	l->state = SHOW_LOADS;
	transfer_begin(&l->transfer, &p->r);
	p->in.ret->bytes -= l->transfer.have; /* an earlier pull loaded those */
	return 0;
}

static int end_load(struct pull *p, size_t i, struct err *e)
{
	struct pull_layer *l = &p->layers[i];

	if (l->transfer.err.code) {
		*e = l->transfer.err;
		if (e->code == -EBADMSG || e->code == -EFBIG)
			store_part_drop(p->in.s, p->in.m.layers[i].digest);
		return e->code;
	}
	p->in.ret->bytes += l->transfer.have;
	l->state = SHOW_LOADED;
	return 0;
}

static int begin_unpack(struct pull *p, size_t i, struct err *e)
{
	int r = incoming_begin(&p->in, i, p->layers[i].transfer.fd, e);

	if (r == 0)
		p->layers[i].state = SHOW_UNPACKS;
	return r;
}

static int end_unpack(struct pull *p, size_t i, struct err *e)
{
	struct pull_layer *l = &p->layers[i];
	int r = incoming_end(&p->in, i, e);

	if (r < 0) {
		store_part_drop(p->in.s, p->in.m.layers[i].digest);
		return r;
	}
	l->transfer.fd = fd_close(l->transfer.fd);
	l->state = SHOW_DONE;
	return 0;
}

static size_t count(const struct pull *p, enum show_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < p->in.m.n_layers; i++)
		n += p->layers[i].state == state;
	return n;
}

/* Begin as many loads and unpackers as may run at once. */
static int begin_some(struct pull *p, struct err *e)
{
	size_t unpackers = get_nprocs() > 1 ? (size_t)get_nprocs() : 1;
	int r = 0;

	for (size_t i = 0; i < p->in.m.n_layers && r == 0; i++) {
		enum show_state state = p->layers[i].state;

		if (state == SHOW_WAITS && count(p, SHOW_LOADS) < LOADS_MAX)
			r = begin_load(p, i, e);
		else if (state == SHOW_LOADED && count(p, SHOW_UNPACKS) < unpackers)
			r = begin_unpack(p, i, e);
	}
	return r;
}

/* Wait for loads and unpackers that run, and take the results of those that ended. */
static int step(struct pull *p, struct err *e)
{
	struct transfer *loads[IMAGE_LAYERS_MAX];
	struct curl_waitfd reports[IMAGE_LAYERS_MAX];
	size_t of[IMAGE_LAYERS_MAX], n = 0;
	unsigned int n_reports = 0;
	int r = 0;

	for (size_t i = 0; i < p->in.m.n_layers; i++) {
		struct pull_layer *l = &p->layers[i];

		if (l->state == SHOW_LOADS)
			loads[n++] = &l->transfer;
		if (l->state == SHOW_UNPACKS) {
			of[n_reports] = i;
			reports[n_reports++] =
				(struct curl_waitfd){ p->in.layers[i].job.files.report,
						      CURL_WAIT_POLLIN, 0 };
		}
	}
	transfers_step(&p->r, loads, n, reports, n_reports, STEP_MS);
	for (unsigned int k = 0; k < n_reports && r == 0; k++)
		if (reports[k].revents)
			r = end_unpack(p, of[k], e);
	for (size_t i = 0; i < p->in.m.n_layers && r == 0; i++)
		if (p->layers[i].state == SHOW_LOADS && transfer_over(&p->layers[i].transfer))
			r = end_load(p, i, e);
	for (size_t i = 0; i < p->in.m.n_layers; i++)
		show_row(p->in.show, i, p->layers[i].state,
			 p->layers[i].state == SHOW_HERE ? p->in.m.layers[i].size :
							   p->layers[i].transfer.have);
	show_tick(p->in.show);
	return r;
}

static int get_layers(struct pull *p, struct err *e)
{
	size_t n = p->in.m.n_layers;
	int r = 0;

	p->layers = calloc(n, sizeof(*p->layers));
	if (!p->layers)
		return err_set(e, -ENOMEM, "pull an image");
	plan_layers(p);
	while (r == 0 && count(p, SHOW_DONE) + count(p, SHOW_HERE) < n) {
		r = begin_some(p, e);
		if (r == 0)
			r = step(p, e);
	}
	return r;
}

static void free_layers(struct pull *p)
{
	for (size_t i = 0; p->layers && i < p->in.m.n_layers; i++) {
		struct transfer *t = &p->layers[i].transfer;

		if (t->r)
			transfer_end(t);
		fd_close(t->fd);
	}
	free(p->layers);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void drop_parts(const struct pull *p)
{
	for (size_t i = 0; i < p->in.m.n_layers; i++)
		store_part_drop(p->in.s, p->in.m.layers[i].digest);
}

static int pull_all(struct pull *p, const struct ref *ref, const struct registry_options *o,
		    struct err *e)
{
	int r;

	if ((r = registry_open(&p->r, ref, o, e)) < 0 || (r = get_manifest(p, e)) < 0 ||
	    (r = get_config(p, e)) < 0 || (r = get_layers(p, e)) < 0)
		return r;
	/* Everything is unpacked: the archives need not be synced to the disk. */
	drop_parts(p);
	return incoming_publish(&p->in, e);
}

/* On failure the store is as it was, except that archives of layers that were begun are kept, for
 * another try. */
int verb_pull(const struct image_options *o, struct store *s, struct err *e)
{
	const struct registry_options ro = { o->insecure, o->ca, o->authfile };
	struct incoming_result result;
	struct pull p = { .layers = NULL };
	struct show show;
	struct ref ref;
	char text[IMAGE_REF_MAX + 16];
	int r;

	if ((r = ref_parse(o->rest[0], &ref, e)) < 0 ||
	    (r = image_allowed(o->allow, &ref, e)) < 0 || (r = image_change(o, s, e)) < 0)
		return r;
	show_begin(&show, o->json, o->quiet);
	(void)snprintf(text, sizeof(text), "pulling %s", o->rest[0]);
	show_step(&show, "pulling", text);
	incoming_init(&p.in, s, &show, &result);
	ref_format(&ref, result.ref);
	r = pull_all(&p, &ref, &ro, e);
	free_layers(&p);
	/* Archives that were loaded are for the next try, unless they are what fills the disk. */
	if (r == -ENOSPC || r == -EDQUOT)
		drop_parts(&p);
	incoming_free(&p.in);
	registry_close(&p.r);
	if (r == 0)
		image_done(o, &result);
	return r;
}
