/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incoming.c - The way of an image into the store: checked, unpacked, published.
 *
 * Publishing is an order that a crash cannot spoil: trees are brought to the disk, then layers,
 * configuration, manifest and lease get their names, and the reference comes last. Files that were
 * made before the reference names them are no image, and the next `prune` removes them. Until then
 * trees lie in tmp, where the next change of the store removes them.
 */
#include "image/incoming.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define DOCUMENT_MAX (MANIFEST_BYTES_MAX + 1)

void incoming_init(struct incoming *in, const struct store *s, struct show *show,
		   struct incoming_result *ret)
{
	*in = (struct incoming){ .s = s, .show = show, .ret = ret };
	*ret = (struct incoming_result){ 0 };
	buf_init(&in->manifest, DOCUMENT_MAX);
	buf_init(&in->config, DOCUMENT_MAX);
}

void incoming_free(struct incoming *in)
{
	show_end(in->show);
	for (size_t i = 0; i < IMAGE_LAYERS_MAX; i++) {
		layer_abort(&in->layers[i].job, in->s);
		if (in->layers[i].tree[0])
			store_tree_drop(in->s, in->layers[i].tree);
	}
	config_free(&in->c);
	buf_free(&in->manifest);
	buf_free(&in->config);
}

void incoming_show(struct incoming *in)
{
	in->ret->layers = in->m.n_layers;
	for (size_t i = 0; i < in->m.n_layers; i++)
		show_add(in->show, in->m.layers[i].digest, in->m.layers[i].size);
	show_plan(in->show);
}

int incoming_check(struct incoming *in, struct err *e)
{
	int r = config_parse(buf_str(&in->config), in->config.len, &in->c, e);

	if (r == 0)
		r = documents_fit(&in->m, &in->c, e);
	if (r == 0)
		incoming_show(in);
	return r;
}

/* ---- layers -------------------------------------------------------------------------------- */

bool incoming_has(const struct incoming *in, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(in->c.diff_ids[k], in->c.diff_ids[i]) == 0)
			return true;
	return store_has_layer(in->s, in->c.diff_ids[i]);
}

int incoming_begin(struct incoming *in, size_t i, int archive, struct err *e)
{
	return layer_begin(&in->layers[i].job, in->s, archive, in->m.layers[i].size, e);
}

int incoming_end(struct incoming *in, size_t i, struct err *e)
{
	struct unpack_report report;

	if (layer_end(&in->layers[i].job, in->s, in->c.diff_ids[i], &report, e) < 0)
		return err_wrap(e, "layer %zu", i + 1);
	memcpy(in->layers[i].tree, in->layers[i].job.tree, sizeof(in->layers[i].tree));
	memcpy(in->layers[i].seal, report.seal, sizeof(in->layers[i].seal));
	in->ret->loaded++;
	in->ret->dropped.devices += report.devices;
	in->ret->dropped.set_ids += report.set_ids;
	in->ret->dropped.xattrs += report.xattrs;
	in->ret->dropped.ids += report.ids;
	return 0;
}

static int check_archive(int fd, const char *want, struct err *e)
{
	char have[IMAGE_DIGEST_MAX];
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : digest_fd(fd, -1, have);

	if (r < 0)
		return err_set(e, r, "read a layer of the archive");
	return strcmp(have, want) == 0 ?
		       0 :
		       err_say(e, -EBADMSG, "%s of the archive is %s: it is damaged", want, have);
}

static void show_layer(struct incoming *in, size_t i, enum show_state state)
{
	show_row(in->show, i, state, in->m.layers[i].size);
	show_tick(in->show);
}

/* As many unpackers at once as there are processors; they are waited for in their order. */
int incoming_unpack(struct incoming *in, const int *archives, struct err *e)
{
	size_t n = in->m.n_layers, most = get_nprocs() > 1 ? (size_t)get_nprocs() : 1;
	bool had[IMAGE_LAYERS_MAX] = { false };

	for (size_t begun = 0, ended = 0; ended < n; ended++) {
		for (; begun < n && begun - ended < most; begun++) {
			had[begun] = incoming_has(in, begun);
			show_layer(in, begun, had[begun] ? SHOW_HERE : SHOW_UNPACKS);
			if (!had[begun] &&
			    (check_archive(archives[begun], in->m.layers[begun].digest, e) < 0 ||
			     incoming_begin(in, begun, archives[begun], e) < 0))
				return e->code;
		}
		if (had[ended])
			continue;
		if (incoming_end(in, ended, e) < 0)
			return e->code;
		show_layer(in, ended, SHOW_DONE);
	}
	return 0;
}

/* ---- publishing ---------------------------------------------------------------------------- */

static int put_blob(const struct store *s, const char *digest, const struct buf *b, struct err *e)
{
	return store_replace(s, s->blobs, digest_hex(digest), buf_str(b), b->len, e);
}

static int make_lease(const struct store *s, const char *digest, struct err *e)
{
	_fd_ int fd = openat(s->leases, digest_hex(digest),
			     O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 || fsync(s->leases) < 0 ? err_set(e, -errno, "make a lease") : 0;
}

static int set_ref(const struct incoming *in, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	const struct incoming_result *ret = in->ret;
	int r = refs_load(in->s, &refs, e);

	if (r < 0 || (r = refs_set(&refs, ret->ref, ret->digest, (uint64_t)time(NULL), e)) < 0)
		return r;
	return refs_save(in->s, &refs, e);
}

static int keep_layers(struct incoming *in, struct err *e)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < in->m.n_layers && r == 0; i++)
		if (in->layers[i].tree[0]) {
			n++;
			r = store_seal_write(in->s, in->c.diff_ids[i], in->layers[i].seal, e);
		}
	if (r == 0 && n && syncfs(in->s->dir) < 0)
		r = err_set(e, -errno, "bring the image to the disk");
	for (size_t i = 0; i < in->m.n_layers && r == 0; i++)
		if (in->layers[i].tree[0]) {
			r = store_tree_keep(in->s, in->layers[i].tree, in->c.diff_ids[i], e);
			if (r == 0)
				in->layers[i].tree[0] = '\0';
		}
	if (r == 0 && n && fsync(in->s->layers) < 0)
		r = err_set(e, -errno, "name layers");
	for (size_t i = 0; i < in->m.n_layers && r == 0; i++)
		if (!store_has_layer(in->s, in->c.diff_ids[i]))
			r = err_say(e, -EIO, "layer %s is gone", in->c.diff_ids[i]);
	return r;
}

int incoming_publish(struct incoming *in, struct err *e)
{
	int r = keep_layers(in, e);

	if (r < 0 || (r = put_blob(in->s, in->m.config.digest, &in->config, e)) < 0 ||
	    (r = put_blob(in->s, in->ret->digest, &in->manifest, e)) < 0 ||
	    (r = make_lease(in->s, in->ret->digest, e)) < 0)
		return r;
	return set_ref(in, e);
}
