/* SPDX-License-Identifier: Apache-2.0 */
/*
 * untar.c - The archive as a state machine: head, extended header, body, padding, end.
 *
 * A link is kept when no way through it leaves the tree. Its target may climb only at its beginning, and
 * not above the root: the directory that holds the link is a real one, so that those steps lead where they
 * seem to; what follows them only descends, perhaps through other links that are held to the same.
 */
#include "package_store/untar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/err.h"

/* ---- paths ------------------------------------------------------------------------------------------- */

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(s, word, len) == 0;
}

/* Components of @from, one slash between them. False: absolute, "..", too deep, too long. */
static bool normalise(const char *from, char to[UNTAR_PATH_MAX])
{
	size_t at = 0, depth = 0;

	if (from[0] == '/')
		return false;
	while (*(from += strspn(from, "/"))) {
		size_t n = strcspn(from, "/");

		if (is_word(from, n, "..") || at + n + 2 > UNTAR_PATH_MAX)
			return false;
		if (!is_word(from, n, ".")) {
			if (++depth > UNTAR_DEPTH_MAX)
				return false;
			if (at)
				to[at++] = '/';
			memcpy(to + at, from, n);
			at += n;
		}
		from += n;
	}
	to[at] = '\0';
	return true;
}

bool untar_link_ok(const char *path, const char *target)
{
	size_t depth = 0;
	bool descending = false;

	if (target[0] == '/' || target[0] == '\0')
		return false;
	for (; *path; path++)
		depth += *path == '/';
	while (*(target += strspn(target, "/"))) {
		size_t n = strcspn(target, "/");

		if (is_word(target, n, "..")) {
			if (descending || depth-- == 0)
				return false;
		} else if (!is_word(target, n, ".")) {
			descending = true;
		}
		target += n;
	}
	return true;
}

/* ---- extended headers ---------------------------------------------------------------------------------- */

static int set_text(char to[UNTAR_PATH_MAX], bool *has, const char *text, size_t len, struct err *e)
{
	if (len == 0 || memchr(text, '\0', len))
		return err_say(e, -EBADMSG, "the archive has a name that is none");
	if (len >= UNTAR_PATH_MAX)
		return err_say(e, -EPERM, "the tree has a path longer than %u bytes",
			       UNTAR_PATH_MAX - 1);
	memcpy(to, text, len);
	to[len] = '\0';
	*has = true;
	return 0;
}

static int use_record(struct untar *u, const struct tar_record *r, struct err *e)
{
	int64_t size;

	if (tar_record_is(r, "path"))
		return set_text(u->entry.path, &u->has_path, r->value, r->value_len, e);
	if (tar_record_is(r, "linkpath"))
		return set_text(u->entry.link, &u->has_link, r->value, r->value_len, e);
	if (tar_record_is(r, "size")) {
		if (tar_record_number(r, &size) < 0 || size < 0)
			return err_say(e, -EBADMSG, "the archive has a size that is none");
		u->has_size = true;
		u->size = (uint64_t)size;
	}
	if (r->key_len >= 10 && memcmp(r->key, "GNU.sparse", 10) == 0)
		return err_say(e, -EPERM, "the archive has a sparse file");
	return 0;
}

static int use_meta(struct untar *u, struct err *e)
{
	size_t len = u->meta_len, at = 0;
	struct tar_record record;
	int n, r = 0;

	if (u->meta_type == 'g') /* what is true for all entries: nothing that we use */
		return 0;
	u->has_records = u->meta_type == 'x';
	if (u->meta_type == 'L')
		return set_text(u->entry.path, &u->has_path, u->meta, strnlen(u->meta, len), e);
	if (u->meta_type == 'K')
		return set_text(u->entry.link, &u->has_link, u->meta, strnlen(u->meta, len), e);
	while (r == 0 && (n = tar_record_next(u->meta, len, &at, &record)) != 0)
		r = n < 0 ? err_say(e, n, "the archive has a broken header") :
			    use_record(u, &record, e);
	return r;
}

static int begin_meta(struct untar *u, const struct tar_head *h, struct err *e)
{
	if (h->size > UNTAR_META_MAX)
		return err_say(e, -EBADMSG, "the archive has a header of %llu bytes",
			       (unsigned long long)h->size);
	if (!u->meta && !(u->meta = malloc(UNTAR_META_MAX + TAR_BLOCK)))
		return err_set(e, -ENOMEM, "unpack");
	u->meta_type = h->type;
	u->meta_len = (size_t)h->size;
	u->left = (h->size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	u->have = 0;
	u->state = UNTAR_META;
	return 0;
}

/* ---- entries ------------------------------------------------------------------------------------------- */

static int check_kind(struct untar *u, const char *path, struct err *e)
{
	struct untar_entry *en = &u->entry;
	char link[UNTAR_PATH_MAX];

	if (!strchr(u->whole ? "01256" : "025", en->type))
		return err_say(e, -EPERM, "'%.200s' is neither file, directory nor link", path);
	if (en->type == '2' && (u->whole ? !en->link[0] : !untar_link_ok(en->path, en->link)))
		return err_say(e, -EPERM, "the link '%.150s' points out of the tree", path);
	if (en->type != '1')
		return 0;
	memcpy(link, en->link, sizeof(link));
	if (!normalise(link, en->link) || !en->link[0])
		return err_say(e, -EPERM, "the hard link '%.150s' is to nothing in the tree", path);
	return 0;
}

static int check_entry(struct untar *u, struct err *e)
{
	const struct untar_entry *en = &u->entry;
	char path[UNTAR_PATH_MAX];

	memcpy(path, en->path, sizeof(path));
	if (!normalise(path, u->entry.path))
		return err_say(e, -EPERM, "'%.200s' is a path that leaves the tree, or too deep",
			       path);
	if (check_kind(u, path, e) < 0)
		return e->code;
	if (++u->files > u->max_files)
		return err_say(e, -EFBIG, "more than %llu files", (unsigned long long)u->max_files);
	if (en->type == '0' && (en->size > u->max_bytes || u->bytes > u->max_bytes - en->size))
		return err_say(e, -EFBIG, "more than %llu MiB",
			       (unsigned long long)(u->max_bytes >> 20));
	return 0;
}

/* Only files have content; some writers say a size for links and directories all the same. */
static int begin_entry(struct untar *u, const struct tar_head *h, const struct untar_sink *sink,
		       void *arg, struct err *e)
{
	struct untar_entry *en = &u->entry;

	if (!u->has_path)
		memcpy(en->path, h->name, sizeof(h->name));
	if (!u->has_link)
		memcpy(en->link, h->link, sizeof(h->link));
	en->type = h->type;
	en->executable = h->mode & 0111;
	en->mode = h->mode & 0777;
	en->mtime = h->mtime;
	en->size = h->type != '0' ? 0 : u->has_size ? u->size : h->size;
	en->records = u->meta;
	en->records_len = u->has_records ? u->meta_len : 0;
	u->has_path = u->has_link = u->has_size = u->has_records = false;
	if (check_entry(u, e) < 0)
		return e->code;
	if (!en->path[0] && en->type == '5') /* the root, which is there */
		return 0;
	if (!en->path[0])
		return err_say(e, -EPERM, "the archive has an entry without a name");
	int r = sink->entry(arg, en, e);

	if (r < 0 || en->type != '0')
		return r;
	u->bytes += en->size;
	u->left = en->size;
	u->pad = (size_t)((TAR_BLOCK - en->size % TAR_BLOCK) % TAR_BLOCK);
	u->state = UNTAR_BODY;
	return 0;
}

static int take_head(struct untar *u, const struct untar_sink *sink, void *arg, struct err *e)
{
	struct tar_head h;
	int r = tar_parse(u->block, &h);

	u->have = 0;
	if (r < 0)
		return err_say(e, r, "what came is no archive");
	if (r == 0) {
		u->state = UNTAR_END;
		return 0;
	}
	if (h.type == 'x' || h.type == 'g' || h.type == 'L' || h.type == 'K')
		return begin_meta(u, &h, e);
	return begin_entry(u, &h, sink, arg, e);
}

/* ---- pieces -------------------------------------------------------------------------------------------- */

static size_t least(size_t a, uint64_t b)
{
	return a < b ? a : (size_t)b;
}

/* As much as the state takes. Return: how much, or a negative errno. */
static ssize_t take(struct untar *u, const struct untar_sink *sink, void *arg, const char *data,
		    size_t len, struct err *e)
{
	size_t n;
	int r = 0;

	switch (u->state) {
	case UNTAR_HEAD:
		n = least(len, TAR_BLOCK - u->have);
		memcpy(u->block + u->have, data, n);
		u->have += n;
		if (u->have == TAR_BLOCK)
			r = take_head(u, sink, arg, e);
		break;
	case UNTAR_META:
		n = least(len, u->left);
		memcpy(u->meta + u->have, data, n);
		u->have += n;
		u->left -= n;
		break;
	case UNTAR_BODY:
		n = least(len, u->left);
		u->left -= n;
		r = n ? sink->data(arg, data, n, e) : 0;
		break;
	case UNTAR_PAD:
		n = least(len, u->left);
		u->left -= n;
		break;
	default: /* whatever follows the end is dropped */
		n = len;
	}
	return r < 0 ? r : (ssize_t)n;
}

/* What is complete without a further byte. */
static int settle(struct untar *u, const struct untar_sink *sink, void *arg, struct err *e)
{
	int r = 0;

	if (u->state == UNTAR_META && u->left == 0) {
		u->have = 0;
		u->state = UNTAR_HEAD;
		r = use_meta(u, e);
	}
	if (u->state == UNTAR_BODY && u->left == 0) {
		u->left = u->pad;
		u->state = UNTAR_PAD;
		r = sink->close(arg, e);
	}
	if (u->state == UNTAR_PAD && u->left == 0)
		u->state = UNTAR_HEAD;
	return r;
}

int untar_feed(struct untar *u, const struct untar_sink *sink, void *arg, const char *data,
	       size_t len, struct err *e)
{
	struct err local = { 0 };

	if (!e)
		e = &local;
	while (len > 0) {
		ssize_t n = take(u, sink, arg, data, len, e);

		if (n < 0)
			return (int)n;
		data += n;
		len -= (size_t)n;
		int r = settle(u, sink, arg, e);

		if (r < 0)
			return r;
	}
	return 0;
}

bool untar_ended(const struct untar *u)
{
	return u->state == UNTAR_END;
}

void untar_free(struct untar *u)
{
	free(u->meta);
	u->meta = NULL;
}
