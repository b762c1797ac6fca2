/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_images.c - The images that are in the store: `caisson image ls`, `inspect`, `verify`, `rm`
 * and `prune`.
 *
 * A reference to an image that is in use stays: the sandboxes that use it may open it again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "image/documents.h"
#include "image/layer.h"
#include "image/verbs.h"
#include "remote/table.h"

#define OUT_MAX (16u << 20)

/* Size on the disk, unpacked. */
static uint64_t bytes_of(const struct store *s, const struct config *c)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < c->n_layers; i++)
		tree_bytes(s->layers, digest_hex(c->diff_ids[i]), &bytes);
	return bytes;
}

/* ---- ls ------------------------------------------------------------------------------------ */

static json_t *row_json(const struct store *s, const struct refs_row *row, const struct config *c)
{
	char when[IMAGE_TIME_MAX];
	json_t *v = json_pack("{s:s, s:s, s:s, s:b, s:b}", "ref", row->ref, "digest", row->digest,
			      "pulled", image_time((time_t)row->time_s, when), "in_use",
			      gc_in_use(s, row->digest), "damaged", !c);

	if (c) {
		(void)json_object_set_new(v, "layers", json_integer((json_int_t)c->n_layers));
		(void)json_object_set_new(v, "bytes", json_integer((json_int_t)bytes_of(s, c)));
	}
	return v;
}

static void row_text(struct table *t, const struct store *s, const struct refs_row *row,
		     const struct config *c)
{
	char when[IMAGE_TIME_MAX], size[NUM_FORMAT_MAX], text[IMAGE_REF_MAX];
	struct ref ref;

	if (ref_parse(row->ref, &ref, NULL) == 0)
		ref_short(&ref, text);
	else
		(void)snprintf(text, sizeof(text), "%s", row->ref);
	table_cell(t, STYLE_PLAIN, text);
	table_printf(t, "%.12s", digest_hex(row->digest));
	if (c) {
		table_printf(t, "%zu", c->n_layers);
		table_cell(t, STYLE_PLAIN, num_format_size(bytes_of(s, c), size, sizeof(size)));
	} else {
		table_cell(t, STYLE_PLAIN, "");
		table_cell(t, STYLE_BAD, "damaged");
	}
	table_cell(t, STYLE_DIM, image_time((time_t)row->time_s, when));
	table_cell(t, STYLE_PLAIN, gc_in_use(s, row->digest) ? "yes" : "no");
}

static void list(const struct store *s, const struct refs *refs, bool json)
{
	static const struct table_column columns[] = {
		{ "IMAGE", false }, { "DIGEST", false }, { "LAYERS", true },
		{ "SIZE", true },   { "PULLED", false }, { "IN USE", false },
	};
	_buf_ struct buf out = BUF_INIT(OUT_MAX);
	json_t *all = json ? json_array() : NULL;
	struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < refs->n; i++) {
		const struct refs_row *row = &refs->rows[i];
		struct manifest m;
		struct config c;
		bool whole = store_documents(s, row->digest, &m, &c, NULL) == 0;

		if (json)
			(void)json_array_append_new(all, row_json(s, row, whole ? &c : NULL));
		else
			row_text(&t, s, row, whole ? &c : NULL);
		if (whole)
			config_free(&c);
	}
	if (json) {
		image_print(all);
	} else {
		table_render(&t, isatty(STDOUT_FILENO), 0, &out);
		(void)fputs(buf_str(&out), stdout);
	}
	table_free(&t);
}

int verb_ls(const struct image_options *o, struct store *s, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	int r = store_open(s, o->store, false, e);

	/* Without a store at the default place there are no images. */
	if (r == -ENOENT && !o->store)
		r = 0;
	else if (r == 0)
		r = refs_load(s, &refs, e);
	if (r == 0)
		list(s, &refs, o->json);
	return r;
}

/* ---- inspect ------------------------------------------------------------------------------- */

static json_t *words_json(char **words)
{
	json_t *list = json_array();

	for (; *words; words++)
		(void)json_array_append_new(list, json_string(*words));
	return list;
}

static json_t *layers_json(const struct store *s, const struct manifest *m, const struct config *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_layers; i++) {
		uint64_t bytes = 0;

		tree_bytes(s->layers, digest_hex(c->diff_ids[i]), &bytes);
		(void)json_array_append_new(
			list, json_pack("{s:s, s:I, s:s, s:I}", "digest", m->layers[i].digest,
					"size", (json_int_t)m->layers[i].size, "diff_id",
					c->diff_ids[i], "bytes", (json_int_t)bytes));
	}
	return list;
}

static void inspect(const struct store *s, const struct refs_row *row, const struct manifest *m,
		    const struct config *c)
{
	char when[IMAGE_TIME_MAX];

	image_print(json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:s, s:s, s:o}", "ref",
		row->ref, "digest", row->digest, "pulled", image_time((time_t)row->time_s, when),
		"created", c->created, "os", c->os, "architecture", c->arch, "in_use",
		gc_in_use(s, row->digest), "env", words_json(c->run.env), "entrypoint",
		words_json(c->run.entrypoint), "cmd", words_json(c->run.cmd), "workdir",
		c->run.workdir, "user", c->run.user, "layers", layers_json(s, m, c)));
}

int verb_inspect(const struct image_options *o, struct store *s, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	const struct refs_row *row;
	struct manifest m;
	struct config c;
	struct ref ref;
	int r;

	if ((r = ref_parse(o->rest[0], &ref, e)) < 0 ||
	    (r = store_open(s, o->store, false, e)) < 0 || (r = refs_load(s, &refs, e)) < 0)
		return r;
	row = image_find(&refs, o->rest[0], e);
	r = row ? store_documents(s, row->digest, &m, &c, e) : e->code;
	if (r == 0) {
		inspect(s, row, &m, &c);
		config_free(&c);
	}
	return r;
}

/* ---- verify -------------------------------------------------------------------------------- */

/* Every byte of the layers, against what was unpacked. */
static int verify_one(const struct store *s, const struct refs_row *row, struct err *e)
{
	struct manifest m;
	struct config c;
	int r = store_documents(s, row->digest, &m, &c, e);

	if (r < 0)
		return err_wrap(e, "%.200s", row->ref);
	for (size_t i = 0; i < c.n_layers && r == 0; i++)
		r = layer_verify(s, c.diff_ids[i], e);
	config_free(&c);
	return r < 0 ? err_wrap(e, "%.200s", row->ref) : 0;
}

int verb_verify(const struct image_options *o, struct store *s, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	bool wanted[REFS_MAX] = { false };
	int r;

	if ((r = image_change(o, s, e)) < 0 || (r = refs_load(s, &refs, e)) < 0)
		return r;
	for (int i = 0; i < o->n_rest; i++) {
		const struct refs_row *row = image_find(&refs, o->rest[i], e);

		if (!row)
			return e->code;
		wanted[row - refs.rows] = true;
	}
	for (size_t i = 0; i < refs.n; i++) {
		const struct refs_row *row = &refs.rows[i];

		if (o->n_rest && !wanted[i])
			continue;
		if ((r = verify_one(s, row, e)) < 0)
			return r;
		if (o->json)
			image_print(json_pack("{s:s, s:s, s:s}", "ref", row->ref, "digest",
					      row->digest, "status", "whole"));
		else
			(void)printf("%s whole\n", row->ref);
	}
	return 0;
}

/* ---- rm, prune ----------------------------------------------------------------------------- */

static int drop_one(const struct store *s, struct refs *refs, const char *text, struct err *e)
{
	const struct refs_row *row;
	struct ref want;
	int r = ref_parse(text, &want, e);

	if (r < 0)
		return r;
	row = refs_find(refs, &want);
	if (!row)
		return err_say(e, -ENOENT,
			       "image %.200s not found; 'caisson image ls' lists the images", text);
	if (gc_in_use(s, row->digest))
		return err_say(e, -EBUSY, "%.200s is in use: end the sandboxes that run it", text);
	refs_drop(refs, row);
	return 0;
}

static int forget(const struct store *s, const struct image_options *o, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	/* No process opens an image between the check that it is unused and its removal. */
	_fd_ int lock = store_lock(s, true, e);
	int r = lock < 0 ? lock : refs_load(s, &refs, e);

	for (int i = 0; i < o->n_rest && r == 0; i++)
		r = drop_one(s, &refs, o->rest[i], e);
	for (size_t i = refs.n; o->all && i-- > 0 && r == 0;)
		if (!gc_in_use(s, refs.rows[i].digest))
			refs_drop(&refs, &refs.rows[i]);
	if (r == 0)
		r = refs_save(s, &refs, e);
	if (r == -ENOSPC || r == -EDQUOT) { /* the reason why images are removed */
		store_use_reserve(s);
		*e = (struct err){ 0 };
		r = refs_save(s, &refs, e);
	}
	return r;
}

int verb_rm(const struct image_options *o, struct store *s, struct err *e)
{
	struct gc_result gone;
	char size[NUM_FORMAT_MAX];
	int r;

	if ((r = image_change(o, s, e)) < 0 || (r = forget(s, o, e)) < 0 ||
	    (r = gc_run(s, o->prune, &gone, e)) < 0)
		return r;
	if (o->json)
		image_print(json_pack("{s:I, s:I, s:I}", "images", (json_int_t)gone.images,
				      "layers", (json_int_t)gone.layers, "bytes",
				      (json_int_t)gone.bytes));
	else
		(void)printf("%" PRIu64 " images, %" PRIu64 " layers removed, %s freed\n",
			     gone.images, gone.layers,
			     num_format_size(gone.bytes, size, sizeof(size)));
	return 0;
}
