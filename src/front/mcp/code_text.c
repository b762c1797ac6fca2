/* SPDX-License-Identifier: Apache-2.0 */
/* code_text.c - Output, displays and end of an execution as text that a person can read, and the
 * answer of the call that waits for it. */
#include "front/mcp/code_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h" /* ARRAY_SIZE */
#include "base/utf8.h"
#include "front/mcp/approval_question.h"
#include "front/mcp/tool.h"
#include "front/mcp/tool_artifacts.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"

#define LOG_MAX 4096u
enum { LOG_INFO = 1, LOG_WARNING = 3, LOG_ERROR = 4 }; /* of the protocol */

/* ---- bundles ------------------------------------------------------------------------------- */

/* "<Figure size 640x480 with 1 Axes>": the name of something instead of what it says. */
static bool is_bare(const char *plain)
{
	size_t len = strlen(plain);

	return len > 1 && plain[0] == '<' && plain[len - 1] == '>' && !memchr(plain, '\n', len);
}

/* A representation as text, or NULL. The caller frees it. */
static char *text_as(const json_t *bundle, const char *mime)
{
	const json_t *v = json_object_get(bundle, mime);
	char *dumped, *ret;

	if (!v || json_is_string(v))
		return v ? strdup(json_string_value(v)) : NULL;
	dumped = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	ret = dumped ? strdup(dumped) : NULL;
	json_alloc_free(dumped);
	return ret;
}

/* The form of a bundle that a model reads best; NULL: none. The caller frees it. */
static char *text_of(const json_t *bundle)
{
	static const char *const types[] = { "text/markdown", "text/latex", "application/json",
					     "text/html", "image/svg+xml" };
	char *plain = text_as(bundle, "text/plain"), *other = NULL;

	if (plain && !is_bare(plain))
		return plain;
	for (size_t i = 0; i < ARRAY_SIZE(types) && !other; i++)
		other = text_as(bundle, types[i]);
	if (other)
		free(plain);
	return other ? other : plain;
}

static void take_display(struct code_view *v, const json_t *display, size_t *left)
{
	char *text = text_of(json_object_get(display, "data"));
	size_t len = text ? strlen(text) : 0, fits = utf8_truncate(text ? text : "", len, *left);

	v->displayed += len;
	v->shown += fits;
	v->cut |= fits < len;
	if (fits > 0)
		(void)json_array_append_new(v->texts, json_stringn(text, fits));
	*left -= fits < *left ? fits : *left;
	free(text);
}

static void open_view(struct code_view *v, const struct execution *x)
{
	size_t left = x->sandboxes->daemon->config.max_output, i;
	const json_t *one;

	memset(v, 0, sizeof(*v));
	v->displays = displays_load(&x->displays);
	v->result = json_alloc_load(buf_str(&x->result), x->result.len, JSON_ALLOW_NUL, NULL);
	v->texts = json_array();
	v->cut = execution_cut(x);
	json_array_foreach(v->displays, i, one) take_display(v, one, &left);
	v->value = text_of(v->result);
	if (v->value) {
		size_t len = strlen(v->value);

		v->value_len =
			utf8_truncate(v->value, len, x->sandboxes->daemon->config.max_output);
		v->cut |= v->value_len < len;
	}
}

static void close_view(struct code_view *v)
{
	json_decref(v->displays);
	json_decref(v->result);
	json_decref(v->texts);
	free(v->value);
}

void code_view_members(const struct code_view *v, struct json *j)
{
	if (v->value) {
		json_key(j, "result");
		(void)json_strn(j, v->value, v->value_len);
	}
	if (json_array_size(v->texts) > 0)
		json_member_value(j, "displays", v->texts);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void put_stream(struct buf *b, const char *title, const struct spool *s, uint64_t chars,
		       bool kept)
{
	size_t len;
	const char *text = output_head(s, chars, &len);

	if (s->bytes == 0)
		return;
	if (b->len > 0 && buf_str(b)[b->len - 1] != '\n')
		(void)buf_puts(b, "\n");
	if (title)
		(void)buf_printf(b, "[%s]\n", title);
	(void)buf_append(b, text, len);
	if (s->bytes > len && kept)
		(void)buf_printf(b,
				 "\n[%zu of %" PRIu64
				 " bytes; the rest: read_output with offset %zu]",
				 len, s->bytes, len);
	else if (s->bytes > len)
		(void)buf_printf(b,
				 "\n[%zu of %" PRIu64
				 " bytes; the rest is gone: print less, or use a session]",
				 len, s->bytes);
}

static void put_line(struct buf *b, const char *text, size_t len)
{
	if (b->len > 0 && buf_str(b)[b->len - 1] != '\n')
		(void)buf_puts(b, "\n");
	(void)buf_append(b, text, len);
}

static void put_cut(struct buf *b, size_t len, size_t all, const char *what)
{
	(void)buf_printf(
		b,
		"\n[%zu of %zu bytes of %s; the rest: print a part of it, or write it to a file and use "
		"read_file]",
		len, all, what);
}

static void put_view(struct buf *b, const struct execution *x, const struct code_view *v)
{
	const json_t *one;
	size_t i;

	json_array_foreach(v->texts, i, one)
		put_line(b, json_string_value(one), json_string_length(one));
	if (v->shown < v->displayed)
		put_cut(b, v->shown, v->displayed, "what was displayed");
	if (x->displays.dropped)
		(void)buf_printf(b, "\n[%zu displays left out: there were too many]",
				 x->displays.dropped);
	if (!v->value)
		return;
	put_line(b, v->value, v->value_len);
	if (v->value[v->value_len])
		put_cut(b, v->value_len, strlen(v->value), "the result");
}

/* Why it failed; the exit code also where nothing else is known. */
static void put_verdict(struct buf *b, const struct result *r)
{
	char line[400];
	int n;

	if (r->status == RESULT_OK && !r->hint[0])
		return;
	if (r->status == RESULT_OK)
		n = snprintf(line, sizeof(line), "[hint] %s", r->hint);
	else
		n = snprintf(line, sizeof(line), "[%s: %s%sexit code %d]%s%s",
			     result_status_name(r->status),
			     r->cause == CAUSE_NONE ? "" : result_cause_name(r->cause),
			     r->cause == CAUSE_NONE ? "" : ", ", r->exit_code,
			     r->hint[0] ? " " : "", r->hint);
	put_line(b, line, (size_t)n);
}

/* An interpreter that ended takes its variables along, a cell that did everything. */
static void put_loss(struct buf *b, const struct execution *x)
{
	static const char kernel[] =
		"[state: reset] the interpreter ended: variables and imports are gone, files are still there";
	static const char cell[] =
		"[state: reset] the sandbox was replaced by a new one: variables, processes and files are gone";
	static const char workspace[] = ", but for what its workspace has kept";

	if (!x->cell_gone) {
		put_line(b, kernel, sizeof(kernel) - 1);
		return;
	}
	put_line(b, cell, sizeof(cell) - 1);
	if (x->sandbox->spec.workspace.name[0])
		(void)buf_append(b, workspace, sizeof(workspace) - 1);
}

/* The first block: all that can be read, and why it failed if it did. */
static void put_text(const struct execution *x, const struct code_view *v, struct mcp_output *o)
{
	_buf_ struct buf b = BUF_INIT(MCP_ANSWER_MAX);
	uint64_t chars = x->sandboxes->daemon->config.max_output;
	bool kept = x->sandbox->name[0] != '\0';

	put_stream(&b, NULL, x->streams[STREAM_STDOUT], chars, kept);
	put_stream(&b, "stderr", x->streams[STREAM_STDERR], chars, kept);
	put_view(&b, x, v);
	put_verdict(&b, &x->verdict);
	if (strcmp(x->state, "reset") == 0)
		put_loss(&b, x);
	if (b.len == 0)
		(void)buf_puts(&b, "(no output)");
	mcp_output_text(o, buf_str(&b), b.len);
}

/* How it ended, to a client that asked for messages: info, a warning when something was lost, or an
 * error. */
static void log_end(struct mcp_call *c, const struct execution *x)
{
	_buf_ struct buf b = BUF_INIT(LOG_MAX);
	bool lost = strcmp(x->state, "reset") == 0;

	(void)buf_printf(&b, "execution %s (%s): %s after %.3f s", x->id, x->language->name,
			 result_status_name(x->verdict.status), (double)x->outcome.wall_ns / 1e9);
	put_verdict(&b, &x->verdict);
	if (lost)
		put_loss(&b, x);
	mcp_log(c,
		x->verdict.status != RESULT_OK ? LOG_ERROR :
		lost                           ? LOG_WARNING :
						 LOG_INFO,
		"code", buf_str(&b));
}

/* ---- pictures ------------------------------------------------------------------------------ */

static void write_image(const json_t *bundle, struct mcp_output *o)
{
	static const char *const types[] = { "image/png", "image/jpeg", "image/webp", "image/gif" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const json_t *v = json_object_get(bundle, types[i]);
		char note[160];

		if (!json_is_string(v))
			continue;
		if (mcp_output_takes(o, json_string_length(v))) {
			mcp_output_image(o, json_string_value(v), json_string_length(v), types[i]);
		} else {
			(void)snprintf(
				note, sizeof(note),
				"[%s of %zu KiB left out: too large, or too many; save it to a file]",
				types[i], json_string_length(v) * 3 / 4096);
			mcp_output_text(o, note, strlen(note));
		}
		return;
	}
}

/* Those that it showed, and the result if that is one. */
static void put_images(const struct code_view *v, struct mcp_output *o)
{
	const json_t *one;
	size_t i;

	json_array_foreach(v->displays, i, one) write_image(json_object_get(one, "data"), o);
	write_image(v->result, o);
}

/* ---- the call ------------------------------------------------------------------------------ */

static void on_cancel(struct mcp_call *c)
{
	execution_cancel(c->work);
}

void mcp_code_queue(struct mcp_call *c, struct sandbox *s, struct execution *x)
{
	c->work = x;
	c->cancel = on_cancel;
	sandbox_queue(s, x);
}

void mcp_code_approve(struct execution *x, struct approval *a)
{
	mcp_ask_approval(x->user, a);
}

void mcp_code_done(struct execution *x, bool strict,
		   void (*write)(const struct execution *x, const struct code_view *v,
				 struct json *j))
{
	struct mcp_call *c = x->user;
	enum result_status status = x->verdict.status;
	bool failed = status != RESULT_OK && (strict || status != RESULT_ERROR);
	struct mcp_output o;
	struct code_view v;

	c->cancel = NULL;
	if (x->refusal.kind) {
		mcp_output_refuse(c, &x->refusal);
		return;
	}
	log_end(c, x);
	open_view(&v, x);
	mcp_output_begin(c, &o);
	put_text(x, &v, &o);
	put_images(&v, &o);
	write(x, &v, &o.s);
	close_view(&v);
	if (x->look && x->files && x->sandbox->state == SANDBOX_RUNNING && !x->cell_gone) {
		mcp_output_artifacts(c, x->sandbox, &o, (int64_t)x->started_files_ms * 1000000,
				     failed);
		return;
	}
	json_object_end(&o.s);
	mcp_output_end(c, &o, failed);
}
