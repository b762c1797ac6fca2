/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refs.c - The file "refs": one line of three words per reference, in memory as an array.
 *
 * A line that is not in its one canonical form makes the whole file damaged: the collector must not
 * remove images because a line was skipped.
 */
#include "image/image_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"

#define NAME "refs"
#define BYTES_MAX (REFS_MAX * (IMAGE_REF_MAX + IMAGE_DIGEST_MAX + 24))

void refs_free(struct refs *r)
{
	free(r->rows);
	*r = (struct refs){ 0 };
}

static struct refs_row *add(struct refs *r)
{
	if (mem_grow(&r->rows, &r->cap, r->n + 1, sizeof(*r->rows)) < 0)
		return NULL;
	r->rows[r->n] = (struct refs_row){ 0 };
	return &r->rows[r->n++];
}

/* One line, without its end. */
static int parse_line(char *line, struct refs_row *row)
{
	char *time = strchr(line, ' '), *ref = time ? strchr(time + 1, ' ') : NULL;
	char canonical[IMAGE_REF_MAX];
	struct ref parsed;

	if (!ref)
		return -EBADMSG;
	*time++ = *ref++ = '\0';
	if (!ref_digest_ok(line) || !num_digits(time, strlen(time), &row->time_s) ||
	    ref_parse(ref, &parsed, NULL) < 0)
		return -EBADMSG;
	ref_format(&parsed, canonical);
	if (strcmp(canonical, ref) != 0)
		return -EBADMSG;
	memcpy(row->digest, line, sizeof(row->digest));
	memcpy(row->ref, canonical, sizeof(row->ref));
	return 0;
}

int refs_parse(const char *text, size_t len, struct refs *ret, struct err *e)
{
	char line[IMAGE_REF_MAX + IMAGE_DIGEST_MAX + 32];
	const char *end = text + len;

	*ret = (struct refs){ 0 };
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t n = nl ? (size_t)(nl - text) : 0;
		struct refs_row *row = NULL;
		int r = -EBADMSG;

		if (nl && n < sizeof(line) && !memchr(text, '\0', n) && ret->n < REFS_MAX) {
			row = add(ret);
			if (!row)
				r = -ENOMEM;
		}
		if (row) {
			memcpy(line, text, n);
			line[n] = '\0';
			r = parse_line(line, row);
		}
		if (r < 0) {
			refs_free(ret);
			return r == -ENOMEM ?
				       err_set(e, r, "read the references of the image store") :
				       err_say(e, r, "the image store's file 'refs' is damaged");
		}
		text = nl + 1;
	}
	return 0;
}

int refs_load(const struct store *s, struct refs *ret, struct err *e)
{
	_fd_ int fd = openat(s->dir, NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_buf_ struct buf text = BUF_INIT(BYTES_MAX);

	*ret = (struct refs){ 0 };
	if (fd < 0)
		return errno == ENOENT ? 0 :
					 err_set(e, -errno, "open the image store's references");
	int r = fd_read_buf(fd, &text);

	if (r < 0)
		return err_set(e, r, "read the image store's references");
	return refs_parse(buf_str(&text), text.len, ret, e);
}

int refs_save(const struct store *s, const struct refs *r, struct err *e)
{
	_buf_ struct buf text = BUF_INIT(BYTES_MAX);

	for (size_t i = 0; i < r->n; i++)
		(void)buf_printf(&text, "%s %" PRIu64 " %s\n", r->rows[i].digest, r->rows[i].time_s,
				 r->rows[i].ref);
	if (text.err)
		return err_set(e, text.err, "write the image store's references");
	return store_replace(s, s->dir, NAME, buf_str(&text), text.len, e);
}

const struct refs_row *refs_find(const struct refs *r, const struct ref *want)
{
	char canonical[IMAGE_REF_MAX];
	struct ref row;

	ref_format(want, canonical);
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->rows[i].ref, canonical) == 0)
			return &r->rows[i];
	for (size_t i = 0; i < r->n && want->digest[0]; i++)
		if (ref_parse(r->rows[i].ref, &row, NULL) == 0 &&
		    strcmp(row.name, want->name) == 0 && strcmp(row.host, want->host) == 0 &&
		    (strcmp(r->rows[i].digest, want->digest) == 0 ||
		     strcmp(row.digest, want->digest) == 0))
			return &r->rows[i];
	return NULL;
}

int refs_set(struct refs *r, const char *ref, const char *digest, uint64_t time_s, struct err *e)
{
	struct refs_row *row = NULL;

	for (size_t i = 0; i < r->n && !row; i++)
		if (strcmp(r->rows[i].ref, ref) == 0)
			row = &r->rows[i];
	if (!row && r->n >= REFS_MAX)
		return err_say(e, -E2BIG, "the store has %d references; 'caisson image rm' some",
			       REFS_MAX);
	if (!row && !(row = add(r)))
		return err_set(e, -ENOMEM, "add a reference");
	(void)snprintf(row->ref, sizeof(row->ref), "%s", ref);
	(void)snprintf(row->digest, sizeof(row->digest), "%s", digest);
	row->time_s = time_s;
	return 0;
}

void refs_drop(struct refs *r, const struct refs_row *row)
{
	size_t at = (size_t)(row - r->rows);

	memmove(&r->rows[at], &r->rows[at + 1], (r->n - at - 1) * sizeof(*r->rows));
	r->n--;
}
