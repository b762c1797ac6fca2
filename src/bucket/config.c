/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - The options of caisson-bucket. The front has checked them; this file reads the files
 * that they name. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "bucket/bucket.h"
#include "s3/creds.h"

#define CA_MAX (4u << 20)

struct words {
	const char *endpoint, *region, *style, *ca, *credentials, *profile;
	uint64_t keys;                      /* a descriptor; 0: none */
	const char *places[PLACES_MAX + 1]; /* NAME=s3://BUCKET/PREFIX */
};

#define AT(member) offsetof(struct words, member)

static const struct option_row rows[] = {
	{ "--endpoint", NULL, "URL", OPTION_STRING, AT(endpoint) },
	{ "--region", NULL, "REGION", OPTION_STRING, AT(region) },
	{ "--style", NULL, "STYLE", OPTION_STRING, AT(style) },
	{ "--ca", NULL, "FILE", OPTION_STRING, AT(ca) },
	{ "--credentials", NULL, "FILE", OPTION_STRING, AT(credentials) },
	{ "--keys", NULL, "FD", OPTION_NUMBER, AT(keys), .min = 3, .max = 1024 },
	{ "--profile", NULL, "NAME", OPTION_STRING, AT(profile) },
	{ "--place", NULL, "NAME=PLACE", OPTION_PAIRS, AT(places), .max = PLACES_MAX },
};

static int add_place(struct bucket_config *c, const char *text, struct err *e)
{
	size_t len = strcspn(text, "=");

	if (len > BUCKET_PLACE_MAX)
		return err_say(e, -EINVAL, "--place: the name in '%.64s' is too long", text);
	memcpy(c->places[c->n_places].name, text, len);
	int r = s3_place_parse(text + len + 1, &c->places[c->n_places].place, e);

	c->n_places++;
	return r < 0 ? err_wrap(e, "place %.*s", (int)len, text) : 0;
}

static int read_ca(const char *path, struct buf *ret, struct err *e)
{
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : 1;

	buf_init(ret, CA_MAX);
	while (n > 0) {
		char *room = buf_reserve(ret, 64u << 10);

		n = room ? read(fd, room, 64u << 10) : -1;
		if (n > 0)
			buf_commit(ret, (size_t)n);
	}
	return n < 0 || ret->err || ret->len == 0 ? err_set(e,
							    ret->err ? ret->err :
							    n < 0    ? -errno :
								       -ENODATA,
							    "--s3-ca %s", path) :
						    0;
}

/* A file that was named, or else what stood in the environment. */
static int read_keys(const struct words *w, struct s3_creds *ret, struct err *e)
{
	if (w->credentials) {
		int r = s3_creds_file(w->credentials, w->profile, ret, e);

		return r < 0 ? err_wrap(e, "--s3-credentials %s", w->credentials) : 0;
	}
	if (w->keys) {
		int r = s3_creds_fd((int)w->keys, NULL, ret, e);

		(void)close((int)w->keys);
		return r < 0 ? err_wrap(e, "keys of the environment") : 0;
	}
	return err_say(
		e, -ENOENT,
		"there are no keys for the buckets; name a file with --s3-credentials, or set "
		"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
}

int bucket_config_parse(int argc, char **argv, struct bucket_config *ret, struct err *e)
{
	struct words w = { 0 };
	struct options p = { .rows = rows, .n_rows = ARRAY_SIZE(rows), .target = &w };
	enum s3_style style;
	int r = options_arguments(&p, argc, argv, e);

	for (size_t i = 0; r == 0 && w.places[i]; i++)
		r = add_place(ret, w.places[i], e);
	style = !w.style                     ? S3_STYLE_AUTO :
		strcmp(w.style, "path") == 0 ? S3_STYLE_PATH :
					       S3_STYLE_VIRTUAL;
	if (r == 0 && s3_site_parse(w.endpoint, w.region, style, &ret->site, e) < 0)
		r = err_wrap(e, "--s3-endpoint");
	if (r == 0 && w.ca)
		r = read_ca(w.ca, &ret->ca, e);
	return r == 0 ? read_keys(&w, &ret->creds, e) : r;
}

const struct s3_place *bucket_place(const struct bucket_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_places; i++)
		if (strcmp(c->places[i].name, name) == 0)
			return &c->places[i].place;
	return NULL;
}
