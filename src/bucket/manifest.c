/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - Lines sorted by path, in memory and in a file. A record of the file is "SIZE ETAG
 * SHA256 PATH" and a NUL: paths may hold every other byte. */
#include "bucket/manifest.h"

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

#define FILE_MAX (256u << 20)
#define NAME_SIZE 64u

/* ---- lines --------------------------------------------------------------------------------- */

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

/* ---- the file ------------------------------------------------------------------------------ */

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
