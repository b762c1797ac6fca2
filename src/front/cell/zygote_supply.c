/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_supply.c - Gets a zygote from the warden, sends it the modules to load, and replaces it
 * when it dies.
 *
 * The warden replies with a status socket. The zygote sends one message on it, when it has loaded
 * its modules; the end of the socket is the end of the zygote. After each failure in a row the
 * supply waits longer before it requests the next one, from AGAIN_MIN_NS to AGAIN_MAX_NS.
 */
#include "front/cell/zygote_supply.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "front/cell/cells.h"
#include "front/cell/image_use.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"
#include "front/support/metrics.h"

#define AGAIN_MIN_NS (200 * CLOCK_NS_PER_MS)
#define AGAIN_MAX_NS (30 * CLOCK_NS_PER_S)
#define PATIENCE_NS (10 * CLOCK_NS_PER_S) /* then kernels start cold */
#define LOAD_NS (120 * CLOCK_NS_PER_S)    /* then it is replaced */
#define ZYGOTE_MEMORY (4ull << 30)
#define ZYGOTE_DISK (512ull << 20)
#define STATUS_MAX 65536u

static void ask(struct zygote_supply *n);

static void on_again(struct timer *t)
{
	ask(t->arg);
}

/*
 * The zygote is gone, or could not be made: request another after a while. Kernels start cold until
 * that is ready.
 */
static void lost(struct zygote_supply *n, const char *why)
{
	if (n->zygote)
		n->failures = 0;
	uint64_t wait = AGAIN_MIN_NS << (n->failures < 8 ? n->failures : 8);

	loop_del(&n->status);
	timer_cancel(&n->patience);
	n->status.fd = fd_close(n->status.fd);
	n->zygote = n->made = 0;
	n->settled = true;
	n->failures++;
	n->restarts++;
	metric_add(M_ZYGOTE_RESTARTS, 1);
	(void)snprintf(n->problem, sizeof(n->problem), "%s", why);
	log_event(LOG_LEVEL_WARNING, "zygote_lost", F_STR("image", n->image->name),
		  F_STR("why", why), F_UINT("failures", n->failures));
	timer_after(n->cells->loop, &n->again, (wait > AGAIN_MAX_NS ? AGAIN_MAX_NS : wait));
	n->on_change(n);
}

static void note_failures(struct zygote_supply *n, const json_t *failed)
{
	size_t i, at = 0;
	json_t *pair;

	n->preload_failed[0] = '\0';
	json_array_foreach(failed, i, pair)
	{
		const char *name = json_string_value(json_array_get(pair, 0));
		const char *why = json_string_value(json_array_get(pair, 1));

		if (!name || !why)
			continue;
		log_event(LOG_LEVEL_WARNING, "preload_failed", F_STR("module", name),
			  F_STR("why", why));
		int k = snprintf(n->preload_failed + at, sizeof(n->preload_failed) - at, "%s%s",
				 at ? ", " : "", name);

		if (k > 0 && (size_t)k < sizeof(n->preload_failed) - at)
			at += (size_t)k;
	}
}

/* A zygote sends one message, when it has loaded everything. The next event is its end. */
static void on_status(struct watch *w, uint32_t events)
{
	static char text[STATUS_MAX];
	struct zygote_supply *n = w->arg;
	ssize_t len = recv(w->fd, text, sizeof(text), MSG_DONTWAIT);

	(void)events;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0 || n->zygote) {
		lost(n,
		     n->zygote ? "the zygote died" : "the zygote died while it loaded its modules");
		return;
	}
	json_t *m = json_alloc_load(text, (size_t)len, JSON_REJECT_DUPLICATES, NULL);
	const char *version = json_string_value(json_object_get(m, "version"));

	if (!version) {
		json_decref(m);
		lost(n, "the zygote broke the protocol");
		return;
	}
	(void)snprintf(n->version, sizeof(n->version), "%s", version);
	note_failures(n, json_object_get(m, "failed"));
	json_decref(m);
	timer_cancel(&n->patience);
	n->zygote = n->made;
	n->settled = true;
	n->problem[0] = '\0';
	log_event(LOG_LEVEL_INFO, "zygote_ready", F_STR("image", n->image->name),
		  F_STR("python", n->version));
	n->on_change(n);
}

static int send_preload(struct zygote_supply *n)
{
	_buf_ struct buf b = BUF_INIT(STATUS_MAX);
	struct json j;

	json_init(&j, &b);
	json_object_begin(&j);
	json_member_array(&j, "preload");
	for (size_t i = 0; n->cells->daemon->config.preload[i]; i++)
		json_str(&j, n->cells->daemon->config.preload[i]);
	json_array_end(&j);
	json_object_end(&j);
	return json_finish(&j) < 0 ? -EMSGSIZE : fd_send(n->status.fd, buf_str(&b), b.len, NULL, 0);
}

static void retire(struct zygote_supply *n, uint32_t zygote);

/*
 * The zygote takes long to load: requests that wait get cold kernels. If it is not ready at the
 * second timeout either, it is replaced.
 */
static void on_patience(struct timer *t)
{
	struct zygote_supply *n = t->arg;
	uint32_t zygote = n->made;

	if (!n->settled) {
		n->settled = true;
		(void)snprintf(n->problem, sizeof(n->problem), "it is still loading its modules");
		log_event(LOG_LEVEL_WARNING, "zygote_slow", F_STR("image", n->image->name),
			  F_STR("what",
				"it still loads its modules; kernels start cold meanwhile"));
		timer_after(n->cells->loop, t, LOAD_NS - PATIENCE_NS);
		n->on_change(n);
		return;
	}
	lost(n, "it did not finish loading its modules");
	retire(n, zygote);
}

static void on_made(struct warden_call *c, const struct warden_reply *r, int *fds, size_t n_fds)
{
	struct zygote_supply *n = c->arg;
	struct err e = { 0 };

	if (r->code < 0 || n_fds != 1) {
		lost(n, r->code < 0 ? r->msg : "the warden sent no status socket");
		return;
	}
	n->made = r->zygote;
	n->status = (struct watch){ .fd = fds[0], .events = EPOLLIN, .fn = on_status, .arg = n };
	fds[0] = -1;
	if (send_preload(n) < 0 || loop_add(n->cells->loop, &n->status, &e) < 0) {
		lost(n, "the list of modules could not be sent to the zygote");
		return;
	}
	n->patience = (struct timer){ .fn = on_patience, .arg = n };
	timer_after(n->cells->loop, &n->patience, PATIENCE_NS);
}

static void ask(struct zygote_supply *n)
{
	static struct warden_req q;
	struct err e = { 0 };

	memset(&q, 0, sizeof(q));
	q.op = WARDEN_ZYGOTE;
	q.spec = n->cells->spec;
	q.spec.limits.memory_bytes = ZYGOTE_MEMORY;
	q.spec.limits.disk_bytes = ZYGOTE_DISK;
	q.spec.limits.cpu_milli = 4000;
	q.spec.image = CELL_IMAGE_HOST;
	n->settled = false;
	n->call.fn = on_made;
	n->call.arg = n;
	if (warden_link_ask(n->cells->link, &n->call, &q, NULL, 0, &e) < 0)
		lost(n, e.msg);
}

static void on_retired(struct warden_call *c, const struct warden_reply *r, int *fds, size_t n)
{
	(void)c;
	(void)r;
	(void)fds;
	(void)n; /* its status socket reports the end */
}

static void retire(struct zygote_supply *n, uint32_t zygote)
{
	if (!zygote || n->retire_call.call.seq)
		return;
	n->retire_call.fn = on_retired;
	n->retire_call.arg = n;
	(void)warden_link_ask_cell(n->cells->link, &n->retire_call, WARDEN_RETIRE, 0, zygote, NULL);
}

void zygote_supply_replace(struct zygote_supply *n)
{
	uint32_t zygote = n->zygote;

	if (!zygote || n->retire_call.call.seq)
		return;
	n->failures = 0;
	n->zygote = 0;
	log_event(LOG_LEVEL_WARNING, "zygote_stuck", F_STR("image", n->image->name),
		  F_STR("what", "it does not answer; replacing it"));
	retire(n, zygote);
}

void zygote_supply_start(struct zygote_supply *n, struct image_use *g)
{
	n->cells = g->cells;
	n->image = g;
	n->status.fd = -1;
	n->again.fn = on_again;
	n->again.arg = n;
	if (g->kind == CELL_IMAGE_HOST) {
		ask(n);
		return;
	}
	n->settled = true;
	(void)snprintf(
		n->problem, sizeof(n->problem),
		"only the image host has one: an image's own python runs in its cells alone");
}

void zygote_supply_stop(struct zygote_supply *n)
{
	timer_cancel(&n->again);
	timer_cancel(&n->patience);
	loop_del(&n->status);
	n->status.fd = fd_close(n->status.fd);
	warden_link_forget(n->cells->link, &n->call);
	warden_link_forget(n->cells->link, &n->retire_call);
}

void zygote_supply_retire(struct zygote_supply *n)
{
	uint32_t zygote = n->made;

	zygote_supply_stop(n);
	n->zygote = n->made = 0;
	if (zygote)
		(void)warden_link_ask_cell(n->cells->link, NULL, WARDEN_RETIRE, 0, zygote, NULL);
}
