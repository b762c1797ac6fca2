/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulls.c - The queue of pulls, and the requests that wait for each.
 *
 * Theory of operation. The first pull of the list is the one that runs; a pull is removed from the
 * list when it is over, and the next one begins. Of a pull that runs the front has a pipe, with
 * lines of JSON (pull_lines.c), and gets one message at its end. The two come by different ways, so
 * the message is kept until the pipe has ended, too: the reason of a failure is its last line.
 *
 * Every pull ends: caisson-image-puller reports its end, or is gone itself; a timer ends one that
 * takes too long, and one that nobody waits for any more is stopped.
 */
#include "front/images/pulls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "base/json.h"
#include "base/list.h"
#include "base/spawn.h"
#include "client/program.h"
#include "front/cell/cells.h"
#include "front/cell/image_use.h"
#include "front/images/pull_lines.h"
#include "front/spec/judge.h"
#include "front/support/log.h"
#include "image/ref.h"
#include "ledger/ledger.h"

#define PULLER_NAME "caisson-image-puller"
#define PIPE_LATE_NS (2 * CLOCK_NS_PER_S) /* after the end of its writer */
#define STOP_LATE_NS (10 * CLOCK_NS_PER_S)
#define PER_EVENT 16
#define BUSY_RETRY_S 5u

struct pull {
	struct pull *prev, *next;
	struct pulls *pulls;
	char ref[IMAGE_OPENER_REF_MAX]; /* canonical */
	char owner[OWNER_MAX];          /* whose request began it */
	struct pull_wait *waits;
	uint64_t seq;        /* of the request to the puller; 0: it waits for its turn */
	struct watch pipe;   /* fd -1: not open, or at its end */
	uint64_t stalled_ns; /* see base/foreign.h */
	struct pull_lines lines;
	struct timer timer;
	bool late, deserted, ended; /* its time is over; nobody waits; the puller reported its end
				     */
	int status;
	uint64_t began_ns;
	struct deferred later;
};

static void begin_next(struct pulls *p);

/* ---- the end of a pull --------------------------------------------------------------------- */

static void record_end(const struct pull *l, const struct refusal *why)
{
	struct err e = { 0 };

	if (ledger_record(l->pulls->daemon->ledger, &e, "image.pulled", l->owner, NULL,
			  L_STR("image", l->ref), L_STR("outcome", why ? why->code : "pulled"),
			  L_STR("digest", why ? NULL : l->lines.digest)) < 0)
		log_event(LOG_LEVEL_ERROR, "not_recorded", F_STR("what", "image.pulled"),
			  F_STR("why", e.msg));
	log_event(why ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "image_pulled", F_STR("image", l->ref),
		  F_STR("owner", l->owner), F_STR("outcome", why ? why->code : "pulled"),
		  F_STR("why", why ? why->message : ""), F_STR("digest", l->lines.digest),
		  F_MS("ms", l->began_ns ? l->pulls->loop->now_ns - l->began_ns : 0));
}

static void let_go(struct pull *l)
{
	struct pulls *p = l->pulls;

	timer_cancel(&l->timer);
	loop_del(&l->pipe);
	l->pipe.fd = fd_close(l->pipe.fd);
	LIST_DROP(p->first, l);
	p->n--;
	if (l->seq && p->running == l->seq)
		p->running = 0;
}

static void unlink_wait(struct pull_wait *w)
{
	LIST_DROP(w->pull->waits, w);
	w->pull = NULL;
	w->prev = w->next = NULL;
}

/* Everybody who waits is told; then the next one begins. @why NULL: it is in the store. */
static void finish(struct pull *l, const struct refusal *why)
{
	struct pulls *p = l->pulls;

	let_go(l);
	record_end(l, why);
	while (l->waits) {
		struct pull_wait *w = l->waits;

		unlink_wait(w);
		w->done(w, why);
	}
	pull_lines_free(&l->lines);
	loop_undefer(p->loop, &l->later);
	free(l);
	begin_next(p);
}

static void refuse(struct pull *l, enum refusal_kind kind, const char *code, const char *hint,
		   const char *text)
{
	struct refusal why;

	(void)refusal_set(&why, kind, code, "image", hint, "%.300s", text);
	if (kind == REFUSAL_UNAVAILABLE)
		why.retry_after_s = BUSY_RETRY_S;
	finish(l, &why);
}

static void conclude(struct pull *l)
{
	struct refusal why;

	if (l->status == 0) {
		finish(l, NULL);
		return;
	}
	if (l->late)
		(void)refusal_set(
			&why, REFUSAL_TIMEOUT, "image_pull_timeout", "image",
			"what was loaded is kept for the next try; the operator's limit: "
			"--image-pull-timeout",
			"%.200s was not pulled within %llu s", l->ref,
			(unsigned long long)(l->pulls->daemon->config.image_pull_ms / 1000));
	else if (l->deserted)
		(void)refusal_set(&why, REFUSAL_CANCELLED, "cancelled", "image", NULL,
				  "no request waits for %.200s any more", l->ref);
	else
		pull_lines_refusal(&l->lines, l->ref, &why);
	finish(l, &why);
}

static void ask_to_stop(struct pull *l)
{
	struct image_puller_req q = { .op = IMAGE_PULLER_STOP };

	(void)service_link_ask(&l->pulls->puller, NULL, &q, NULL, 0, NULL);
}

/* The first time: end it. The second time: it should have ended. */
static void on_time(struct timer *t)
{
	struct pull *l = t->arg;

	if (l->ended) { /* another process holds the pipe */
		conclude(l);
		return;
	}
	if (l->late || l->deserted) {
		refuse(l, REFUSAL_UNAVAILABLE, "image_pull_failed", NULL,
		       "a pull was stopped, and did not end");
		return;
	}
	l->late = true;
	ask_to_stop(l);
	timer_after(l->pulls->loop, t, STOP_LATE_NS);
}

/* ---- the pipe ------------------------------------------------------------------------------ */

static void on_line(void *arg, const struct pull_progress *now)
{
	struct pull *l = arg;

	for (struct pull_wait *w = l->waits, *next; w; w = next) {
		next = w->next;
		if (w->progress)
			w->progress(w, now);
	}
}

static void on_pipe(struct watch *w, uint32_t events)
{
	struct pull *l = w->arg;
	char data[4096];
	ssize_t n = 1;

	(void)events;
	for (int i = 0; i < PER_EVENT && n > 0; i++) {
		n = foreign_read(w->fd, data, sizeof(data), &l->stalled_ns);
		if (n > 0 && pull_lines_feed(&l->lines, data, (size_t)n) < 0)
			n = 0; /* not what caisson-image writes: its end still counts */
	}
	if (n > 0 || n == -EAGAIN)
		return;
	loop_del(w);
	w->fd = fd_close(w->fd);
	if (l->ended)
		conclude(l);
}

static void on_begun(struct pull *l, int *fd)
{
	if (*fd < 0 || l->pipe.fd >= 0 || foreign_check(*fd, FOREIGN_PIPE) < 0)
		return;
	l->pipe = (struct watch){ .fd = *fd, .events = EPOLLIN, .fn = on_pipe, .arg = l };
	if (loop_add(l->pulls->loop, &l->pipe, NULL) < 0)
		l->pipe.fd = -1;
	else
		*fd = -1; /* kept */
}

/* ---- the puller ---------------------------------------------------------------------------- */

static struct pulls *of_link(struct service_link *link)
{
	return (struct pulls *)((char *)link - offsetof(struct pulls, puller));
}

static void on_ended(struct pull *l, const struct image_puller_reply *r)
{
	l->ended = true;
	l->status = r->status;
	if (r->msg[0])
		(void)snprintf(l->lines.error, sizeof(l->lines.error), "%s", r->msg);
	timer_cancel(&l->timer);
	if (l->pipe.fd < 0)
		conclude(l);
	else
		timer_after(l->pulls->loop, &l->timer, PIPE_LATE_NS);
}

static void receive(struct service_link *link, void *message, int *fds, size_t n_fds)
{
	struct image_puller_reply *r = message;
	struct pull *l = of_link(link)->first;

	r->msg[sizeof(r->msg) - 1] = '\0';
	if (!l || !l->seq || r->seq != l->seq || l->ended)
		return; /* of a pull that was given up */
	if (r->say == IMAGE_PULLER_BEGUN && n_fds > 0)
		on_begun(l, &fds[0]);
	else if (r->say == IMAGE_PULLER_ENDED)
		on_ended(l, r);
}

/* No request has an answer of its own. */
static void fail(struct service_call *c, int code, const char *why)
{
	(void)c, (void)code, (void)why;
}

static void gone(struct service_link *link)
{
	struct pulls *p = of_link(link);

	log_event(LOG_LEVEL_ERROR, "image_puller_gone",
		  F_STR("what", "no images can be pulled until the daemon is restarted"));
	while (p->first)
		refuse(p->first, REFUSAL_UNAVAILABLE, "image_pull_failed",
		       "the operator restarts the daemon, or brings the image with: caisson image "
		       "pull",
		       "the process that pulls images was killed");
}

static const struct service puller_service = {
	.name = "the image puller",
	.version = IMAGE_PULLER_VERSION,
	.request_size = sizeof(struct image_puller_req),
	.message_size = sizeof(struct image_puller_reply),
	.seq_at = offsetof(struct image_puller_req, seq),
	.fds_max = 1,
	.loses_fds = true,
	.queue_max = 4 * PULLS_MAX,
	.receive = receive,
	.fail = fail,
	.gone = gone,
};

_Static_assert(offsetof(struct image_puller_req, seq) == offsetof(struct image_puller_reply, seq) &&
		       sizeof(struct image_puller_reply) <= SERVICE_MESSAGE_MAX,
	       "as service_link.h has them");

/* ---- the queue ----------------------------------------------------------------------------- */

/* Deferred: the function that asked for it still uses what a failure would free. */
static void on_begin(struct deferred *d)
{
	struct pull *l = d->arg;
	struct pulls *p = l->pulls;
	struct image_puller_req q = { .op = IMAGE_PULLER_PULL };
	struct err e = { 0 };

	(void)snprintf(q.ref, sizeof(q.ref), "%s", l->ref);
	l->began_ns = p->loop->now_ns;
	if (service_link_ask(&p->puller, NULL, &q, NULL, 0, &e) < 0) {
		refuse(l, REFUSAL_UNAVAILABLE, "image_pull_failed", NULL, e.msg);
		return;
	}
	l->seq = p->running = q.seq;
	log_event(LOG_LEVEL_INFO, "image_pull", F_STR("image", l->ref), F_STR("owner", l->owner));
	timer_after(p->loop, &l->timer, p->daemon->config.image_pull_ms * CLOCK_NS_PER_MS);
}

static void begin_next(struct pulls *p)
{
	struct pull *l = p->first;

	/* One that waited for its turn and is in the store by now is pulled all the same: that asks
	 * for its manifest, and finds the layers there. */
	if (l && !p->running)
		loop_defer(p->loop, &l->later);
}

/* Removes it from a queue; ends it when it runs. */
static void desert(struct pull *l)
{
	if (l->deserted || l->late)
		return;
	l->deserted = true;
	if (l->seq && !l->ended) {
		ask_to_stop(l);
		timer_after(l->pulls->loop, &l->timer, STOP_LATE_NS);
	} else if (!l->seq) {
		l->status = -1;
		conclude(l);
	}
}

void pull_leave(struct pull_wait *w)
{
	struct pull *l = w->pull;

	if (!l)
		return;
	unlink_wait(w);
	if (!l->waits)
		desert(l);
}

/* At the end: they are pulled in their order. */
static void append(struct pulls *p, struct pull *l)
{
	struct pull *last = p->first;

	while (last && last->next)
		last = last->next;
	l->prev = last;
	l->next = NULL;
	if (last)
		last->next = l;
	else
		p->first = l;
	p->n++;
}

static struct pull *make(struct pulls *p, const char *owner, const char *ref, struct refusal *why)
{
	struct err e = { 0 };

	if (ledger_record(p->daemon->ledger, &e, "image.pull", owner, NULL, L_STR("image", ref)) <
	    0) {
		(void)refusal_set(why, REFUSAL_UNAVAILABLE, "not_recorded", "image", NULL,
				  "the ledger cannot be written, so nothing is done");
		return NULL;
	}
	struct pull *l = calloc(1, sizeof(*l));

	if (!l) {
		(void)refusal_no_memory(why);
		return NULL;
	}
	l->pulls = p;
	l->pipe.fd = -1;
	l->timer.fn = on_time;
	l->timer.arg = l;
	l->later.fn = on_begin;
	l->later.arg = l;
	(void)snprintf(l->ref, sizeof(l->ref), "%s", ref);
	(void)snprintf(l->owner, sizeof(l->owner), "%s", owner);
	pull_lines_init(&l->lines, ref, on_line, l);
	append(p, l);
	begin_next(p);
	return l;
}

/* ---- admission ----------------------------------------------------------------------------- */

static int admit(struct pulls *p, const char *owner, const char *name, struct refusal *why)
{
	size_t own = 0;
	struct ref ref;

	if (ref_parse(name, &ref, NULL) < 0 || !ref_is_of(&ref, p->daemon->config.image_registries))
		return refusal_set(
			why, REFUSAL_FORBIDDEN, "image_pull_denied", "image",
			"the operator brings it with: caisson image pull, or allows the "
			"registry with --image-registry",
			"%.160s is not in the image store, and this daemon does not pull "
			"from %.100s",
			name, ref.host);
	if (policy_pull(p->admission, owner, name, why) < 0)
		return -1;
	if (p->daemon->draining || p->puller.watch.fd < 0) {
		(void)refusal_set(why, REFUSAL_UNAVAILABLE,
				  p->daemon->draining ? "draining" : "image_pull_failed", "image",
				  NULL, "%s",
				  p->daemon->draining ? "the daemon is shutting down" :
							"the process that pulls images is gone: "
							"restart the daemon");
		why->retry_after_s = BUSY_RETRY_S;
		return -1;
	}
	for (const struct pull *l = p->first; l; l = l->next)
		own += strcmp(l->owner, owner) == 0;
	if (p->n < PULLS_MAX && own < PULLS_OF_OWNER)
		return 0;
	(void)refusal_set(why, REFUSAL_TOO_MANY, "image_pulls_busy", "image", NULL,
			  "%zu images wait to be pulled already; try again later", p->n);
	why->retry_after_s = BUSY_RETRY_S;
	return -1;
}

static struct pull *find(const struct pulls *p, const char *name)
{
	struct pull *l = p->first;

	while (l && (l->deserted || l->late || l->ended || strcmp(l->ref, name) != 0))
		l = l->next;
	return l;
}

int pulls_wait(struct pulls *p, const char *owner, const char *image, struct pull_wait *w,
	       struct refusal *why)
{
	char name[IMAGE_OPENER_REF_MAX];

	if (!image || !p->daemon->config.image_pull ||
	    image_name(p->cells, image, name, NULL) < 0 || !name[0] ||
	    !policy_image(p->admission, owner, name))
		return 1;
	struct pull *l = find(p, name);

	if (!l && !image_missing(p->cells, name))
		return 1;
	/* A caller who may not have it pulled does not get it by waiting for another's pull. */
	if (l ? policy_pull(p->admission, owner, name, why) < 0 : admit(p, owner, name, why) < 0)
		return -1;
	if (!l)
		l = make(p, owner, name, why);
	if (!l)
		return -1;
	w->pull = l;
	LIST_PUSH(l->waits, w);
	return 0;
}

void pull_progress_json(const struct pull_progress *now, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_member_str(&j, "text", now->text);
	if (now->total) {
		json_member_uint(&j, "done", now->done);
		json_member_uint(&j, "total", now->total);
	}
	json_object_end(&j);
	if (json_finish(&j) < 0 && !out->err)
		out->err = -EMSGSIZE;
}

void pulls_drain(struct pulls *p)
{
	while (p->first) {
		if (p->first->seq && !p->first->ended)
			ask_to_stop(p->first);
		refuse(p->first, REFUSAL_UNAVAILABLE, "draining", NULL,
		       "the daemon is shutting down");
	}
}

/* ---- the start ----------------------------------------------------------------------------- */

#define WORDS_MAX (6 + CONFIG_LIST_MAX)
#define WORD_MAX (4096 + 16)

static int add(char words[][WORD_MAX], char **argv, size_t *n, const char *name, const char *value,
	       struct err *e)
{
	if (!value)
		return 0;
	if ((size_t)snprintf(words[*n], WORD_MAX, "--%s=%s", name, value) >= WORD_MAX)
		return err_say(e, -ENAMETOOLONG, "--image-%s: the path is too long", name);
	argv[*n] = words[*n];
	++*n;
	return 0;
}

int pulls_open(struct pulls *p, struct err *e)
{
	static char words[WORDS_MAX][WORD_MAX];
	static char name[] = PULLER_NAME;
	const struct config *c = &p->daemon->config;
	char *argv[WORDS_MAX + 1] = { name };
	/* The puller chooses what it passes on. */
	struct spawn s = { .argv = argv, .envp = environ, .no_input = true, .no_output = true };
	size_t n = 1;

	service_link_init(&p->puller, &puller_service, -1);
	if (!c->image_pull)
		return 0;
	if (add(words, argv, &n, "store", c->image_store, e) < 0 ||
	    add(words, argv, &n, "authfile", c->image_authfile, e) < 0 ||
	    add(words, argv, &n, "ca", c->image_ca, e) < 0)
		return e->code;
	for (size_t i = 0; c->image_registries[i]; i++)
		if (add(words, argv, &n, "registry", c->image_registries[i], e) < 0)
			return e->code;
	p->puller.watch.fd = program_start(&s, IMAGE_PULLER_FD, NULL, e);
	return p->puller.watch.fd < 0 ? p->puller.watch.fd : 0;
}

int pulls_start(struct pulls *p, struct err *e)
{
	return p->puller.watch.fd < 0 ? 0 : service_link_start(&p->puller, p->loop, e);
}
