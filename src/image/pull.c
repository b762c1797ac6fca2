/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull.c - Manifest, configuration, layers; then all of it gets its names at once.
 *
 * Theory of operation. The configuration comes before the layers, because it says what they are
 * when unpacked: a layer that is in the store under that digest is not loaded. The others are
 * loaded LOADS_MAX at a time into files of the store (so that what was loaded survives us), and
 * each is unpacked when it is there and its digest is right, a process per processor, while others
 * are still loading. One thread: libcurl's handle and the reports of the unpackers are waited for
 * together.
 */
#include "image/pull.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "image/digest.h"
#include "image/layer.h"
#include "image/manifest.h"
#include "image/publish.h"
#include "image/transfer.h"

#define LOADS_MAX 3
#define STEP_MS 100

struct pull_layer {
	enum show_state state;
	struct transfer transfer;
	struct layer_job job;
	char tree[STORE_NAME_MAX]; /* unpacked, not kept yet; "" otherwise */
	char seal[IMAGE_DIGEST_MAX];
};

struct pull {
	const struct store *s;
	struct registry r;
	struct show *show;
	struct pull_result *ret;
	struct buf manifest, config;
	struct manifest m;
	struct config c;
	struct pull_layer *layers;
};

/* ---- documents ----------------------------------------------------------------------------- */

/* A small one into @ret; @type: its Content-Type, or NULL. */
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
	if (r < 0 && e)
		*e = t.err;
	if (r == 0) {
		buf_clear(ret);
		r = buf_append(ret, buf_str(&t.body), t.body.len);
		if (r < 0)
			r = err_set(e, r, "keep the manifest");
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
	char type[128];
	struct blob one;
	int kind, r;

	r = get(p, "manifests", ref->digest[0] ? ref->digest : ref->tag, NULL, &p->manifest,
		p->ret->digest, type, e);
	if (r == 0 && ref->digest[0] && strcmp(ref->digest, p->ret->digest) != 0)
		r = err_say(e, -EBADMSG,
			    "the registry's manifest is %s, not the %s that was asked for",
			    p->ret->digest, ref->digest);
	if (r < 0)
		return r;
	kind = manifest_kind(buf_str(&p->manifest), p->manifest.len, type, e);
	if (kind < 0)
		return kind;
	if (kind == MANIFEST_INDEX) {
		r = index_choose(buf_str(&p->manifest), p->manifest.len, &here, &one, e);
		if (r == 0)
			r = get(p, "manifests", one.digest, &one, &p->manifest, p->ret->digest,
				NULL, e);
	}
	return r == 0 ? manifest_parse(buf_str(&p->manifest), p->manifest.len, &p->m, e) : r;
}

static int check_config(const struct pull *p, struct err *e)
{
	const struct platform here = platform_here();

	if (p->c.n_layers != p->m.n_layers)
		return err_say(e, -EBADMSG, "the image has %zu layers and %zu in its configuration",
			       p->m.n_layers, p->c.n_layers);
	if (strcmp(p->c.os, here.os) != 0 || strcmp(p->c.arch, here.arch) != 0)
		return err_say(e, -ENOENT, "the image is made for %s/%s, and this machine is %s/%s",
			       p->c.os, p->c.arch, here.os, here.arch);
	return 0;
}

static int get_config(struct pull *p, struct err *e)
{
	char digest[IMAGE_DIGEST_MAX];
	int r = store_blob_read(p->s, p->m.config.digest, &p->config, NULL);

	if (r < 0)
		r = get(p, "blobs", p->m.config.digest, &p->m.config, &p->config, digest, NULL, e);
	if (r == 0)
		r = config_parse(buf_str(&p->config), p->config.len, &p->c, e);
	return r == 0 ? check_config(p, e) : r;
}

/* ---- layers -------------------------------------------------------------------------------- */

/* An image may have the same layer twice. */
static bool is_repeated(const struct pull *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(p->c.diff_ids[k], p->c.diff_ids[i]) == 0)
			return true;
	return false;
}

static void plan_layers(struct pull *p)
{
	for (size_t i = 0; i < p->m.n_layers; i++) {
		(void)show_add(p->show, p->m.layers[i].digest, p->m.layers[i].size);
		p->layers[i].transfer.fd = -1;
		p->layers[i].job = LAYER_JOB_NONE;
	}
	for (size_t i = 0; i < p->m.n_layers; i++)
		if (store_has_layer(p->s, p->c.diff_ids[i]) || is_repeated(p, i)) {
			p->layers[i].state = SHOW_HERE;
			show_row(p->show, i, SHOW_HERE, p->m.layers[i].size);
		}
}

static int begin_load(struct pull *p, size_t i, struct err *e)
{
	struct pull_layer *l = &p->layers[i];
	int fd = store_part_open(p->s, p->m.layers[i].digest, e);

	if (fd < 0)
		return fd;
	l->transfer = (struct transfer){ .kind = "blobs",
					 .what = p->m.layers[i].digest,
					 .digest = p->m.layers[i].digest,
					 .size = p->m.layers[i].size,
					 .fd = fd };
	l->state = SHOW_LOADS;
	transfer_begin(&l->transfer, &p->r);
	p->ret->bytes -= l->transfer.have; /* those were here */
	return 0;
}

static int end_load(struct pull *p, size_t i, struct err *e)
{
	struct pull_layer *l = &p->layers[i];

	if (l->transfer.state == TRANSFER_FAILED) {
		*e = l->transfer.err;
		if (e->code == -EBADMSG || e->code == -EFBIG)
			store_part_drop(p->s, p->m.layers[i].digest);
		return e->code;
	}
	p->ret->bytes += l->transfer.have;
	p->ret->loaded++;
	l->state = SHOW_LOADED;
	return 0;
}

static int begin_unpack(struct pull *p, size_t i, struct err *e)
{
	struct pull_layer *l = &p->layers[i];
	int r = layer_begin(&l->job, p->s, l->transfer.fd, p->m.layers[i].size, e);

	if (r == 0)
		l->state = SHOW_UNPACKS;
	return r;
}

static int end_unpack(struct pull *p, size_t i, struct err *e)
{
	struct pull_layer *l = &p->layers[i];
	struct unpack_report report;
	int r = layer_end(&l->job, p->s, p->c.diff_ids[i], &report, e);

	if (r < 0) {
		store_part_drop(p->s, p->m.layers[i].digest);
		return err_wrap(e, "layer %zu", i + 1);
	}
	memcpy(l->tree, l->job.tree, sizeof(l->tree));
	memcpy(l->seal, report.seal, sizeof(l->seal));
	l->transfer.fd = fd_close(l->transfer.fd);
	l->state = SHOW_DONE;
	p->ret->dropped.devices += report.devices;
	p->ret->dropped.set_ids += report.set_ids;
	p->ret->dropped.xattrs += report.xattrs;
	p->ret->dropped.ids += report.ids;
	return 0;
}

static size_t count(const struct pull *p, enum show_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < p->m.n_layers; i++)
		n += p->layers[i].state == state;
	return n;
}

/* Begin what there is room for. */
static int begin_some(struct pull *p, struct err *e)
{
	size_t unpackers = get_nprocs() > 1 ? (size_t)get_nprocs() : 1;
	int r = 0;

	for (size_t i = 0; i < p->m.n_layers && r == 0; i++) {
		enum show_state state = p->layers[i].state;

		if (state == SHOW_WAITS && count(p, SHOW_LOADS) < LOADS_MAX)
			r = begin_load(p, i, e);
		else if (state == SHOW_LOADED && count(p, SHOW_UNPACKS) < unpackers)
			r = begin_unpack(p, i, e);
	}
	return r;
}

/* Wait for whatever runs, and take what has ended. */
static int step(struct pull *p, struct err *e)
{
	struct transfer *loads[IMAGE_LAYERS_MAX];
	struct curl_waitfd reports[IMAGE_LAYERS_MAX];
	size_t of[IMAGE_LAYERS_MAX], n = 0;
	unsigned int n_reports = 0;
	int r = 0;

	for (size_t i = 0; i < p->m.n_layers; i++) {
		struct pull_layer *l = &p->layers[i];

		if (l->state == SHOW_LOADS)
			loads[n++] = &l->transfer;
		if (l->state == SHOW_UNPACKS) {
			of[n_reports] = i;
			reports[n_reports++] =
				(struct curl_waitfd){ l->job.files.report, CURL_WAIT_POLLIN, 0 };
		}
	}
	transfers_step(&p->r, loads, n, reports, n_reports, STEP_MS);
	for (unsigned int k = 0; k < n_reports && r == 0; k++)
		if (reports[k].revents)
			r = end_unpack(p, of[k], e);
	for (size_t i = 0; i < p->m.n_layers && r == 0; i++)
		if (p->layers[i].state == SHOW_LOADS && transfer_over(&p->layers[i].transfer))
			r = end_load(p, i, e);
	for (size_t i = 0; i < p->m.n_layers; i++)
		show_row(p->show, i, p->layers[i].state,
			 p->layers[i].state == SHOW_HERE ? p->m.layers[i].size :
							   p->layers[i].transfer.have);
	show_tick(p->show);
	return r;
}

static int get_layers(struct pull *p, struct err *e)
{
	int r = 0;

	p->layers = calloc(p->m.n_layers, sizeof(*p->layers));
	if (!p->layers)
		return err_set(e, -ENOMEM, "pull an image");
	plan_layers(p);
	p->ret->layers = p->m.n_layers;
	while (r == 0 && count(p, SHOW_DONE) + count(p, SHOW_HERE) < p->m.n_layers) {
		r = begin_some(p, e);
		if (r == 0)
			r = step(p, e);
	}
	return r;
}

static void free_layers(struct pull *p)
{
	for (size_t i = 0; p->layers && i < p->m.n_layers; i++) {
		struct pull_layer *l = &p->layers[i];

		layer_abort(&l->job, p->s);
		if (l->tree[0])
			store_tree_drop(p->s, l->tree);
		if (l->transfer.r)
			transfer_end(&l->transfer);
		fd_close(l->transfer.fd);
	}
	free(p->layers);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int publish_it(struct pull *p, struct err *e)
{
	struct publish_layer layers[IMAGE_LAYERS_MAX];
	const struct publish what = { .ref = p->ret->ref,
				      .digest = p->ret->digest,
				      .config_digest = p->m.config.digest,
				      .manifest = &p->manifest,
				      .config = &p->config,
				      .layers = layers,
				      .n_layers = p->m.n_layers };
	int r;

	/* Everything is unpacked: what was loaded goes before the image is brought to the disk, not
	 * with it. */
	for (size_t i = 0; i < p->m.n_layers; i++) {
		store_part_drop(p->s, p->m.layers[i].digest);
		layers[i] = (struct publish_layer){ p->c.diff_ids[i], p->layers[i].tree,
						    p->layers[i].seal };
	}
	r = publish(p->s, &what, e);
	for (size_t i = 0; i < p->m.n_layers && r == 0; i++)
		p->layers[i].tree[0] = '\0';
	return r;
}

/* What was loaded is for the next try; but not where it is what fills the disk. */
static void free_room(const struct pull *p, int error)
{
	for (size_t i = 0; (error == -ENOSPC || error == -EDQUOT) && i < p->m.n_layers; i++)
		store_part_drop(p->s, p->m.layers[i].digest);
}

static int pull_all(struct pull *p, struct err *e)
{
	int r = get_manifest(p, e);

	if (r == 0)
		r = get_config(p, e);
	if (r == 0)
		r = get_layers(p, e);
	return r == 0 ? publish_it(p, e) : r;
}

int pull(const struct store *s, const struct ref *ref, const struct registry_options *o,
	 struct show *show, struct pull_result *ret, struct err *e)
{
	struct pull p = { .s = s, .show = show, .ret = ret };
	int r;

	*ret = (struct pull_result){ 0 };
	ref_format(ref, ret->ref);
	buf_init(&p.manifest, MANIFEST_BYTES_MAX + 1);
	buf_init(&p.config, MANIFEST_BYTES_MAX + (64u << 10));
	r = registry_open(&p.r, ref, o, e);
	if (r == 0)
		r = pull_all(&p, e);
	show_end(show);
	free_layers(&p);
	free_room(&p, r);
	config_free(&p.c);
	buf_free(&p.manifest);
	buf_free(&p.config);
	registry_close(&p.r);
	return r;
}
