/* SPDX-License-Identifier: Apache-2.0 */
/* verb_verify.c - `caisson image verify [REF...]`: every byte of the layers, against what was
 * unpacked. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "image/layer.h"
#include "image/record.h"
#include "image/refs.h"
#include "image/verbs.h"

static int verify_one(const struct store *s, const struct refs_row *row, struct err *e)
{
	struct manifest m;
	struct config c;
	int r = record_load(s, row->digest, &m, &c, e);

	if (r < 0)
		return err_wrap(e, "%.200s", row->ref);
	for (size_t i = 0; i < c.n_layers && r == 0; i++)
		r = layer_verify(s, c.diff_ids[i], e);
	config_free(&c);
	return r < 0 ? err_wrap(e, "%.200s", row->ref) : 0;
}

static void say(const struct image_options *o, const struct refs_row *row)
{
	_buf_ struct buf b = BUF_INIT(4096);
	struct json j;

	if (!o->json) {
		(void)printf("%s whole\n", row->ref);
		return;
	}
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "ref", row->ref);
	json_member_str(&j, "digest", row->digest);
	json_member_str(&j, "status", "whole");
	json_object_end(&j);
	if (json_finish(&j) == 0)
		(void)printf("%s\n", buf_str(&b));
}

static int verify(const struct store *s, const struct image_options *o, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	int r = refs_load(s, &refs, e);

	for (size_t i = 0; i < refs.n && r == 0; i++) {
		bool wanted = o->n_rest == 0;
		struct ref want;

		for (int k = 0; k < o->n_rest && !wanted; k++)
			wanted = ref_parse(o->rest[k], &want, NULL) == 0 &&
				 refs_find(&refs, &want) == &refs.rows[i];
		if (!wanted)
			continue;
		r = verify_one(s, &refs.rows[i], e);
		if (r == 0)
			say(o, &refs.rows[i]);
	}
	return r;
}

/* Those that were named must be there. */
static int known(const struct store *s, const struct image_options *o, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	int r = refs_load(s, &refs, e);

	for (int i = 0; i < o->n_rest && r == 0; i++) {
		struct ref want;

		r = ref_parse(o->rest[i], &want, e);
		if (r == 0 && !refs_find(&refs, &want))
			r = err_say(
				e, -ENOENT,
				"the image %.200s is not in the store: caisson image pull %.200s",
				o->rest[i], o->rest[i]);
	}
	return r;
}

int verb_verify(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_VERIFY,
		.usage = "verify [REF...]",
		.text = "Reads every file of the layers of these images, or of all, and says whether they still are what\n"
			"was unpacked. Ends at the first that is not.\n",
		.max = -1,
	};
	_store_ struct store s = STORE_NONE;
	struct image_options o;
	struct err e = { 0 };
	int code;

	if (!image_begin(&o, &form, argc, argv, &code))
		return code;
	if (image_change(&o, &s, &e) == 0 && known(&s, &o, &e) == 0)
		(void)verify(&s, &o, &e);
	return image_end(&o, &e);
}
