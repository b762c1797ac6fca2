/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.c - `caisson image pull` and `caisson image import`, and what verbs share. */
#include "image/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "image/incoming.h"
#include "image/refs.h"
#include "image/registry.h"

int image_allowed(const char *allow, const struct ref *ref, struct err *e)
{
	char pattern[IMAGE_REF_MAX], text[IMAGE_REF_MAX];
	const char *p = allow;

	if (!p)
		return 0;
	for (size_t n; *(p += strspn(p, ",")); p += n) {
		n = strcspn(p, ",");
		if (n >= sizeof(pattern))
			return err_say(e, -EINVAL, "--allow: a pattern is too long");
		memcpy(pattern, p, n);
		pattern[n] = '\0';
		if (!ref_pattern_ok(pattern))
			return err_say(e, -EINVAL,
				       "--allow: '%.80s' is not a pattern of references", pattern);
		if (ref_matches(ref, pattern))
			return 0;
	}
	ref_short(ref, text);
	return err_say(e, -EACCES, "%.200s is not allowed: --allow %.200s", text, allow);
}

static void waits(void)
{
	(void)fprintf(stderr,
		      "caisson: waiting for another 'caisson image' that changes the store\n");
}

int image_change(const struct image_options *o, struct store *s, struct err *e)
{
	int r = store_open(s, o->store, true, e);

	return r == 0 ? store_change(s, o->quiet ? NULL : waits, e) : r;
}

const struct refs_row *image_find(const struct refs *refs, const char *text, struct err *e)
{
	const struct refs_row *row;
	struct ref want;

	if (ref_parse(text, &want, e) < 0)
		return NULL;
	row = refs_find(refs, &want);
	if (!row)
		(void)err_say(e, -ENOENT,
			      "the image %.200s is not in the store: caisson image pull %.200s",
			      text, text);
	return row;
}

void image_print(struct json *j, const struct buf *b)
{
	if (json_finish(j) == 0)
		(void)printf("%s\n", buf_str(b));
}

/* A line on stderr about what layers had that is not in the store. */
static void report_dropped(const struct incoming_result *r)
{
	const struct {
		uint64_t n;
		const char *what;
	} all[] = {
		{ r->dropped.devices, "devices and pipes" },
		{ r->dropped.set_ids, "set-id bits" },
		{ r->dropped.xattrs, "attributes" },
		{ r->dropped.ids, "owners beyond 65535" },
	};
	_buf_ struct buf line = BUF_INIT(512);

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].n)
			(void)buf_printf(&line, "%s%" PRIu64 " %s", line.len ? ", " : "", all[i].n,
					 all[i].what);
	if (line.len)
		(void)fprintf(stderr, "left out: %s\n", buf_str(&line));
}

void image_done(const struct image_options *o, const struct incoming_result *r)
{
	_buf_ struct buf b = BUF_INIT(4096);
	struct json j;

	if (!o->json) {
		if (!o->quiet)
			report_dropped(r);
		(void)printf("%s %s\n", r->ref, r->digest);
		return;
	}
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "event", "done");
	json_member_str(&j, "ref", r->ref);
	json_member_str(&j, "digest", r->digest);
	json_member_uint(&j, "layers", r->layers);
	json_member_uint(&j, "loaded", r->loaded);
	json_member_uint(&j, "bytes", r->bytes);
	json_key(&j, "left_out");
	json_object_begin(&j);
	json_member_uint(&j, "devices", r->dropped.devices);
	json_member_uint(&j, "set_ids", r->dropped.set_ids);
	json_member_uint(&j, "xattrs", r->dropped.xattrs);
	json_member_uint(&j, "ids", r->dropped.ids);
	json_object_end(&j);
	json_object_end(&j);
	image_print(&j, &b);
}

int verb_pull(const struct image_options *o, struct store *s, struct err *e)
{
	const struct registry_options ro = { o->insecure, o->ca, o->authfile };
	struct incoming_result result;
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
	r = pull(s, &ref, &ro, &show, &result, e);
	if (r == 0)
		image_done(o, &result);
	return r;
}

int verb_import(const struct image_options *o, struct store *s, struct err *e)
{
	struct incoming_result result;
	struct show show;
	struct ref ref;
	int r;

	show_begin(&show, o->json, o->quiet);
	if ((o->name && (r = ref_parse(o->name, &ref, e)) < 0) || (r = image_change(o, s, e)) < 0 ||
	    (r = import(s, o->rest[0], o->name ? &ref : NULL, o->allow, &show, &result, e)) < 0)
		return r;
	image_done(o, &result);
	return 0;
}
