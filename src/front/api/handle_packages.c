/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_packages.c - POST /pip_install, and packages of a sandbox: install, list.
 *
 * An installation that the rules allow goes on when its client goes away: the next request for the
 * same packages finds them installed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/http/stream_out.h"
#include "front/operations/services.h"
#include "front/output/stream_log.h"
#include "front/packages/closure.h"
#include "front/packages/install.h"
#include "front/packages/packages.h"
#include "front/support/refusal.h"

#define ANSWER_MAX (4u << 20)

/* A request that waits for an installation: for one answer, or as a stream of events. */
struct waiter {
	struct install *in;
	struct http_exchange *x; /* NULL: streamed, or gone */
	struct stream_log *log;  /* NULL: one answer */
	bool pip;                /* the answer has the fields of /pip_install */
};

/* ---- answers ------------------------------------------------------------------------------- */

static void write_result(const struct waiter *w, struct json *j)
{
	const struct install *in = w->in;
	const char *version = closure_version(in->tree->packages, in->first);
	char message[INSTALL_MESSAGE_MAX];

	json_object_begin(j);
	if (w->pip) {
		install_message(in, message, sizeof(message));
		json_member_bool(j, "success", true);
		json_member_str(j, "message", message);
		json_member_str(j, "installed_version", version ? version : "");
		json_key(j, "installation_time");
		json_double(j, (double)(in->ended_ns - in->began_ns) / (double)CLOCK_NS_PER_S, 3);
	}
	install_json(in, j);
	json_object_end(j);
}

static void reply_done(struct waiter *w)
{
	struct reply answer;
	struct http_exchange *x = context_done(w->x);

	if (w->in->refusal.kind) {
		reply_refusal(x, &w->in->refusal);
		return;
	}
	write_result(w, reply_begin(&answer, ANSWER_MAX));
	reply_end(&answer, x, 200);
}

static void stream_done(struct waiter *w)
{
	_buf_ struct buf b = BUF_INIT(ANSWER_MAX);
	const struct refusal *r = &w->in->refusal;
	struct json j;

	if (r->kind) {
		refusal_json(r, &b);
		stream_log_append(w->log, "refused", buf_str(&b), b.len);
	} else {
		json_init(&j, &b);
		write_result(w, &j);
		if (json_finish(&j) == 0)
			stream_log_append(w->log, "done", buf_str(&b), b.len);
	}
	stream_log_end(w->log);
}

static void on_progress(struct install *in, const struct install_progress *p)
{
	struct waiter *w = in->arg;
	_buf_ struct buf b = BUF_INIT(4096);
	struct json j;

	if (!w->log)
		return;
	json_init(&j, &b);
	json_object_begin(&j);
	json_member_str(&j, "text", p->text);
	if (p->total) {
		json_member_uint(&j, "done", p->done);
		json_member_uint(&j, "total", p->total);
	}
	json_object_end(&j);
	if (json_finish(&j) == 0)
		stream_log_append(w->log, "progress", buf_str(&b), b.len);
}

static void on_done(struct install *in)
{
	struct waiter *w = in->arg;

	if (w->log)
		stream_done(w);
	else
		reply_done(w);
	stream_log_unref(w->log);
	free(w);
}

static const struct install_ops ops = { .progress = on_progress, .done = on_done };

static void on_gone(struct request_context *v)
{
	struct waiter *w = v->work;

	install_drop(w->in);
	stream_log_unref(w->log);
	free(w);
}

/* ---- beginning ----------------------------------------------------------------------------- */

static void begin(struct http_exchange *x, struct sandbox *s, enum ecosystem eco,
		  const json_t *requirements, const char *version, bool pip)
{
	struct request_context *v = context_of(x);
	bool stream = json_is_true(json_object_get(v->fields, "stream"));
	enum stream_format format = stream_format_of(x, stream);
	const struct install_request q = {
		.eco = eco,
		.requirements = requirements,
		.version = version,
		.upgrade = json_is_true(json_object_get(v->fields, "upgrade")),
	};
	struct waiter *w = calloc(1, sizeof(*w));
	struct refusal why;

	if (w && format != STREAM_NONE)
		w->log = stream_log_new(v->server->services->sandboxes->streams, NULL, NULL);
	if (!w || (format != STREAM_NONE && !w->log)) {
		free(w);
		reply_no_memory(x);
		return;
	}
	w->pip = pip;
	w->in = install_begin(v->server->services->packages, s, v->owner, &q, &ops, w, &why);
	if (!w->in) {
		stream_log_unref(w->log);
		free(w);
		reply_refusal(x, &why);
	} else if (w->log) {
		stream_out_begin(x, w->log, 0, format);
	} else {
		w->x = x;
		context_wait(x, w, on_gone);
	}
}

void handle_pip_install(struct services *services, struct http_exchange *x)
{
	const char *name = context_text(x, "session_id");
	struct sandbox *s = NULL;
	struct refusal why;

	if (name)
		s = sandbox_obtain(services->sandboxes, context_of(x)->owner, name, NULL, &why);
	if (name && !s) {
		reply_refusal(x, &why);
		return;
	}
	json_t *requirements = json_pack("[O]", json_object_get(context_of(x)->fields, "package"));

	begin(x, s, ECO_PYTHON, requirements, context_text(x, "version"), true);
	json_decref(requirements);
}

void handle_packages_install(struct sandbox *s, struct http_exchange *x)
{
	const char *language = context_text(x, "language");
	enum ecosystem eco = language ? ecosystem_find(language) : ECO_PYTHON;

	if (eco == ECO_MAX_)
		reply_error(x, 422, "unsupported_language", "language", "python or javascript",
			    "there are no packages for this language");
	else if (s->state != SANDBOX_RUNNING)
		reply_error(x, 409, "sandbox_stopped", NULL, NULL, "the sandbox is %s: %s",
			    sandbox_state_name(s->state), s->reason);
	else
		begin(x, s, eco, json_object_get(context_of(x)->fields, "packages"), NULL, false);
}

void handle_packages_list(struct sandbox *s, struct http_exchange *x)
{
	struct reply answer;
	struct json *j = reply_object(&answer, ANSWER_MAX);

	json_key(j, "packages");
	packages_json(s, j);
	reply_end(&answer, x, 200);
}
