/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - Options of `caisson image`, exit codes, and what several verbs say. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "client/fail.h"
#include "image/pull.h"
#include "image/verbs.h"
#include "remote/args.h"

#define AT(member) offsetof(struct image_options, member)

static const struct args_row rows[] = {
	{ "--store", "DIR", ARGS_TEXT, OPT_ALL, AT(store), "where images are kept" },
	{ "--name", "REF", ARGS_TEXT, OPT_IMPORT, AT(name),
	  "the reference it gets; otherwise the archive says it" },
	{ "--allow", "PATTERN,...", ARGS_TEXT, OPT_PULL | OPT_IMPORT, AT(allow),
	  "only references like these; * is anything" },
	{ "--authfile", "FILE", ARGS_TEXT, OPT_PULL, AT(authfile),
	  "credentials, as docker's config.json" },
	{ "--ca", "FILE", ARGS_TEXT, OPT_PULL, AT(ca),
	  "certificates that the registry is checked with" },
	{ "--insecure", NULL, ARGS_FLAG, OPT_PULL, AT(insecure),
	  "take any certificate, and plain HTTP; a registry on this machine may speak that anyway" },
	{ "--all", NULL, ARGS_FLAG, OPT_PRUNE, AT(all),
	  "images that nobody uses, too, with their references" },
	{ "--package", "NAME,...", ARGS_TEXT, OPT_BUILD, AT(package), "further Debian packages" },
	{ "--suite", "NAME", ARGS_TEXT, OPT_BUILD, AT(suite), "release of Debian (bookworm)" },
	{ "--mirror", "URL", ARGS_TEXT, OPT_BUILD, AT(mirror), "where Debian is taken from" },
	{ "--quiet", NULL, ARGS_FLAG, OPT_PULL | OPT_IMPORT | OPT_BUILD, AT(quiet), "no progress" },
	{ "--json", NULL, ARGS_FLAG, OPT_ALL, AT(json), "for programs" },
};

static void usage(const struct form *form, FILE *out)
{
	(void)fprintf(out, "usage: caisson image %s [OPTIONS]\n\n%s\n", form->usage, form->text);
	args_usage(rows, ARRAY_SIZE(rows), form->verb, out);
}

bool image_begin(struct image_options *o, const struct form *form, int argc, char **argv,
		 int *ret_exit)
{
	struct err e = { 0 };

	*o = (struct image_options){ 0 };
	if (args_wants_help(argc, argv)) {
		usage(form, stdout);
		*ret_exit = 0;
		return false;
	}
	o->rest = calloc((size_t)argc + 1, sizeof(*o->rest));
	if (!o->rest)
		(void)err_set(&e, -ENOMEM, "read the options");
	else
		o->n_rest =
			args_parse(rows, ARRAY_SIZE(rows), form->verb, argc, argv, o, o->rest, &e);
	if (!e.code && (o->n_rest < form->min || (form->max >= 0 && o->n_rest > form->max)))
		(void)err_say(&e, -EINVAL, "usage: caisson image %s", form->usage);
	if (!e.code)
		return true;
	*ret_exit = image_end(o, &e);
	return false;
}

static int exit_code(int code)
{
	static const struct {
		int code, exit;
	} codes[] = {
		{ -EINVAL, EXIT_CAISSON }, { -EACCES, 4 }, { -ENOENT, 5 }, { -EBUSY, 6 },
		{ -EBADMSG, 7 },           { -EPERM, 7 },  { -EFBIG, 7 },  { -EHOSTUNREACH, 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].code == code)
			return codes[i].exit;
	return code ? 1 : 0;
}

int image_end(struct image_options *o, const struct err *e)
{
	struct err full = *e;
	bool json = o->json;

	free(o->rest);
	o->rest = NULL;
	if (e->code == -ENOSPC || e->code == -EDQUOT)
		(void)err_say(
			&full, e->code,
			"%.380s. The image store's disk is full: make room there, as by 'caisson image prune'",
			e->msg);
	return e->code ? verb_fail(&full, json, exit_code(e->code)) : 0;
}

int image_allowed(const struct image_options *o, const struct ref *ref, struct err *e)
{
	char pattern[IMAGE_REF_MAX], text[IMAGE_REF_MAX];
	const char *p = o->allow;

	if (!p)
		return 0;
	for (size_t n; *(p += strspn(p, ",")); p += n) {
		n = strcspn(p, ",");
		if (n >= sizeof(pattern))
			return err_say(e, -EINVAL, "--allow: a pattern is too long");
		memcpy(pattern, p, n);
		pattern[n] = '\0';
		if (!ref_pattern_ok(pattern))
			return err_say(e, -EINVAL, "--allow: '%.80s' is no pattern of references",
				       pattern);
		if (ref_matches(ref, pattern))
			return 0;
	}
	ref_short(ref, text);
	return err_say(e, -EACCES, "%.200s is not allowed: --allow %.200s", text, o->allow);
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

void image_dropped(const struct image_options *o, const struct pull_result *r)
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
	if (line.len && !o->quiet && !o->json)
		(void)fprintf(stderr, "left out: %s\n", buf_str(&line));
}

void image_done(const struct image_options *o, const struct pull_result *r)
{
	_buf_ struct buf b = BUF_INIT(4096);
	struct json j;

	image_dropped(o, r);
	if (!o->json) {
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
	if (json_finish(&j) == 0)
		(void)printf("%s\n", buf_str(&b));
}
