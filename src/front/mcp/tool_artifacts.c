/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_artifacts.c - The files that an execution made or changed, listed in its cell afterwards.
 *
 * They are the files whose status changed since it began, by the Linux kernel's clock, which code
 * cannot set. Files that a background process changed meanwhile are among them. Where the operator
 * has a bucket for artifacts, each is copied there before the answer, which has a link to it.
 * Pictures are read and become blocks, as long as there is room for them.
 */
#include "front/mcp/tool_artifacts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h" /* ARRAY_SIZE */
#include "base/utf8.h"
#include "front/buckets/buckets.h"
#include "front/buckets/publish.h"
#include "front/files/artifact.h"
#include "front/mcp/file_job.h"
#include "front/mcp/listing.h"
#include "front/mcp/mcp.h"
#include "front/operations/services.h"
#include "front/sandbox/sandbox.h"
#include "front/support/log.h"
#include "mcp/uri.h"

#define LOOKED_AT 10000u
#define ARTIFACTS_MAX 20u

struct artifacts {
	struct mcp_output o;
	char sandbox[SANDBOX_NAME_MAX + 1];
	int64_t since_ns;
	bool is_error;
	struct listing found;
	struct mcp_call *c;
	struct publish *copy;       /* of the file at hand */
	size_t at, picture;         /* the file at hand: to be put, to be read */
	char *links[ARTIFACTS_MAX]; /* NULL: none */
};

static void artifacts_free(void *arg)
{
	struct artifacts *p = arg;

	mcp_output_drop(&p->o);
	publish_free(p->copy);
	for (size_t i = 0; i < p->found.n; i++) {
		free(p->found.files[i].name);
		free(p->links[i]);
	}
	free(p);
}

static void on_entry(struct file_job *j, const struct files_stat *st, struct files_text name)
{
	struct artifacts *p = j->arg;

	if (st->type != FILES_T_FILE || st->ctime_ns < p->since_ns ||
	    !utf8_valid(name.data, name.len) || !artifact_is(name.data, name.len))
		return;
	char *copy = p->found.n < ARTIFACTS_MAX ? files_text_copy(name) : NULL;

	if (!copy) {
		p->found.truncated = true;
		return;
	}
	p->found.files[p->found.n++] = (struct listing_file){ copy, *st };
}

/* `files` as the last member of the object. */
static void add_member(struct artifacts *p)
{
	struct json *j = &p->o.s;

	json_member_array(j, "files");
	for (size_t i = 0; i < p->found.n; i++) {
		const struct listing_file *f = &p->found.files[i];

		json_object_begin(j);
		json_member_str(j, "path", f->name);
		json_member_uint(j, "size", f->stat.size);
		json_member_str(j, "mime_type", mime_of(f->name));
		if (p->links[i])
			json_member_str(j, "link", p->links[i]);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void answer(struct artifacts *p)
{
	static const char more[] = "[more files changed: see list_files]";

	for (size_t i = 0; i < p->found.n; i++) {
		const struct listing_file *f = &p->found.files[i];
		_buf_ struct buf uri = BUF_INIT(4 * FILES_PATH_MAX);

		mcp_uri_file(&uri, p->sandbox, f->name);
		mcp_output_link(&p->o, buf_str(&uri), f->name, mime_of(f->name), f->stat.size);
		if (p->links[i])
			mcp_output_link(&p->o, p->links[i], f->name, mime_of(f->name),
					f->stat.size);
	}
	if (p->found.truncated)
		mcp_output_text(&p->o, more, sizeof(more) - 1);
	add_member(p);
	mcp_output_end(p->c, &p->o, p->is_error);
}

/* ---- pictures ------------------------------------------------------------------------------ */

static void read_next(struct artifacts *p);

/* Whether the bytes are a picture of this type: a client may fail on others. */
static bool is_picture(const char *mime, const char *data, size_t len)
{
	static const struct {
		const char *mime, *begin;
		size_t at, len;
	} known[] = {
		{ "image/png", "\x89PNG\r\n\x1a\n", 0, 8 },
		{ "image/jpeg", "\xff\xd8\xff", 0, 3 },
		{ "image/gif", "GIF8", 0, 4 },
		{ "image/webp", "WEBP", 8, 4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(mime, known[i].mime) == 0)
			return len == 0 ||
			       (len >= known[i].at + known[i].len &&
				memcmp(data + known[i].at, known[i].begin, known[i].len) == 0);
	return false;
}

static void on_read(struct file_job *j)
{
	struct artifacts *p = j->arg;
	const char *mime = mime_of(j->call.path);

	if (!j->call.refusal.kind && j->data.len > 0 && j->data.len == j->stat.size &&
	    is_picture(mime, buf_str(&j->data), j->data.len))
		mcp_output_file(&p->o, buf_str(&j->data), j->data.len, mime);
	j->arg = NULL;
	j->free_arg = NULL;
	read_next(p);
}

/* The next picture that there is room for; after the last the call is answered. */
static void read_next(struct artifacts *p)
{
	struct sandbox *s = sandbox_find(p->c->mcp->sandboxes, p->c->owner, p->sandbox);

	while (s && p->picture < p->found.n) {
		const struct listing_file *f = &p->found.files[p->picture++];
		struct file_job *j;
		struct refusal why;

		if (f->stat.size == 0 || f->stat.size > MCP_PICTURE_BYTES ||
		    !is_picture(mime_of(f->name), NULL, 0) ||
		    !mcp_output_takes(&p->o, (f->stat.size + 2) / 3 * 4) ||
		    !(j = file_job_new(p->c, f->name, f->stat.size, &why)))
			continue;
		j->arg = p;
		j->free_arg = artifacts_free;
		j->done = on_read;
		j->call.q.length = f->stat.size;
		file_job_run(j, FILES_READ, s);
		return;
	}
	answer(p);
	artifacts_free(p);
}

/* ---- to the bucket ------------------------------------------------------------------------- */

static void on_cancel(struct mcp_call *c)
{
	artifacts_free(c->work);
}

static void copy_next(struct artifacts *p);

static void on_copied(struct publish *copy)
{
	struct artifacts *p = copy->arg;

	if (copy->code == 0)
		p->links[p->at] = strdup(copy->link);
	else
		log_event(LOG_LEVEL_WARNING, "artifact_not_put", F_STR("sandbox", p->sandbox),
			  F_STR("why", copy->why));
	publish_free(copy);
	p->copy = NULL;
	p->at++;
	copy_next(p);
}

/* The next one that can be put; after the last the call is answered. */
static void copy_next(struct artifacts *p)
{
	struct sandbox *s = sandbox_find(p->c->mcp->sandboxes, p->c->owner, p->sandbox);

	if (s && p->at < p->found.n)
		p->copy = publish_new(p->c->mcp->services->buckets, s, p->found.files[p->at].name,
				      on_copied, p);
	if (p->copy)
		return;
	p->c->work = NULL;
	p->c->cancel = NULL;
	read_next(p);
}

static void on_done(struct file_job *j)
{
	struct artifacts *p = j->arg;

	listing_sort(&p->found);
	/* The job ends here; the call owns the result from now on. */
	j->arg = NULL;
	j->free_arg = NULL;
	if (!j->c->mcp->services->buckets->artifacts) {
		read_next(p);
		return;
	}
	j->c->work = p;
	j->c->cancel = on_cancel;
	copy_next(p);
}

void mcp_output_artifacts(struct mcp_call *c, struct sandbox *s, struct mcp_output *o,
			  int64_t since_ns, bool is_error)
{
	struct refusal why;
	struct artifacts *p = calloc(1, sizeof(*p));
	struct file_job *j = p ? file_job_new(c, "/workspace", 0, &why) : NULL;

	if (!j) {
		free(p);
		json_object_end(&o->s);
		mcp_output_end(c, o, is_error);
		return;
	}
	mcp_output_move(&p->o, o);
	p->c = c;
	p->since_ns = since_ns;
	p->is_error = is_error;
	(void)snprintf(p->sandbox, sizeof(p->sandbox), "%s", s->name);
	j->arg = p;
	j->free_arg = artifacts_free;
	j->entry = on_entry;
	j->done = on_done;
	j->call.q.limit = LOOKED_AT;
	j->call.q.flags = FILES_RECURSIVE;
	j->call.q.depth = FILES_DEPTH_MAX;
	file_job_run(j, FILES_LIST, s);
}
