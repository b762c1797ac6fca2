/* SPDX-License-Identifier: Apache-2.0 */
/*
 * await_image.c - A request and its wait for an image.
 *
 * Nothing of the request was done before, so it is simply handled again; what it then finds wrong
 * is refused as ever.
 */
#include "front/api/await_image.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/buf.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/http/stream_out.h"
#include "front/operations/operations.h"
#include "front/operations/services.h"
#include "front/support/name.h"
#include "net/http.h"

static void on_progress(struct pull_wait *w, const struct pull_progress *now)
{
	const struct image_await *a = w->arg;
	_buf_ struct buf b = BUF_INIT(4096);

	if (context_of(a->x)->prelude == STREAM_NONE)
		return;
	pull_progress_json(now, &b);
	if (!b.err)
		stream_out_note(a->x, "progress", buf_str(&b), b.len);
}

static void on_done(struct pull_wait *w, const struct refusal *why)
{
	struct image_await *a = w->arg;
	struct http_exchange *x = context_done(a->x);

	if (why)
		reply_refusal(x, why);
	else
		a->again(a, x);
	a->release(a);
}

static void on_gone(struct request_context *v)
{
	struct image_await *a = v->work;

	pull_leave(&a->wait);
	a->release(a);
}

/* Events begin with the progress. Those of code are found again by its id. */
static void begin_events(struct http_exchange *x)
{
	struct request_context *v = context_of(x);
	bool wanted = json_is_true(json_object_get(v->fields, "stream"));
	enum stream_format format = stream_format_of(x, wanted);

	if (format == STREAM_NONE || v->prelude != STREAM_NONE || !v->route->op ||
	    !field_named(v->route->op->fields, IN_BODY, "stream"))
		return;
	if (v->route->op != &operation_create_sandbox) {
		random_id(v->execution_id);
		http_add_header(x, "X-Execution-Id", v->execution_id);
	}
	stream_out_prelude(x, format);
}

bool await_image(struct services *services, struct http_exchange *x, const char *image,
		 struct image_await *a)
{
	struct refusal why;

	a->x = x;
	a->wait = (struct pull_wait){ .progress = on_progress, .done = on_done, .arg = a };
	int r = pulls_wait(services->pulls, context_of(x)->owner, image, &a->wait, &why);

	if (r != 0) {
		a->release(a);
		if (r < 0)
			reply_refusal(x, &why);
		return r > 0;
	}
	context_wait(x, a, on_gone);
	begin_events(x); /* may find that the client is gone */
	return false;
}

/* ---- an image that a field names ----------------------------------------------------------- */

struct field_await {
	struct image_await await;
	json_t *fields;
};

static void again(struct image_await *a, struct http_exchange *x)
{
	serve_again(x, ((struct field_await *)a)->fields);
}

static void release(struct image_await *a)
{
	json_decref(((struct field_await *)a)->fields);
	free(a);
}

bool await_image_field(struct services *services, struct http_exchange *x)
{
	json_t *fields = context_of(x)->fields;
	const char *image = json_string_value(json_object_get(fields, "image"));
	struct field_await *a = image ? calloc(1, sizeof(*a)) : NULL;

	if (!image)
		return true;
	if (!a) {
		reply_no_memory(x);
		return false;
	}
	a->await = (struct image_await){ .again = again, .release = release };
	a->fields = json_incref(fields);
	return await_image(services, x, image, &a->await);
}
