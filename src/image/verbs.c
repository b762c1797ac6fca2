/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.c - Functions that the verbs of `caisson image` share. */
#include "image/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "image/incoming.h"

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

void image_print(json_t *v)
{
	_mem_ char *text = json_dumps(v, JSON_COMPACT);

	if (text)
		(void)printf("%s\n", text);
	json_decref(v);
}

const char *image_time(time_t time, char ret[IMAGE_TIME_MAX])
{
	struct tm tm;

	ret[0] = '\0';
	if (gmtime_r(&time, &tm))
		(void)strftime(ret, IMAGE_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return ret;
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
	if (!o->json) {
		if (!o->quiet)
			report_dropped(r);
		(void)printf("%s %s\n", r->ref, r->digest);
		return;
	}
	image_print(json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I}}", "event", "done", "ref",
		r->ref, "digest", r->digest, "layers", (json_int_t)r->layers, "loaded",
		(json_int_t)r->loaded, "bytes", (json_int_t)r->bytes, "left_out", "devices",
		(json_int_t)r->dropped.devices, "set_ids", (json_int_t)r->dropped.set_ids, "xattrs",
		(json_int_t)r->dropped.xattrs, "ids", (json_int_t)r->dropped.ids));
}
