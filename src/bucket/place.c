/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - The list of a place, page by page, and the check that its keys can be a tree; lines of
 * a manifest, sorted by path, in memory and in a file.
 *
 * A record of the file is "SIZE ETAG SHA256 PATH" and a NUL: paths may hold every other byte.
 */
#include "bucket/bucket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "s3/object.h"

#define NAMED 3u /* in a message */
#define FILES_MAX 1000000u
#define PAGES_MAX 20000u /* a server may never come to an end */
#define FILE_MAX (256u << 20)
#define NAME_SIZE 64u

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

/* ---- manifests ----------------------------------------------------------------------------- */

void manifest_free(struct manifest *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->list[i].path);
	free(m->list);
	*m = (struct manifest){ 0 };
}

/* Where it is, or would be. */
static size_t place_of(const struct manifest *m, const char *path, bool *ret_found)
{
	size_t from = 0, to = m->n;

	*ret_found = false;
	while (from < to) {
		size_t mid = from + (to - from) / 2;
		int order = strcmp(path, m->list[mid].path);

		*ret_found |= order == 0;
		if (order <= 0)
			to = mid;
		else
			from = mid + 1;
	}
	return from;
}

struct manifest_line *manifest_find(const struct manifest *m, const char *path)
{
	bool found;
	size_t at = place_of(m, path, &found);

	return found ? &m->list[at] : NULL;
}

int manifest_set(struct manifest *m, const char *path, uint64_t size, const char *etag,
		 const char *sha256)
{
	bool found, plain = strlen(etag) < S3_ETAG_MAX && !strpbrk(etag, " \t\r\n");
	size_t at = place_of(m, path, &found);

	if (!found) {
		char *copy = strdup(path);

		if (!copy || mem_grow(&m->list, &m->cap, m->n + 1, sizeof(*m->list)) < 0) {
			free(copy);
			return -ENOMEM;
		}
		memmove(&m->list[at + 1], &m->list[at], (m->n - at) * sizeof(m->list[0]));
		m->list[at] = (struct manifest_line){ .path = copy };
		m->n++;
	}
	struct manifest_line *l = &m->list[at];

	l->size = size;
	(void)snprintf(l->etag, sizeof(l->etag), "%s", plain ? etag : "");
	(void)snprintf(l->sha256, sizeof(l->sha256), "%s", sha256);
	return 0;
}

void manifest_drop(struct manifest *m, struct manifest_line *line)
{
	size_t at = (size_t)(line - m->list);

	free(line->path);
	memmove(line, line + 1, (m->n - at - 1) * sizeof(*line));
	m->n--;
}

/* The next word, of less than @size bytes, and the blank behind it. NULL: none. */
static const char *word(const char *at, char *to, size_t size)
{
	size_t n = at ? strcspn(at, " ") : 0;

	if (!at || !at[n] || n >= size)
		return NULL;
	memcpy(to, at, n);
	to[n] = '\0';
	return at + n + 1;
}

static int add_record(struct manifest *m, const char *record)
{
	char size[24], etag[S3_ETAG_MAX], hash[S3_HASH_HEX + 1];
	const char *path = word(word(word(record, size, sizeof(size)), etag, sizeof(etag)), hash,
				sizeof(hash));
	uint64_t bytes = 0;

	if (!path || !path[0] || num_parse_u64(size, 0, INT64_MAX, &bytes, NULL) < 0)
		return -EBADMSG;
	return manifest_set(m, path, bytes, etag, hash);
}

int manifest_parse(const char *text, size_t len, struct manifest *ret)
{
	int r = 0;

	*ret = (struct manifest){ 0 };
	for (size_t at = 0; r == 0 && at < len;) {
		const char *end = memchr(text + at, '\0', len - at);

		r = end ? add_record(ret, text + at) : -EBADMSG;
		at = end ? (size_t)(end - text) + 1 : len;
	}
	if (r < 0)
		manifest_free(ret);
	return r;
}

static const char *name_of(const struct job *j, bool kept, char out[NAME_SIZE])
{
	(void)snprintf(out, NAME_SIZE, "%s%s", j->q->work, kept ? "" : ".new");
	return out;
}

int manifest_read(const struct job *j, struct manifest *ret, struct err *e)
{
	char name[NAME_SIZE];
	size_t len = 0;
	_fd_ int fd = openat(j->dir, name_of(j, true, name), O_RDONLY | O_CLOEXEC);
	_mem_ char *text = fd < 0 ? NULL : fd_read_whole(fd, FILE_MAX, &len);

	*ret = (struct manifest){ 0 };
	if (!text)
		return err_set(e, -errno, "read the manifest of the bucket");
	int r = manifest_parse(text, len, ret);

	return r < 0 ? err_set(e, r, "the manifest") : 0;
}

int manifest_write(const struct job *j, bool kept, const struct manifest *m, struct err *e)
{
	char name[NAME_SIZE], tmp[NAME_SIZE + 8];
	_buf_ struct buf text = BUF_INIT(FILE_MAX);

	for (size_t i = 0; i < m->n; i++) {
		const struct manifest_line *l = &m->list[i];

		(void)buf_printf(&text, "%" PRIu64 " %s %s %s", l->size, l->etag, l->sha256,
				 l->path);
		(void)buf_append(&text, "", 1);
	}
	(void)snprintf(tmp, sizeof(tmp), "%s.tmp", name_of(j, kept, name));
	_fd_ int fd = openat(j->dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r = text.err ? text.err : fd < 0 ? -errno : fd_write_all(fd, buf_str(&text), text.len);

	if (r == 0 && (fsync(fd) < 0 || renameat(j->dir, tmp, j->dir, name) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(j->dir, tmp, 0);
	return r < 0 ? err_set(e, r, "write the manifest of the bucket") : 0;
}

int manifest_keep(struct job *j, struct err *e)
{
	char from[NAME_SIZE], to[NAME_SIZE];

	if (renameat(j->dir, name_of(j, false, from), j->dir, name_of(j, true, to)) < 0)
		return err_set(e, -errno, "write the manifest of the bucket");
	return 0;
}

int manifest_forget(struct job *j, struct err *e)
{
	char name[NAME_SIZE];

	if ((unlinkat(j->dir, name_of(j, true, name), 0) < 0 && errno != ENOENT) ||
	    (unlinkat(j->dir, name_of(j, false, name), 0) < 0 && errno != ENOENT))
		return err_set(e, -errno, "remove the manifest of the bucket");
	return 0;
}
