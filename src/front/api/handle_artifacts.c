/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_artifacts.c - The files that an execution left in /workspace.
 *
 * A file belongs to an execution if its status changed (ctime) while the execution ran; code cannot
 * set that time. So a file that a process in the background changed meanwhile is among them, and a
 * file that came with a moved directory is not: to tell these apart the daemon would have to read
 * the tree before every execution.
 *
 * The first call lists the tree, and the first names in order are kept. Then each file is hashed,
 * one call after another, in the cell and on its account. Small images are read instead, hashed
 * here, and put into the answer. Where the operator has a bucket for artifacts, each file is put
 * there as well, and the answer has a link to it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "front/api/file_exchange.h"
#include "front/api/find_sandbox.h"
#include "front/api/handlers.h"
#include "front/buckets/buckets.h"
#include "front/buckets/publish.h"
#include "front/files/artifact.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "front/sandbox/record.h"
#include "hash/hash.h"
#include "net/http.h"

#define ANSWER_MAX (8u << 20)
#define LOOKED_AT 1000000u    /* entries of the tree; the rest is on no page */
#define ARTIFACTS_MAX 100u    /* of the answer */
#define HASH_MAX (256u << 20) /* bytes of a file that is hashed */
#define IMAGE_MAX (1u << 20)  /* bytes of an image that is in the answer */
#define IMAGES_MAX (4u << 20) /* of all of them */

struct gathering {
	struct file_exchange *v;
	int64_t from_ns, to_ns;
	struct artifact found[ARTIFACTS_MAX];
	size_t n, at;
	const char *after; /* the cursor: names up to this one are on earlier pages; or NULL */
	bool more, cut;    /* there are names behind the last one; a part was not looked at */
	bool inlined;      /* the client wants images */
	bool hash_only;    /* of the current file: it cannot be read as an image */
	bool with_image;
	struct publish *copy; /* of the current file, to the bucket */
	struct buf image;
	size_t images_left;
	struct deferred next;
	struct buf out;
	struct json j;
	char hash[2 * FILES_HASH_LEN + 1];
};

static void finish(struct gathering *g)
{
	loop_undefer(g->v->services->loop, &g->next);
	publish_free(g->copy);
	for (size_t i = 0; i < g->n; i++)
		free(g->found[i].path);
	buf_free(&g->out);
	buf_free(&g->image);
	g->v->extra = NULL;
	file_exchange_end(g->v);
	free(g);
}

/* The client went away. */
static void dropped(struct file_exchange *v)
{
	finish(v->extra);
}

/* ---- one file ------------------------------------------------------------------------------ */

static void put(struct gathering *g, const struct artifact_copy *copy)
{
	artifact_json(&g->found[g->at], context_of(g->v->x)->params.value[0], g->hash,
		      g->with_image ? &g->image : NULL, copy, &g->j);
	g->images_left -= g->with_image ? g->image.len : 0;
}

static void add_hex(struct gathering *g, const char *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	size_t have = strlen(g->hash);

	for (size_t i = 0; i < len && have + 2 < sizeof(g->hash); i++) {
		g->hash[have++] = digits[(unsigned char)data[i] >> 4];
		g->hash[have++] = digits[data[i] & 15];
		g->hash[have] = '\0';
	}
}

/* True: the call failed because of the sandbox, not of a file; the request is answered. */
static bool is_over(struct gathering *g, const struct file_call *c)
{
	if (c->ended || !c->refusal.kind)
		return false;
	file_exchange_refuse(g->v);
	finish(g);
	return true;
}

static void go_on(struct gathering *g, bool with_next)
{
	g->at += with_next;
	g->hash_only = !with_next;
	loop_defer(g->v->services->loop, &g->next); /* not from inside the call that is done */
}

static void on_copied(struct publish *p)
{
	struct gathering *g = p->arg;
	const struct artifact_copy copy = {
		.link = p->code == 0 ? p->link : NULL,
		.seconds = p->buckets->daemon->config.s3_link_ms / 1000,
		.why = p->code < 0 ? p->why : NULL,
	};

	put(g, &copy);
	publish_free(p);
	g->copy = NULL;
	go_on(g, true);
}

/* Write the current file into the answer, with a link if there is a bucket. */
static void settle(struct gathering *g, bool with_image)
{
	static const struct artifact_copy none;
	struct services *services = g->v->services;
	const struct request_context *context = context_of(g->v->x);
	struct sandbox *s = services->buckets->artifacts ?
				    sandbox_find(services->sandboxes, context->owner,
						 context->params.value[0]) :
				    NULL;

	g->with_image = with_image;
	g->copy = s ? publish_new(services->buckets, s, g->found[g->at].path, on_copied, g) : NULL;
	if (g->copy)
		return;
	put(g, &none);
	go_on(g, true);
}

/* ---- hashes, one after another ------------------------------------------------------------- */

static void on_hashed_stat(struct file_call *c, const struct files_stat *st, struct files_text name,
			   struct files_text target)
{
	struct gathering *g = file_exchange_of(c)->extra;

	(void)name;
	(void)target;
	g->found[g->at].size = st->size;
}

static void on_hash(struct file_call *c, const char *data, size_t len)
{
	add_hex(file_exchange_of(c)->extra, data, len);
}

static void done_hash(struct file_call *c)
{
	struct gathering *g = file_exchange_of(c)->extra;

	if (is_over(g, c))
		return;
	if (c->refusal.kind || strlen(g->hash) != 2 * (size_t)FILES_HASH_LEN)
		g->hash[0] = '\0';
	if (c->refusal.kind != 404) /* one that went meanwhile is not told */
		settle(g, false);
	else
		go_on(g, true);
}

static const struct file_call_ops hash_ops = {
	.stat = on_hashed_stat,
	.data = on_hash,
	.done = done_hash,
};

/* ---- images -------------------------------------------------------------------------------- */

static void on_image(struct file_call *c, const char *data, size_t len)
{
	struct gathering *g = file_exchange_of(c)->extra;

	(void)buf_append(&g->image, data, len); /* one that is too large is left out */
}

static void done_image(struct file_call *c)
{
	struct gathering *g = file_exchange_of(c)->extra;
	unsigned char hash[HASH_BYTES];

	if (is_over(g, c))
		return;
	if (c->refusal.kind || c->end.flags & FILES_CHANGED || g->image.err ||
	    g->image.len > g->images_left || !hash_sha256(buf_str(&g->image), g->image.len, hash)) {
		go_on(g, false);
		return;
	}
	add_hex(g, (const char *)hash, sizeof(hash));
	g->found[g->at].size = g->image.len;
	settle(g, true);
}

static const struct file_call_ops image_ops = { .data = on_image, .done = done_image };

static bool wants_image(const struct gathering *g)
{
	const struct artifact *a = &g->found[g->at];

	return g->inlined && !g->hash_only && artifact_is_image(a) && a->size <= IMAGE_MAX &&
	       a->size <= g->images_left;
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* The address of the next page. */
static void put_next(struct gathering *g, struct http_exchange *x)
{
	_buf_ struct buf b = BUF_INIT(64u << 10), id = BUF_INIT(64);

	if (!g->more || g->n == 0 || !http_query(x, "execution_id", &id))
		return;
	(void)buf_printf(&b, "/v1/sandboxes/%s/artifacts?execution_id=%s%s&cursor=",
			 context_of(x)->params.value[0], buf_str(&id),
			 g->inlined ? "" : "&inline=false");
	artifact_escape(g->found[g->n - 1].path, &b);
	json_member_str(&g->j, "next", buf_str(&b));
}

static void answer(struct gathering *g)
{
	struct http_exchange *x = file_exchange_part(g->v);

	json_array_end(&g->j);
	json_member_bool(&g->j, "truncated", g->more || g->cut);
	put_next(g, x);
	json_object_end(&g->j);
	reply_written(x, 200, &g->j);
	finish(g);
}

static void next(struct deferred *d)
{
	struct gathering *g = d->arg;
	struct file_exchange *v = g->v;
	const struct request_context *context = context_of(v->x);
	struct sandbox *s =
		sandbox_find(v->services->sandboxes, context->owner, context->params.value[0]);

	if (g->at == g->n || !s) {
		g->cut |= g->at < g->n; /* the sandbox went meanwhile */
		answer(g);
		return;
	}
	bool image = wants_image(g);

	v->call = (struct file_call){ .owner = v, .ops = image ? &image_ops : &hash_ops };
	v->call.q.op = image ? FILES_READ : FILES_HASH;
	v->call.q.length = IMAGE_MAX + 1;
	v->call.q.limit = HASH_MAX;
	memcpy(v->call.path, g->found[g->at].path, strlen(g->found[g->at].path) + 1);
	g->hash[0] = '\0';
	buf_clear(&g->image);
	file_call_run(&v->call, s);
}

/* ---- the list ------------------------------------------------------------------------------ */

/* Insert in order. If there is no room, the last one is dropped. */
static void insert(struct gathering *g, char *path, uint64_t size)
{
	size_t at = g->n;

	while (at > 0 && strcmp(g->found[at - 1].path, path) > 0)
		at--;
	if (g->n == ARTIFACTS_MAX) {
		g->more = true;
		if (at == g->n) {
			free(path);
			return;
		}
		free(g->found[--g->n].path);
	}
	memmove(&g->found[at + 1], &g->found[at], (g->n - at) * sizeof(g->found[0]));
	g->found[at] = (struct artifact){ .path = path, .size = size };
	g->n++;
}

static void on_entry(struct file_call *c, const struct files_stat *st, struct files_text name,
		     struct files_text target)
{
	struct gathering *g = file_exchange_of(c)->extra;

	(void)target;
	if (st->type != FILES_T_FILE || st->ctime_ns < g->from_ns || st->ctime_ns > g->to_ns ||
	    name.len >= FILES_PATH_MAX || !artifact_is(name.data, name.len))
		return;
	char *path = files_text_copy(name);

	if (!path)
		g->cut = true;
	else if (g->after && strcmp(path, g->after) <= 0)
		free(path);
	else
		insert(g, path, st->size);
}

static void done_list(struct file_call *c)
{
	struct gathering *g = file_exchange_of(c)->extra;

	if (c->refusal.kind) {
		file_exchange_refuse(g->v);
		finish(g);
		return;
	}
	g->cut |= c->end.flags & FILES_CUT;
	loop_defer(g->v->services->loop, &g->next);
}

static const struct file_call_ops list_ops = { .stat = on_entry, .done = done_list };

/* When the execution ran, by the clock of files. False: answered. */
static bool find_window(struct gathering *g)
{
	const struct sandbox *s = g->v->sandbox;
	const char *id = json_string_value(json_object_get(g->v->fields, "execution_id"));
	const struct record *r = records_find(&s->records, id);

	if (!r || !r->started_ms) {
		reply_missing(
			g->v->x, s, "no_such_execution", "execution_id",
			"see GET /v1/sandboxes/{name}/executions; they are kept for 15 minutes",
			"there is no such execution, or it is not kept any more");
		return false;
	}
	g->from_ns = (int64_t)r->asked_ms * 1000000;
	g->to_ns = r->ended_ms ? (int64_t)(r->ended_ms + 1) * 1000000 : INT64_MAX;
	return true;
}

static void begin(struct gathering *g)
{
	g->inlined = !json_is_false(json_object_get(g->v->fields, "inline"));
	g->after = json_string_value(json_object_get(g->v->fields, "cursor"));
	buf_init(&g->out, ANSWER_MAX);
	buf_init(&g->image, IMAGE_MAX);
	g->images_left = IMAGES_MAX;
	json_init(&g->j, &g->out);
	json_object_begin(&g->j);
	json_member_array(&g->j, "artifacts");
	g->next.fn = next;
	g->next.arg = g;
	g->v->extra = g;
	g->v->dropped = dropped;
	g->v->call.q.flags = FILES_RECURSIVE;
	g->v->call.q.limit = LOOKED_AT;
	g->v->call.q.depth = FILES_DEPTH_MAX;
	file_exchange_run(g->v, FILES_LIST, &list_ops);
}

void handle_artifacts(struct sandbox *s, struct http_exchange *x)
{
	struct file_exchange *v = file_exchange_new(s, x, NULL, NULL);
	struct gathering *g = v ? calloc(1, sizeof(*g)) : NULL;

	if (!v)
		return;
	if (!g) {
		file_exchange_end(v);
		reply_no_memory(x);
		return;
	}
	g->v = v;
	if (find_window(g)) {
		begin(g);
	} else {
		free(g);
		file_exchange_end(v);
	}
}
