/* SPDX-License-Identifier: Apache-2.0 */
/* verb_ls.c - `caisson image ls` and `caisson image inspect REF`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"
#include "image/digest.h"
#include "image/gc.h"
#include "image/record.h"
#include "image/refs.h"
#include "image/tree.h"
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

/* On the disk, unpacked. */
static uint64_t bytes_of(const struct store *s, const struct config *c)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < c->n_layers; i++)
		tree_bytes(s->layers, digest_hex(c->diff_ids[i]), &bytes);
	return bytes;
}

static void finish(struct json *j, const struct buf *b)
{
	if (json_finish(j) == 0)
		(void)printf("%s\n", buf_str(b));
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
		bool whole = record_load(s, refs->rows[i].digest, &m, &c, NULL) == 0;

		if (json)
			row_json(&j, s, &refs->rows[i], whole ? &c : NULL);
		else
			row_text(&t, s, &refs->rows[i], whole ? &c : NULL);
		if (whole)
			config_free(&c);
	}
	if (json) {
		json_array_end(&j);
		finish(&j, &out);
	} else {
		table_render(&t, isatty(STDOUT_FILENO), 0, &out);
		(void)fputs(buf_str(&out), stdout);
	}
	table_free(&t);
}

int verb_ls(int argc, char **argv)
{
	static const struct form form = { .verb = OPT_LS,
					  .usage = "ls",
					  .text = "Lists the images of the store.\n" };
	_store_ struct store s = STORE_NONE;
	_refs_ struct refs refs = { 0 };
	struct image_options o;
	struct err e = { 0 };
	int code;

	if (!image_begin(&o, &form, argc, argv, &code))
		return code;
	/* No store is one without images. */
	if (store_open(&s, o.store, false, &e) == -ENOENT && !o.store)
		e = (struct err){ 0 };
	else if (!e.code)
		(void)refs_load(&s, &refs, &e);
	if (!e.code)
		list(&s, &refs, o.json);
	return image_end(&o, &e);
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
	finish(&j, &out);
}

int verb_inspect(int argc, char **argv)
{
	static const struct form form = { .verb = OPT_INSPECT,
					  .usage = "inspect REF",
					  .text = "Says as JSON what one image is.\n",
					  .min = 1,
					  .max = 1 };
	_store_ struct store s = STORE_NONE;
	_refs_ struct refs refs = { 0 };
	const struct refs_row *row = NULL;
	struct image_options o;
	struct manifest m;
	struct config c;
	struct ref want;
	struct err e = { 0 };
	int code;

	if (!image_begin(&o, &form, argc, argv, &code))
		return code;
	if (ref_parse(o.rest[0], &want, &e) == 0 && store_open(&s, o.store, false, &e) == 0 &&
	    refs_load(&s, &refs, &e) == 0 && !(row = refs_find(&refs, &want)))
		(void)err_say(&e, -ENOENT,
			      "the image %.200s is not in the store: caisson image pull %.200s",
			      o.rest[0], o.rest[0]);
	if (row && record_load(&s, row->digest, &m, &c, &e) == 0) {
		inspect(&s, row, &m, &c);
		config_free(&c);
	}
	return image_end(&o, &e);
}
