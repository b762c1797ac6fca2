/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_artifacts.c - The files that an execution left in /workspace.
 *
 * Which they are the kernel says: those whose status changed while it ran, by a time that code can not set.
 * First a list, then a hash of each, one call after another, in the cell and on its account. Hidden files and
 * what python compiles are nobody's product.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "front/file_visit.h"
#include "front/front.h"
#include "front/handlers.h"
#include "front/own.h"
#include "front/record.h"
#include "front/reply.h"
#include "front/request.h"
#include "front/serve.h"
#include "net/http.h"

#define ANSWER_MAX (8u << 20)
#define LOOKED_AT 10000u      /* entries of the tree */
#define ARTIFACTS_MAX 100u    /* of the answer */
#define HASH_MAX (256u << 20) /* bytes of a file that is hashed */
#define SLACK_MS 10           /* times of files are those of the last tick of a clock */

struct artifact {
	char *path;
	uint64_t size;
};

struct gathering {
	struct file_visit *v;
	int64_t from_ns, to_ns;
	struct artifact found[ARTIFACTS_MAX];
	size_t n, at;
	bool truncated;
	struct deferred next;
	struct buf out;
	struct json j;
	char hash[2 * FILES_HASH_LEN + 1];
};

static void finish(struct gathering *g)
{
	loop_undefer(&g->v->f->loop, &g->next);
	for (size_t i = 0; i < g->n; i++)
		free(g->found[i].path);
	buf_free(&g->out);
	g->v->extra = NULL;
	file_visit_end(g->v);
	free(g);
}

/* The client went away. */
static void dropped(struct file_visit *v)
{
	finish(v->extra);
}

/* ---- one file ------------------------------------------------------------------------------------------ */

static const char *mime_of(const char *path)
{
	static const char *const known[][2] = {
		{ ".png", "image/png" },
		{ ".jpg", "image/jpeg" },
		{ ".jpeg", "image/jpeg" },
		{ ".gif", "image/gif" },
		{ ".webp", "image/webp" },
		{ ".svg", "image/svg+xml" },
		{ ".pdf", "application/pdf" },
		{ ".csv", "text/csv" },
		{ ".tsv", "text/tab-separated-values" },
		{ ".txt", "text/plain" },
		{ ".log", "text/plain" },
		{ ".md", "text/markdown" },
		{ ".html", "text/html" },
		{ ".json", "application/json" },
		{ ".xml", "application/xml" },
		{ ".zip", "application/zip" },
		{ ".gz", "application/gzip" },
		{ ".tar", "application/x-tar" },
		{ ".parquet", "application/vnd.apache.parquet" },
		{ ".mp4", "video/mp4" },
		{ ".mp3", "audio/mpeg" },
		{ ".wav", "audio/wav" },
		{ ".py", "text/x-python" },
		{ ".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
	};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcasecmp(dot, known[i][0]) == 0)
			return known[i][1];
	return "application/octet-stream";
}

static void put_url(struct json *j, const char *sandbox, const char *path)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_~/";
	_buf_ struct buf b = BUF_INIT(64u << 10);

	(void)buf_printf(&b, "/v1/sandboxes/%s/files?path=", sandbox);
	for (; *path; path++)
		if (strchr(plain, *path))
			(void)buf_append(&b, path, 1);
		else
			(void)buf_printf(&b, "%%%02X", (unsigned char)*path);
	json_member_str(j, "url", buf_str(&b));
}

/* @hash: empty when it could not be had; a file that went meanwhile is not told. */
static void put_artifact(struct gathering *g, const struct artifact *a)
{
	json_object_begin(&g->j);
	json_member_str(&g->j, "path", a->path);
	json_member_uint(&g->j, "size", a->size);
	if (g->hash[0])
		json_member_str(&g->j, "sha256", g->hash);
	json_member_str(&g->j, "mime", mime_of(a->path));
	put_url(&g->j, visit_of(g->v->x)->params.value[0], a->path);
	json_object_end(&g->j);
}

/* ---- hashes, one after another -------------------------------------------------------------------------- */

static void on_hashed_stat(struct file_call *c, const struct files_stat *st, struct files_text name,
			   struct files_text target)
{
	struct gathering *g = file_visit_of(c)->extra;

	(void)name;
	(void)target;
	g->found[g->at].size = st->size;
}

static void on_hash(struct file_call *c, const char *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	struct gathering *g = file_visit_of(c)->extra;
	size_t have = strlen(g->hash);

	for (size_t i = 0; i < len && have + 2 < sizeof(g->hash); i++) {
		g->hash[have++] = digits[(unsigned char)data[i] >> 4];
		g->hash[have++] = digits[data[i] & 15];
		g->hash[have] = '\0';
	}
}

static void done_hash(struct file_call *c)
{
	struct gathering *g = file_visit_of(c)->extra;

	if (c->refusal.status || strlen(g->hash) != 2 * (size_t)FILES_HASH_LEN)
		g->hash[0] = '\0';
	if (!c->ended && c->refusal.status) { /* the sandbox is over, not only a file */
		file_visit_refuse(g->v);
		finish(g);
		return;
	}
	if (c->refusal.status != 404)
		put_artifact(g, &g->found[g->at]);
	g->at++;
	loop_defer(&g->v->f->loop, &g->next); /* not from inside the call that is done */
}

static const struct file_call_ops hash_ops = {
	.stat = on_hashed_stat,
	.data = on_hash,
	.done = done_hash,
};

static void answer(struct gathering *g)
{
	struct http_exchange *x = file_visit_part(g->v);

	json_array_end(&g->j);
	json_member_bool(&g->j, "truncated", g->truncated);
	json_object_end(&g->j);
	if (json_finish(&g->j) < 0)
		reply_error(x, 500, "internal", NULL, NULL, "the answer could not be written");
	else
		reply_json(x, 200, &g->out);
	finish(g);
}

static void next(struct deferred *d)
{
	struct gathering *g = d->arg;
	struct file_visit *v = g->v;
	const struct visit *visit = visit_of(v->x);
	struct sandbox *s = sandbox_find(v->f, visit->owner, visit->params.value[0]);

	if (g->at == g->n || !s) {
		g->truncated |= g->at < g->n; /* the sandbox went meanwhile */
		answer(g);
		return;
	}
	v->call = (struct file_call){ .owner = v, .ops = &hash_ops };
	v->call.q.op = FILES_HASH;
	v->call.q.limit = HASH_MAX;
	memcpy(v->call.path, g->found[g->at].path, strlen(g->found[g->at].path) + 1);
	g->hash[0] = '\0';
	file_call_run(&v->call, s);
}

/* ---- the list ---------------------------------------------------------------------------------------------- */

static bool is_product(struct files_text name)
{
	if (name.len >= FILES_PATH_MAX || !utf8_valid(name.data, name.len))
		return false; /* it could not be asked for */
	if (name.data[0] == '.' || memmem(name.data, name.len, "/.", 2))
		return false;
	return !memmem(name.data, name.len, "__pycache__", 11);
}

static void on_entry(struct file_call *c, const struct files_stat *st, struct files_text name,
		     struct files_text target)
{
	struct gathering *g = file_visit_of(c)->extra;

	(void)target;
	if (st->type != FILES_T_FILE || st->ctime_ns < g->from_ns || st->ctime_ns > g->to_ns ||
	    name.len == 0 || !is_product(name))
		return;
	char *path = g->n < ARTIFACTS_MAX ? strndup(name.data, name.len) : NULL;

	if (!path) {
		g->truncated = true;
		return;
	}
	g->found[g->n++] = (struct artifact){ .path = path, .size = st->size };
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct artifact *)a)->path, ((const struct artifact *)b)->path);
}

static void done_list(struct file_call *c)
{
	struct gathering *g = file_visit_of(c)->extra;

	if (c->refusal.status) {
		file_visit_refuse(g->v);
		finish(g);
		return;
	}
	g->truncated |= c->end.flags & FILES_CUT;
	qsort(g->found, g->n, sizeof(g->found[0]), by_path);
	loop_defer(&g->v->f->loop, &g->next);
}

static const struct file_call_ops list_ops = { .stat = on_entry, .done = done_list };

/* When it ran, with room for the clock of files. False: answered. */
static bool find_window(struct front *f, struct http_exchange *x, const struct route_params *p,
			const char *id, struct gathering *g)
{
	struct sandbox *s = own_sandbox(f, x, p);
	const struct record *r = s ? records_find(&s->records, id) : NULL;

	if (s && (!r || !r->started_ms))
		reply_error(x, 404, "no_such_execution", "execution_id",
			    "see GET /v1/sandboxes/{name}/executions; they are kept for 15 minutes",
			    "there is no such execution, or it is not kept any more");
	if (!r || !r->started_ms)
		return false;
	g->from_ns = ((int64_t)r->started_ms - SLACK_MS) * 1000000;
	g->to_ns = r->ended_ms ? ((int64_t)r->ended_ms + SLACK_MS) * 1000000 : INT64_MAX;
	return true;
}

static void begin(struct gathering *g)
{
	buf_init(&g->out, ANSWER_MAX);
	json_init(&g->j, &g->out);
	json_object_begin(&g->j);
	json_key(&g->j, "artifacts");
	json_array_begin(&g->j);
	g->next.fn = next;
	g->next.arg = g;
	g->v->extra = g;
	g->v->dropped = dropped;
	g->v->call.q.flags = FILES_RECURSIVE;
	g->v->call.q.limit = LOOKED_AT;
	g->v->call.q.depth = FILES_DEPTH_MAX;
	file_visit_run(g->v, FILES_LIST, &list_ops);
}

void handle_artifacts(struct front *f, struct http_exchange *x, const struct route_params *p)
{
	json_t *query = request_query(x, visit_of(x)->route);
	struct gathering *g = query ? calloc(1, sizeof(*g)) : NULL;

	if (query && !g)
		reply_retry(x, 503, 1, "out_of_memory", NULL, "the daemon is out of memory");
	if (g && find_window(f, x, p, json_string_value(json_object_get(query, "execution_id")), g))
		g->v = file_visit_new(f, x, p, NULL, NULL, NULL);
	json_decref(query);
	if (g && g->v)
		begin(g);
	else
		free(g);
}
