/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_reader.c - The archive as a state machine: head, extended header, body, padding, end.
 *
 * A hostile archive controls every byte here. Each copy into memory is bounded first: a block is
 * 512 bytes, an extended header at most meta_max, a name at most path_max. Sizes are at most
 * INT64_MAX (tar_parse(), tar_record_number()), so their sums with a block do not overflow. An
 * entry passes all checks of check_entry() before the sink sees it, and a refusal is final: no
 * later byte is looked at.
 */
#include "archive/tar_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "archive/path.h"
#include "base/err.h"

/* ---- faults ---------------------------------------------------------------------------------- */

static int refuse(struct tar_reader *r, enum tar_fault fault, struct err *e)
{
	const char *path = r->path ? r->path : "";

	r->fault = fault;
	switch (fault) {
	case TAR_NO_HEADER:
		return err_say(e, -EBADMSG, "this is not a tar archive, or it is damaged");
	case TAR_BAD_RECORD:
		return err_say(e, -EBADMSG, "the archive has a damaged pax header");
	case TAR_BAD_NAME:
		return err_say(e, -EBADMSG, "the archive has an invalid name");
	case TAR_LONG_META:
		return err_say(e, -EBADMSG, "the archive has an extended header over %zu bytes",
			       r->rules->meta_max);
	case TAR_LONG_NAME:
		return err_say(e, -EPERM, "the tree has a path longer than %zu bytes",
			       r->rules->path_max - 1);
	case TAR_SPARSE:
		return err_say(e, -EPERM, "the archive has a sparse file");
	case TAR_NO_NAME:
		return err_say(e, -EPERM, "the archive has an entry without a name");
	case TAR_KIND:
		return err_say(e, -EPERM, "'%.200s' is neither file, directory nor link", path);
	case TAR_LINK_OUT:
		return err_say(e, -EPERM, "the link '%.150s' points out of the tree", path);
	case TAR_LINK_EMPTY:
		return err_say(e, -EBADMSG, "the link '%.150s' has no target", path);
	case TAR_HARD_LINK:
		return err_say(e, -EPERM, "the hard link '%.150s' is to nothing in the tree", path);
	case TAR_MANY:
		return err_say(e, -EFBIG, "more than %llu files",
			       (unsigned long long)r->rules->max_files);
	case TAR_LARGE:
		return err_say(e, -EFBIG, "more than %llu MiB",
			       (unsigned long long)(r->rules->max_bytes >> 20));
	default: /* TAR_ABSOLUTE, TAR_UP, TAR_DEEP */
		return err_say(e, -EPERM, "'%.200s' is a path that leaves the tree, or too deep",
			       path);
	}
}

/* ---- extended headers ------------------------------------------------------------------------ */

static int set_text(struct tar_reader *r, char *to, bool *has, const char *text, size_t len,
		    struct err *e)
{
	if (len == 0 || memchr(text, '\0', len))
		return refuse(r, TAR_BAD_NAME, e);
	if (len >= r->rules->path_max)
		return refuse(r, TAR_LONG_NAME, e);
	memcpy(to, text, len);
	to[len] = '\0';
	*has = true;
	return 0;
}

static int use_record(struct tar_reader *r, const struct tar_record *rec, struct err *e)
{
	if (tar_record_is(rec, "path"))
		return set_text(r, r->path, &r->has_path, rec->value, rec->value_len, e);
	if (tar_record_is(rec, "linkpath"))
		return set_text(r, r->link, &r->has_link, rec->value, rec->value_len, e);
	if (tar_record_is(rec, "size")) {
		r->has_size = tar_record_number(rec, &r->size) == 0 && r->size >= 0;
		return r->has_size ? 0 : refuse(r, TAR_BAD_RECORD, e);
	}
	if (tar_record_is(rec, "mtime")) {
		r->has_mtime = tar_record_number(rec, &r->mtime) == 0;
		return r->has_mtime ? 0 : refuse(r, TAR_BAD_RECORD, e);
	}
	if (rec->key_len >= 10 && memcmp(rec->key, "GNU.sparse", 10) == 0)
		return refuse(r, TAR_SPARSE, e);
	return 0;
}

/* Several extended headers may come before an entry. The attributes are those of the last one. */
static int use_meta(struct tar_reader *r, struct err *e)
{
	size_t len = strnlen(r->meta, r->meta_len), at = 0;
	struct tar_record record;
	int n, done = 0;

	r->has_records = r->meta_type == 'x';
	switch (r->meta_type) {
	case 'L':
		return set_text(r, r->path, &r->has_path, r->meta, len, e);
	case 'K':
		return set_text(r, r->link, &r->has_link, r->meta, len, e);
	case 'g': /* for all entries: nothing that is used */
		return 0;
	default:
		while (done == 0 && (n = tar_record_next(r->meta, r->meta_len, &at, &record)) != 0)
			done = n < 0 ? refuse(r, TAR_BAD_RECORD, e) : use_record(r, &record, e);
		return done;
	}
}

static int begin_meta(struct tar_reader *r, const struct tar_head *h, struct err *e)
{
	if (h->size > r->rules->meta_max)
		return refuse(r, TAR_LONG_META, e);
	r->meta_type = h->type;
	r->meta_len = (size_t)h->size;
	r->left = h->size + tar_padding(h->size);
	r->state = TAR_AT_META;
	return 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

static enum tar_fault check_path(struct tar_reader *r)
{
	switch (tar_path_check(r->path, r->rules->depth_max)) {
	case TAR_PATH_OK:
		tar_path_tidy(r->path);
		return TAR_NO_FAULT;
	case TAR_PATH_ABSOLUTE:
		return TAR_ABSOLUTE;
	case TAR_PATH_UP:
		return TAR_UP;
	default:
		return TAR_DEEP;
	}
}

static enum tar_fault check_kind(struct tar_reader *r)
{
	const struct tar_entry *en = &r->entry;

	if (!strchr(r->rules->kinds, en->type))
		return TAR_KIND;
	if (en->type == '2' && r->rules->links_inside && !tar_link_inside(r->path, r->link))
		return TAR_LINK_OUT;
	if (en->type == '2' && !r->link[0])
		return TAR_LINK_EMPTY;
	if (en->type != '1')
		return TAR_NO_FAULT;
	if (tar_path_check(r->link, r->rules->depth_max) != TAR_PATH_OK)
		return TAR_HARD_LINK;
	tar_path_tidy(r->link);
	return r->link[0] ? TAR_NO_FAULT : TAR_HARD_LINK;
}

/* 1: hand it out; 0: leave it out; or a fault. */
static int check_entry(struct tar_reader *r, struct err *e)
{
	const struct tar_rules *rules = r->rules;
	const struct tar_entry *en = &r->entry;
	enum tar_fault fault = check_path(r);
	bool root = !r->path[0];

	if (fault)
		return refuse(r, fault, e);
	if (root && en->type != '5')
		return refuse(r, TAR_NO_NAME, e);
	fault = check_kind(r);
	if (rules->skips && (fault == TAR_KIND || fault == TAR_LINK_OUT)) {
		r->skipped++;
		return 0;
	}
	if (fault)
		return refuse(r, fault, e);
	if (++r->files > rules->max_files)
		return refuse(r, TAR_MANY, e);
	if (en->size > rules->max_bytes || r->bytes > rules->max_bytes - en->size)
		return refuse(r, TAR_LARGE, e);
	return !root;
}

/* Only files have content; some writers put a size on links and directories all the same. */
static void fill_entry(struct tar_reader *r, const struct tar_head *h)
{
	struct tar_entry *en = &r->entry;

	if (!r->has_path)
		memcpy(r->path, h->name, sizeof(h->name));
	if (!r->has_link)
		memcpy(r->link, h->link, sizeof(h->link));
	/* Old archives mark a directory by the end of its name. A name that an extended header
	 * replaces proves nothing: it is cut, perhaps behind a '/'. */
	size_t len = strlen(r->path);
	bool marked = h->type == '0' && len > 0 && r->path[len - 1] == '/';

	*en = (struct tar_entry){ .type = marked ? '5' : h->type,
				  .mode = h->mode & 0777,
				  .mtime = r->has_mtime ? r->mtime : h->mtime,
				  .path = r->path,
				  .link = r->link,
				  .records = r->meta,
				  .records_len = r->has_records ? r->meta_len : 0 };
	if (en->type == '0')
		en->size = r->has_size ? (uint64_t)r->size : h->size;
	r->has_path = r->has_link = r->has_size = r->has_mtime = r->has_records = false;
}

static int begin_entry(struct tar_reader *r, const struct tar_head *h, const struct tar_sink *sink,
		       void *arg, struct err *e)
{
	fill_entry(r, h);
	int done = check_entry(r, e);

	if (done <= 0)
		return done;
	done = sink->entry(arg, &r->entry, e);
	if (done < 0 || r->entry.type != '0')
		return done;
	r->bytes += r->entry.size;
	r->left = r->entry.size;
	r->state = TAR_AT_BODY;
	return 0;
}

static int take_head(struct tar_reader *r, const struct tar_sink *sink, void *arg, struct err *e)
{
	struct tar_head h;
	int found = tar_parse(r->block, &h);

	r->have = 0;
	if (found < 0)
		return refuse(r, TAR_NO_HEADER, e);
	if (found == 0) {
		r->state = TAR_AT_END;
		return 0;
	}
	if (h.type == 'x' || h.type == 'g' || h.type == 'L' || h.type == 'K')
		return begin_meta(r, &h, e);
	return begin_entry(r, &h, sink, arg, e);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

size_t tar_wants(const struct tar_reader *r)
{
	switch (r->state) {
	case TAR_AT_HEAD:
		return TAR_BLOCK - r->have;
	case TAR_AT_END:
		return SIZE_MAX;
	default:
		return r->left < SIZE_MAX ? (size_t)r->left : SIZE_MAX;
	}
}

/* @n bytes, at most as many as the state wants. */
static int take(struct tar_reader *r, const struct tar_sink *sink, void *arg, const char *data,
		size_t n, struct err *e)
{
	if (r->state == TAR_AT_HEAD) {
		memcpy(r->block + r->have, data, n);
		r->have += n;
		return r->have == TAR_BLOCK ? take_head(r, sink, arg, e) : 0;
	}
	if (r->state == TAR_AT_END)
		return 0;
	r->left -= n;
	if (r->state == TAR_AT_META) {
		memcpy(r->meta + r->have, data, n);
		r->have += n;
	}
	return r->state == TAR_AT_BODY && sink->data ? sink->data(arg, data, n, e) : 0;
}

/* The steps that need no further byte. */
static int settle(struct tar_reader *r, const struct tar_sink *sink, void *arg, struct err *e)
{
	int done = 0;

	if (r->state == TAR_AT_META && r->left == 0) {
		r->have = 0;
		r->state = TAR_AT_HEAD;
		done = use_meta(r, e);
	}
	if (r->state == TAR_AT_BODY && r->left == 0) {
		r->left = tar_padding(r->entry.size);
		r->state = TAR_AT_PADDING;
	}
	if (r->state == TAR_AT_PADDING && r->left == 0) {
		r->state = TAR_AT_HEAD;
		done = sink->close ? sink->close(arg, e) : 0;
	}
	return done;
}

static int get_memory(struct tar_reader *r, struct err *e)
{
	const struct tar_rules *u = r->rules;

	if (r->path)
		return 0;
	r->path = malloc(2 * u->path_max + u->meta_max + TAR_BLOCK);
	if (!r->path)
		return err_set(e, -ENOMEM, "unpack");
	r->path[0] = '\0';
	r->link = r->path + u->path_max;
	r->meta = r->link + u->path_max;
	return 0;
}

int tar_feed(struct tar_reader *r, const struct tar_sink *sink, void *arg, const void *data,
	     size_t len, struct err *e)
{
	const char *at = data;

	if (r->failed == 0)
		r->failed = get_memory(r, e);
	while (r->failed == 0 && len > 0) {
		size_t wants = tar_wants(r), n = len < wants ? len : wants;

		r->failed = take(r, sink, arg, at, n, e);
		if (r->failed == 0)
			r->failed = settle(r, sink, arg, e);
		at += n;
		len -= n;
	}
	return r->failed;
}

bool tar_ended(const struct tar_reader *r)
{
	return r->state == TAR_AT_END;
}

void tar_reader_free(struct tar_reader *r)
{
	free(r->path);
	r->path = r->link = r->meta = NULL;
}
