/* SPDX-License-Identifier: Apache-2.0 */
/* verb_ls.c - `caisson image ls`, `caisson image inspect REF`, `caisson image verify [REF...]`. */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"
#include "image/documents.h"
#include "image/gc.h"
#include "image/image_digest.h"
#include "image/image_store.h"
#include "image/layer.h"
#include "image/refs.h"
#include "image/verbs.h"
#include "remote/table.h"

#define OUT_MAX (16u << 20)

static void stamp(uint64_t time_s, char text[32])
{
	time_t t = (time_t)time_s;
	struct tm tm;

	text[0] = '\0';
	if (gmtime_r(&t, &tm))
		(void)strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Size on the disk, unpacked. */
static uint64_t bytes_of(const struct store *s, const struct config *c)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < c->n_layers; i++)
		tree_bytes(s->layers, digest_hex(c->diff_ids[i]), &bytes);
	return bytes;
}

/* ---- ls ------------------------------------------------------------------------------------ */

static void row_json(struct json *j, const struct store *s, const struct refs_row *row,
		     const struct config *c)
{
	char when[32];

	stamp(row->time_s, when);
	json_object_begin(j);
	json_member_str(j, "ref", row->ref);
	json_member_str(j, "digest", row->digest);
	json_member_str(j, "pulled", when);
	json_member_bool(j, "in_use", gc_in_use(s, row->digest));
	json_member_bool(j, "damaged", !c);
	if (c) {
		json_member_uint(j, "layers", c->n_layers);
		json_member_uint(j, "bytes", bytes_of(s, c));
	}
	json_object_end(j);
}

static void row_text(struct table *t, const struct store *s, const struct refs_row *row,
		     const struct config *c)
{
	char when[32], size[NUM_FORMAT_MAX], text[IMAGE_REF_MAX];
	struct ref ref;

	stamp(row->time_s, when);
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
	table_cell(t, STYLE_DIM, when);
	table_cell(t, STYLE_PLAIN, gc_in_use(s, row->digest) ? "yes" : "no");
}

static void list(const struct store *s, const struct refs *refs, bool json)
{
	static const struct table_column columns[] = {
		{ "IMAGE", false }, { "DIGEST", false }, { "LAYERS", true },
		{ "SIZE", true },   { "PULLED", false }, { "IN USE", false },
	};
	_buf_ struct buf out = BUF_INIT(OUT_MAX);
	struct table t;
	struct json j;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_init(&j, &out);
	if (json)
		json_array_begin(&j);
	for (size_t i = 0; i < refs->n; i++) {
		struct manifest m;
		struct config c;
		bool whole = store_documents(s, refs->rows[i].digest, &m, &c, NULL) == 0;

		if (json)
			row_json(&j, s, &refs->rows[i], whole ? &c : NULL);
		else
			row_text(&t, s, &refs->rows[i], whole ? &c : NULL);
		if (whole)
			config_free(&c);
	}
	if (json) {
		json_array_end(&j);
		image_print(&j, &out);
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

static void words_json(struct json *j, const char *key, char **words)
{
	json_key(j, key);
	json_array_begin(j);
	for (; *words; words++)
		json_str(j, *words);
	json_array_end(j);
}

static void layers_json(struct json *j, const struct store *s, const struct manifest *m,
			const struct config *c)
{
	json_key(j, "layers");
	json_array_begin(j);
	for (size_t i = 0; i < c->n_layers; i++) {
		uint64_t bytes = 0;

		tree_bytes(s->layers, digest_hex(c->diff_ids[i]), &bytes);
		json_object_begin(j);
		json_member_str(j, "digest", m->layers[i].digest);
		json_member_uint(j, "size", m->layers[i].size);
		json_member_str(j, "diff_id", c->diff_ids[i]);
		json_member_uint(j, "bytes", bytes);
		json_object_end(j);
	}
	json_array_end(j);
}

static void inspect(const struct store *s, const struct refs_row *row, const struct manifest *m,
		    const struct config *c)
{
	_buf_ struct buf out = BUF_INIT(OUT_MAX);
	char when[32];
	struct json j;

	stamp(row->time_s, when);
	json_init(&j, &out);
	json_object_begin(&j);
	json_member_str(&j, "ref", row->ref);
	json_member_str(&j, "digest", row->digest);
	json_member_str(&j, "pulled", when);
	json_member_str(&j, "created", c->created);
	json_member_str(&j, "os", c->os);
	json_member_str(&j, "architecture", c->arch);
	json_member_bool(&j, "in_use", gc_in_use(s, row->digest));
	words_json(&j, "env", c->run.env);
	words_json(&j, "entrypoint", c->run.entrypoint);
	words_json(&j, "cmd", c->run.cmd);
	json_member_str(&j, "workdir", c->run.workdir);
	json_member_str(&j, "user", c->run.user);
	layers_json(&j, s, m, c);
	json_object_end(&j);
	image_print(&j, &out);
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

static void report_whole(bool json, const struct refs_row *row)
{
	_buf_ struct buf b = BUF_INIT(4096);
	struct json j;

	if (!json) {
		(void)printf("%s whole\n", row->ref);
		return;
	}
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "ref", row->ref);
	json_member_str(&j, "digest", row->digest);
	json_member_str(&j, "status", "whole");
	json_object_end(&j);
	image_print(&j, &b);
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
	for (size_t i = 0; i < refs.n && r == 0; i++) {
		if (o->n_rest && !wanted[i])
			continue;
		r = verify_one(s, &refs.rows[i], e);
		if (r == 0)
			report_whole(o->json, &refs.rows[i]);
	}
	return r;
}
