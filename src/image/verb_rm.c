/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_rm.c - `caisson image rm REF...` and `caisson image prune`.
 *
 * A reference to an image that is in use stays: the sandboxes that use it may open it again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

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

static void report(bool json, const struct gc_result *r)
{
	_buf_ struct buf b = BUF_INIT(1024);
	char size[NUM_FORMAT_MAX];
	struct json j;

	if (!json) {
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
	image_print(&j, &b);
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
	struct gc_result result;
	int r;

	if ((r = image_change(o, s, e)) < 0 || (r = forget(s, o, e)) < 0 ||
	    (r = gc_run(s, o->prune, &result, e)) < 0)
		return r;
	report(o->json, &result);
	return 0;
}
