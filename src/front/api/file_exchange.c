/* SPDX-License-Identifier: Apache-2.0 */
/* file_exchange.c - From a request to a file call and back; and files as JSON. */
#include "front/api/file_exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/operations/services.h"
#include "net/http.h"

static void release(struct file_exchange *v)
{
	for (size_t i = 0; i < v->n_entries; i++)
		free(v->entries[i]);
	free(v->entries);
	free(v->target);
	json_decref(v->fields);
	free(v);
}

static void reap(struct deferred *d)
{
	release(d->arg);
}

void file_exchange_end(struct file_exchange *v)
{
	if (v->reaper.queued)
		return;
	file_note_end(&v->note, v->call.refusal.code);
	file_call_release(&v->call);
	v->reaper.fn = reap;
	v->reaper.arg = v;
	loop_defer(v->services->loop, &v->reaper);
}

struct http_exchange *file_exchange_part(struct file_exchange *v)
{
	struct http_exchange *x = context_done(v->x);

	if (x) {
		context_of(x)->body = NULL;
		context_of(x)->body_end = NULL;
	}
	v->x = NULL;
	return x;
}

void file_exchange_refuse(struct file_exchange *v)
{
	struct http_exchange *x = file_exchange_part(v);

	if (x && v->call.refusal.kind)
		reply_refusal(x, &v->call.refusal);
	else if (x) /* it reports success, and has done nothing */
		reply_error(x, 502, "file_call_ended", NULL, NULL,
			    "the worker in the sandbox sent an invalid answer");
	if (!v->call.refusal.kind)
		v->call.refusal.code = "file_call_ended";
	file_exchange_end(v);
}

struct http_exchange *file_exchange_done(struct file_exchange *v)
{
	if (!v->call.refusal.kind)
		return file_exchange_part(v);
	file_exchange_refuse(v);
	return NULL;
}

static void on_gone(struct request_context *context)
{
	struct file_exchange *v = context->work;

	(void)file_exchange_part(v);
	v->call.refusal.code = "abandoned";
	if (v->dropped)
		v->dropped(v);
	else
		file_exchange_end(v);
}

static bool copy_path(const struct file_exchange *v, char to[FILES_PATH_MAX], const char *name)
{
	const char *text = name ? json_string_value(json_object_get(v->fields, name)) : NULL;
	size_t len = text ? strlen(text) : 0;

	if (len >= FILES_PATH_MAX) {
		reply_error(v->x, 422, "bad_path", name, NULL, "a path has at most %u bytes",
			    FILES_PATH_MAX - 1);
		return false;
	}
	if (text)
		memcpy(to, text, len + 1);
	return true;
}

struct file_exchange *file_exchange_new(struct sandbox *s, struct http_exchange *x,
					const char *path, const char *to)
{
	struct file_exchange *v = calloc(1, sizeof(*v));

	if (!v) {
		reply_no_memory(x);
		return NULL;
	}
	v->services = context_of(x)->server->services;
	v->sandbox = s;
	v->x = x;
	v->fields = json_incref(context_of(x)->fields);
	v->call.owner = v;
	memcpy(v->call.path, ".", 2);
	if (copy_path(v, v->call.path, path) && copy_path(v, v->call.to, to))
		return v;
	release(v);
	return NULL;
}

uint32_t file_exchange_flag(const struct file_exchange *v, const char *name, uint32_t flag)
{
	return json_is_true(json_object_get(v->fields, name)) ? flag : 0;
}

void file_exchange_take_mode(struct file_exchange *v)
{
	const char *mode = json_string_value(json_object_get(v->fields, "mode"));

	if (!mode)
		return;
	v->call.q.flags |= FILES_HAS_MODE;
	v->call.q.mode = (uint32_t)strtoul(mode, NULL, 8) & 0777;
}

void file_exchange_run(struct file_exchange *v, enum files_op op, const struct file_call_ops *ops)
{
	context_wait(v->x, v, on_gone);
	v->call.q.op = op;
	v->call.ops = ops;
	if (file_note_begin(&v->note, v->sandbox, &v->call, &v->call.refusal) < 0)
		file_exchange_refuse(v);
	else
		file_call_run(&v->call, v->sandbox);
}

void file_exchange_stream(struct file_exchange *v, const char *content_type)
{
	v->streaming = true;
	reply_headers(v->x);
	if (content_type)
		http_stream(v->x, 200, content_type);
	else
		sse_begin(v->x);
	http_stream_on_drain(v->x, file_exchange_drained);
}

void file_exchange_drained(struct http_exchange *x)
{
	struct file_exchange *v = context_of(x)->work;

	if (v)
		file_call_resume(&v->call);
}

bool file_exchange_congested(struct file_call *c)
{
	struct file_exchange *v = file_exchange_of(c);

	return v->x && v->streaming && http_stream_congested(v->x);
}

void file_exchange_keep(struct file_call *c, const struct files_stat *st, struct files_text name,
			struct files_text target)
{
	struct file_exchange *v = file_exchange_of(c);

	(void)name;
	v->has_stat = true;
	v->stat = *st;
	free(v->target);
	v->target = target.len ? files_text_copy(target) : NULL;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

void file_json_text(struct json *j, const char *key, struct files_text t)
{
	char other[40];

	json_key(j, key);
	if (json_strn(j, t.data, t.len)) {
		(void)snprintf(other, sizeof(other), "%s_base64", key);
		json_key(j, other);
		json_base64(j, t.data, t.len);
	}
}

static void put_time(struct json *j, int64_t ns)
{
	int64_t ms = ns / 1000000;
	time_t seconds = (time_t)(ms / 1000 - (ms % 1000 < 0));
	char text[64];
	struct tm tm;

	if (!gmtime_r(&seconds, &tm))
		return;
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);

	(void)snprintf(text + n, sizeof(text) - n, ".%03dZ", (int)((ms % 1000 + 1000) % 1000));
	json_member_str(j, "modified_at", text);
}

void file_json_brief(struct json *j, const char *key, struct files_text name,
		     const struct files_stat *st)
{
	static const char *const types[] = {
		[FILES_T_OTHER] = "other",   [FILES_T_FILE] = "file", [FILES_T_DIR] = "directory",
		[FILES_T_LINK] = "symlink",  [FILES_T_FIFO] = "fifo", [FILES_T_SOCKET] = "socket",
		[FILES_T_DEVICE] = "device",
	};

	file_json_text(j, key, name);
	json_member_str(j, "type", types[st->type]);
	json_member_uint(j, "size", st->size);
	put_time(j, st->mtime_ns);
}

void file_json(struct json *j, const char *key, struct files_text name, const struct files_stat *st,
	       struct files_text target)
{
	char mode[16];

	file_json_brief(j, key, name, st);
	(void)snprintf(mode, sizeof(mode), "%03o", st->mode);
	json_member_str(j, "mode", mode);
	json_member_uint(j, "uid", st->uid);
	json_member_uint(j, "gid", st->gid);
	if (st->type == FILES_T_LINK)
		file_json_text(j, "target", target);
}

struct files_text file_text(const char *s)
{
	return (struct files_text){ .data = s ? s : "", .len = s ? strlen(s) : 0 };
}
