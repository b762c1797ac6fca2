/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - The list of a place, page by page, and the check that its keys can be a tree. */
#include "bucket/listing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "s3/object.h"

#define NAMED 3u /* in a message */
#define FILES_MAX 1000000u
#define PAGES_MAX 20000u /* a server may never come to an end */

void listing_free(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->list[i].key);
	free(l->list);
	*l = (struct listing){ 0 };
}

int listing_add(struct listing *l, struct s3_page *page, const char *prefix, struct err *e)
{
	size_t skip = strlen(prefix);

	if (mem_grow(&l->list, &l->cap, l->n + page->n, sizeof(*l->list)) < 0)
		return err_set(e, -ENOMEM, "list the bucket");
	for (size_t i = 0; i < page->n; i++) {
		struct s3_object *o = &page->list[i];

		if (o->key_len < skip || memcmp(o->key, prefix, skip) != 0)
			return err_say(e, -EBADMSG, "the list has keys that were not asked for");
		if (o->key_len == skip && skip > 0)
			continue; /* the mark of the prefix itself */
		o->key_len -= skip;
		memmove(o->key, o->key + skip, o->key_len + 1);
		l->list[l->n++] = *o;
		l->bytes += o->size;
		o->key = NULL;
	}
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct s3_object *x = a, *y = b;

	return strcmp(x->key, y->key);
}

const struct s3_object *listing_find(const struct listing *l, const char *path)
{
	const struct s3_object wanted = { .key = (char *)(uintptr_t)path };

	return l->n ? bsearch(&wanted, l->list, l->n, sizeof(l->list[0]), by_key) : NULL;
}

/* Whether a directory that @o is in, or is, is a file too. Keys are known to be no longer than
 * S3_KEY_MAX. */
static bool under_file(const struct listing *l, const struct s3_object *o)
{
	char path[S3_KEY_MAX + 1];

	memcpy(path, o->key, o->key_len + 1);
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (listing_find(l, path))
			return true;
		*p = '/';
	}
	return false;
}

int listing_check(struct listing *l, struct err *e)
{
	_buf_ struct buf names = BUF_INIT(400);
	size_t bad = 0;
	char shown[90];

	for (size_t i = 0; i < l->n; i++) {
		const char *problem = s3_key_problem(l->list[i].key, l->list[i].key_len);

		if (problem && bad++ < NAMED)
			(void)buf_printf(&names, "%s'%s' %s", bad > 1 ? "; " : "",
					 s3_key_show(l->list[i].key, l->list[i].key_len, shown,
						     sizeof(shown)),
					 problem);
	}
	if (l->n)
		qsort(l->list, l->n, sizeof(l->list[0]), by_key);
	for (size_t i = 0; bad == 0 && i < l->n; i++)
		if (under_file(l, &l->list[i]) && bad++ < NAMED)
			(void)buf_printf(&names, "%s'%s' is below another object",
					 bad > 1 ? "; " : "",
					 s3_key_show(l->list[i].key, l->list[i].key_len, shown,
						     sizeof(shown)));
	if (bad == 0)
		return 0;
	return err_say(e, -EINVAL, "%zu keys of the bucket cannot be files: %s%s", bad,
		       buf_str(&names), bad > NAMED ? "; and more" : "");
}

int listing_read(struct job *j, uint64_t max_files, uint64_t max_bytes, struct listing *ret,
		 struct err *e)
{
	struct s3_page page = { 0 };
	size_t pages = 0;
	int r;

	*ret = (struct listing){ 0 };
	max_files = max_files && max_files < FILES_MAX ? max_files : FILES_MAX;
	do {
		char *token = page.token;

		page.token = NULL;
		s3_page_free(&page);
		r = s3_page(&j->client, j->place, token, &page, e);
		free(token);
		if (r == 0)
			r = listing_add(ret, &page, j->place->prefix, e);
		if (r == 0 && ++pages > PAGES_MAX)
			r = err_say(e, -EFBIG, "the list of the bucket has no end");
		if (r == 0 && ret->n > max_files)
			r = err_say(e, -EFBIG, "the bucket has more than %" PRIu64 " objects there",
				    max_files);
		if (r == 0 && max_bytes && ret->bytes > max_bytes)
			r = err_say(e, -EFBIG, "the bucket has more than %" PRIu64 " bytes there",
				    max_bytes);
	} while (r == 0 && page.more);
	s3_page_free(&page);
	return r == 0 ? listing_check(ret, e) : r;
}
