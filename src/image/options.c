/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - Options of `caisson image`, exit codes, and what several verbs say. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/options.h"
#include "client/fail.h"
#include "image/pull.h"
#include "image/verbs.h"

#define AT(member) offsetof(struct image_options, member)

static const struct option_row rows[] = {
	{ "--store", NULL, "DIR", OPTION_TEXT, AT(store), .help = "directory of the images" },
	{ "--name", NULL, "REF", OPTION_TEXT, AT(name), .verbs = OPT_IMPORT,
	  .help = "reference for the image (the one in the archive)" },
	{ "--allow", NULL, "PATTERN,...", OPTION_TEXT, AT(allow), .verbs = OPT_PULL | OPT_IMPORT,
	  .help = "only references that match one of these; * matches anything" },
	{ "--authfile", NULL, "FILE", OPTION_TEXT, AT(authfile), .verbs = OPT_PULL,
	  .help = "credentials in the format of docker's config.json" },
	{ "--ca", NULL, "FILE", OPTION_TEXT, AT(ca), .verbs = OPT_PULL,
	  .help = "CA certificates for the registry" },
	{ "--insecure", NULL, NULL, OPTION_FLAG, AT(insecure), .verbs = OPT_PULL,
	  .help = "accept any certificate, and plain HTTP; a registry on this machine may use that anyway" },
	{ "--all", NULL, NULL, OPTION_FLAG, AT(all), .verbs = OPT_PRUNE,
	  .help = "also unused images, with their references" },
	{ "--package", NULL, "NAME,...", OPTION_TEXT, AT(package), .verbs = OPT_BUILD,
	  .help = "additional Debian packages" },
	{ "--suite", NULL, "NAME", OPTION_TEXT, AT(suite), .verbs = OPT_BUILD,
	  .help = "Debian release (bookworm)" },
	{ "--mirror", NULL, "URL", OPTION_TEXT, AT(mirror), .verbs = OPT_BUILD,
	  .help = "Debian mirror" },
	{ "--quiet", NULL, NULL, OPTION_FLAG, AT(quiet), .verbs = OPT_PULL | OPT_IMPORT | OPT_BUILD,
	  .help = "no progress" },
	{ "--json", NULL, NULL, OPTION_FLAG, AT(json), .help = "print JSON" },
};

static void usage(const struct options *p, const struct form *form)
{
	(void)printf("usage: caisson image %s [OPTIONS]\n\n%s\n", form->usage, form->text);
	options_help(p, 0, stdout);
}

bool image_begin(struct image_options *o, const struct form *form, int argc, char **argv,
		 int *ret_exit)
{
	struct err e = { 0 };
	char command[64];
	struct options p = { .rows = rows,
			     .n_rows = ARRAY_SIZE(rows),
			     .verb = form->verb,
			     .command = command,
			     .target = o };

	*o = (struct image_options){ 0 };
	(void)snprintf(command, sizeof(command), "caisson image %.20s", argv[0]);
	p.rest = o->rest = calloc((size_t)argc + 1, sizeof(*o->rest));
	int r = o->rest ? options_parse(&p, argc, argv, &e) :
			  err_set(&e, -ENOMEM, "read the options");

	if (r == 1) {
		usage(&p, form);
		*ret_exit = image_end(o, &e);
		return false;
	}
	o->n_rest = p.n_rest;
	if (r == 0 && (o->n_rest < form->min || (form->max >= 0 && o->n_rest > form->max)))
		(void)err_say(&e, -EINVAL, "usage: caisson image %s", form->usage);
	if (!e.code)
		return true;
	o->json |= options_has_word(argc, argv, "--json");
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
