/* SPDX-License-Identifier: Apache-2.0 */
/* handle_kernels.c - /api, /api/kernelspecs, /api/kernels and /api/status of a Jupyter Kernel
 * Gateway. */
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "front/api/handlers.h"
#include "front/cell/image_use.h"
#include "front/http/reply.h"
#include "front/http/serve.h"
#include "front/jupyter/jupyter.h"
#include "front/sandbox/execution.h"
#include "front/sandbox/sandboxes.h"
#include "net/http.h"

#define LIST_MAX (16u << 20)

/* ---- the daemon ---------------------------------------------------------------------------- */

void handle_jupyter_api(struct notebooks *notebooks, struct http_exchange *x)
{
	struct reply answer;
	struct json *j = reply_object(&answer, 256);

	(void)notebooks;
	json_member_str(j, "version", "2.14.0"); /* of the API that clients compare with */
	reply_end(&answer, x, 200);
}

void handle_jupyter_specs(struct notebooks *notebooks, struct http_exchange *x)
{
	struct reply answer;

	jinfo_specs(&notebooks->sandboxes->cells->images->own, reply_begin(&answer, 16384));
	reply_end(&answer, x, 200);
}

void handle_jupyter_spec(struct notebooks *notebooks, struct http_exchange *x)
{
	struct reply answer;
	const struct language *l =
		jinfo_find(&notebooks->sandboxes->cells->images->own, context_param(x, 0));

	if (!l) {
		reply_error(x, 404, "no_such_kernelspec", "name", "see GET /api/kernelspecs",
			    "there is no such kernelspec");
		return;
	}
	jinfo_spec(l, reply_begin(&answer, 16384));
	reply_end(&answer, x, 200);
}

void handle_jupyter_status(struct notebooks *notebooks, struct http_exchange *x)
{
	struct reply answer;
	uint64_t last = notebooks->sandboxes->daemon->started_ms;
	size_t kernels = 0, clients = 0;

	for (const struct sandbox *s = notebooks->sandboxes->first; s; s = s->next)
		if (jkernel_is(s, context_of(x)->owner)) {
			kernels++;
			clients += s->jupyter ? s->jupyter->n_clients : 0;
			last = s->jupyter && s->jupyter->active_ms > last ? s->jupyter->active_ms :
									    last;
		}
	struct json *j = reply_object(&answer, 1024);

	jupyter_stamp(j, "started", notebooks->sandboxes->daemon->started_ms);
	jupyter_stamp(j, "last_activity", last);
	json_member_uint(j, "kernels", kernels);
	json_member_uint(j, "connections", clients);
	reply_end(&answer, x, 200);
}

/* ---- kernels ------------------------------------------------------------------------------- */

static void reply_kernel(struct http_exchange *x, int status, const struct sandbox *s)
{
	struct reply answer;

	jkernel_json(s, reply_begin(&answer, 4096));
	reply_end(&answer, x, status);
}

static void on_made(struct http_exchange *x, struct sandbox *s, bool fresh, json_t *arg)
{
	_buf_ struct buf where = BUF_INIT(128);
	char id[JUPYTER_ID_MAX];

	(void)fresh;
	(void)arg;
	jkernel_id(s, id);
	(void)buf_printf(&where, "/api/kernels/%s", id);
	http_add_header(x, "Location", buf_str(&where));
	reply_kernel(x, 201, s);
}

void handle_jupyter_kernel_start(struct notebooks *notebooks, struct http_exchange *x)
{
	json_t *body = jupyter_body(x);

	if (body)
		jkernel_create(notebooks->sandboxes, x, body, on_made, NULL);
	json_decref(body);
}

void handle_jupyter_kernels(struct notebooks *notebooks, struct http_exchange *x)
{
	struct reply answer;
	struct json *j = reply_begin(&answer, LIST_MAX);

	json_array_begin(j);
	for (const struct sandbox *s = notebooks->sandboxes->first; s; s = s->next)
		if (jkernel_is(s, context_of(x)->owner))
			jkernel_json(s, j);
	json_array_end(j);
	reply_end(&answer, x, 200);
}

static struct sandbox *own_kernel(struct notebooks *notebooks, struct http_exchange *x)
{
	struct sandbox *s =
		jkernel_find(notebooks->sandboxes, context_of(x)->owner, context_param(x, 0));

	if (!s)
		reply_error(x, 404, "no_such_kernel", "kernel_id", "see GET /api/kernels",
			    "there is no such kernel");
	return s;
}

void handle_jupyter_kernel(struct notebooks *notebooks, struct http_exchange *x)
{
	struct sandbox *s = own_kernel(notebooks, x);

	if (s)
		reply_kernel(x, 200, s);
}

void handle_jupyter_kernel_end(struct notebooks *notebooks, struct http_exchange *x)
{
	struct sandbox *s = own_kernel(notebooks, x);

	if (!s)
		return;
	jkernel_end(s, "removed by its owner");
	reply_empty(x, 204);
}

void handle_jupyter_interrupt(struct notebooks *notebooks, struct http_exchange *x)
{
	struct sandbox *s = own_kernel(notebooks, x);

	if (!s)
		return;
	if (s->head)
		execution_interrupt(s->head);
	reply_empty(x, 204);
}

/* ---- restart ------------------------------------------------------------------------------- */

static void on_restarted(struct jkernel *k, void *arg)
{
	struct http_exchange *x = context_done(arg);

	if (k)
		reply_kernel(x, 200, k->sandbox);
	else
		reply_error(x, 404, "no_such_kernel", "kernel_id", NULL,
			    "the kernel was removed meanwhile");
}

static void on_client_gone(struct request_context *v)
{
	struct jkernel *k = v->work;

	k->restarted = NULL;
	v->work = NULL;
}

void handle_jupyter_restart(struct notebooks *notebooks, struct http_exchange *x)
{
	struct sandbox *s = own_kernel(notebooks, x);
	struct jkernel *k = s ? jkernel_of(s) : NULL;

	if (!s)
		return;
	if (!k) {
		reply_no_memory(x);
		return;
	}
	if (k->restarted) {
		reply_error(x, 409, "restarting", "kernel_id", "wait for its answer",
			    "another client is restarting this kernel");
		return;
	}
	context_wait(x, k, on_client_gone);
	jkernel_restart(k, on_restarted, x);
}

/* ---- messages ------------------------------------------------------------------------------ */

void handle_jupyter_channels(struct notebooks *notebooks, struct http_exchange *x)
{
	struct sandbox *s = own_kernel(notebooks, x);

	if (!s)
		return;
	if (!http_is_ws(x)) {
		http_add_header(x, "Upgrade", "websocket");
		reply_error(x, 426, "upgrade_required", NULL, "connect with a WebSocket client",
			    "not a WebSocket handshake");
		return;
	}
	struct jkernel *k = jkernel_of(s);

	if (k && k->n_clients >= JUPYTER_CLIENTS_MAX)
		reply_retry(x, 503, 1, "too_many_connections", NULL,
			    "this kernel has %u clients already", JUPYTER_CLIENTS_MAX);
	else if (!k || !jclient_open(k, x))
		reply_no_memory(x);
}
