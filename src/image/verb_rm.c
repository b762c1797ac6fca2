/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_rm.c - `caisson image rm REF...` and `caisson image prune`.
 *
 * A reference to an image that is in use stays: whoever uses it expects to find it again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"
#include "image/gc.h"
#include "image/refs.h"
#include "image/verbs.h"

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
			       "there is no image %.200s; 'caisson image ls' lists them", text);
	if (gc_in_use(s, row->digest))
		return err_say(e, -EBUSY, "%.200s is in use: end the sandboxes that run it", text);
	refs_drop(refs, row);
	return 0;
}

static void say(const struct image_options *o, const struct gc_result *r)
{
	_buf_ struct buf b = BUF_INIT(1024);
	char size[NUM_FORMAT_MAX];
	struct json j;

	if (!o->json) {
		(void)printf("%" PRIu64 " images, %" PRIu64 " layers removed, %s freed\n",
			     r->images, r->layers, num_format_size(r->bytes, size, sizeof(size)));
		return;
	}
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_uint(&j, "images", r->images);
	json_member_uint(&j, "layers", r->layers);
	json_member_uint(&j, "bytes", r->bytes);
	json_object_end(&j);
	if (json_finish(&j) == 0)
		(void)printf("%s\n", buf_str(&b));
}

static int forget(const struct store *s, const struct image_options *o, struct err *e)
{
	_refs_ struct refs refs = { 0 };
	/* Nobody opens an image between the question whether it is in use and the answer. */
	_fd_ int lock = store_lock(s, true, e);
	int r = lock < 0 ? lock : refs_load(s, &refs, e);

	for (int i = 0; i < o->n_rest && r == 0; i++)
		r = drop_one(s, &refs, o->rest[i], e);
	for (size_t i = refs.n; o->all && i-- > 0 && r == 0;)
		if (!gc_in_use(s, refs.rows[i].digest))
			refs_drop(&refs, &refs.rows[i]);
	if (r == 0)
		r = refs_save(s, &refs, e);
	if (r == -ENOSPC || r == -EDQUOT) { /* which is why images are removed */
		store_use_reserve(s);
		*e = (struct err){ 0 };
		r = refs_save(s, &refs, e);
	}
	return r;
}

static int run(const struct form *form, int argc, char **argv)
{
	_store_ struct store s = STORE_NONE;
	struct image_options o;
	struct gc_result result;
	struct err e = { 0 };
	int code;

	if (!image_begin(&o, form, argc, argv, &code))
		return code;
	if (image_change(&o, &s, &e) == 0 && forget(&s, &o, &e) == 0 &&
	    gc_run(&s, form->verb == OPT_PRUNE, &result, &e) == 0)
		say(&o, &result);
	return image_end(&o, &e);
}

int verb_rm(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_RM,
		.usage = "rm REF...",
		.text = "Forgets references, and removes images and layers that nothing else means. An image that\n"
			"is in use is not removed; then nothing is.\n",
		.min = 1,
		.max = -1,
	};

	return run(&form, argc, argv);
}

int verb_prune(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_PRUNE,
		.usage = "prune [--all]",
		.text = "Removes what no reference means and nobody uses, and downloads that were begun. With --all\n"
			"also images that have a reference and are not in use.\n",
	};

	return run(&form, argc, argv);
}
