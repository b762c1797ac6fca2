/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools_port.c - Requests for packages from any program of a cell (docs/protocol/tools.md).
 *
 * `%pip install` comes over the channel of its kernel. A pip in a shell, a Makefile or a subprocess
 * has no channel: it connects to a port of the cell's own network (INIT_LISTEN_TOOLS), on which the
 * front listens. The port tells which sandbox sends the request. The request names packages and
 * nothing else, and install_begin() judges it as every other one: a program gets nothing that the
 * code of its sandbox could not have.
 *
 * Time and memory. Most sandboxes of one execution end before their port is made (OPEN_NS). Of each
 * cell one connection is served at a time, with a pause after it; the others wait in the Linux
 * kernel's queue. The cell pays for the front's time as for the lines of its kernels
 * (kernel_share.h), and while it owes too much the pause is longer. A connection has LATE_NS for
 * its request, which has at most REQUEST_MAX bytes. The end of the connection gives the request up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "front/cell/cell.h"
#include "front/packages/closure.h"
#include "front/packages/install.h"
#include "front/packages/packages.h"
#include "front/packages/tools.h"
#include "front/policy/egress_entry.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/refusal.h"
#include "front/support/schema.h"

#define OPEN_NS (20 * CLOCK_NS_PER_MS)
#define PAUSE_NS (50 * CLOCK_NS_PER_MS)
#define LATE_NS (5 * CLOCK_NS_PER_S)
#define REQUEST_MAX (64u << 10)
#define ANSWER_MAX (1u << 20)
#define DEPTH_MAX 3u
#define VALUES_MAX 1000u

struct tools_port {
	struct sandbox *sandbox;
	struct cell *cell;
	struct cell_command job; /* the request for the listener */
	struct timer open;       /* make the listener, or go on accepting */
	struct watch listener, client;
	uint64_t stalled_ns;
	struct timer late; /* for the request, and later for the answer */
	struct buf in, out;
	struct install *install;
	bool owing; /* the pause is a rest (kernel_share.h) */
};

static struct tools_port *of_job(struct cell_command *job)
{
	return (struct tools_port *)((char *)job - offsetof(struct tools_port, job));
}

static struct loop *loop_of(const struct tools_port *p)
{
	return p->sandbox->sandboxes->loop;
}

/* ---- one connection ------------------------------------------------------------------------ */

static void end_client(struct tools_port *p)
{
	if (p->install)
		install_drop(p->install);
	p->install = NULL;
	timer_cancel(&p->late);
	loop_del(&p->client);
	p->client.fd = fd_close(p->client.fd);
	buf_free(&p->in);
	buf_free(&p->out);
	uint64_t rest_ns = kernel_share_rest(&p->cell->share, &p->owing);

	timer_after(loop_of(p), &p->open, rest_ns > PAUSE_NS ? rest_ns : PAUSE_NS);
}

static void on_late(struct timer *t)
{
	end_client(t->arg);
}

static void flush(struct tools_port *p)
{
	ssize_t n = send(p->client.fd, p->out.data, p->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		buf_consume(&p->out, (size_t)n);
	if ((n < 0 && errno != EAGAIN) || p->out.len == 0)
		end_client(p);
	else
		loop_mod(&p->client, EPOLLOUT);
}

/* Takes @message, which may be NULL. */
static void answer(struct tools_port *p, json_t *message)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

	json_decref(message);
	if (!text || buf_puts(&p->out, text) < 0 || buf_puts(&p->out, "\n") < 0)
		buf_clear(&p->out);
	json_alloc_free(text);
	timer_after(loop_of(p), &p->late, LATE_NS);
	if (p->out.len > 0)
		flush(p);
	else
		end_client(p);
}

static json_t *refused(const struct refusal *r)
{
	return json_pack("{s:s, s:s, s:s*}", "error", r->message, "code", r->code, "hint", r->hint);
}

/* The front has worked for the cell since @began_ns of kernel_share_clock(). */
static void charge(struct tools_port *p, uint64_t began_ns)
{
	kernel_share_charge(&p->cell->share, kernel_share_clock() - began_ns, clock_now_ns());
}

/* ---- the request --------------------------------------------------------------------------- */

static json_t *installed(const struct install *in, const struct sandbox *s)
{
	json_t *all = json_array(), *p;
	char path[128];
	size_t i;

	json_array_foreach(in->tree->packages, i, p)
	{
		if (!closure_of_image(p))
			(void)json_array_append_new(all,
						    json_pack("[s, s]", closure_text(p, "name"),
							      closure_text(p, "version")));
	}
	(void)snprintf(path, sizeof(path), PACKAGES_PATH "/%s", in->tree->key);
	return json_pack("{s:o, s:s, s:o}", "packages", all, "tree", path, "paths",
			 packages_paths(s, in->eco));
}

/* Running kernels learn of the packages before the program does, which the code waits for. */
static void on_done(struct install *in)
{
	struct tools_port *p = in->arg;
	struct sandbox *s = p->sandbox;
	uint64_t began_ns = kernel_share_clock();

	p->install = NULL;
	for (size_t i = 0; !in->refusal.kind && s->cell && i < LANG_MAX_; i++)
		if (s->cell->kernels[i].attached && s->cell->kernels[i].state >= KERNEL_IDLE)
			packages_tell(s, &s->cell->kernels[i]);
	json_t *message = in->refusal.kind ? refused(&in->refusal) : installed(in, s);

	charge(p, began_ns);
	answer(p, message);
}

static const struct install_ops ops = { .done = on_done };

/* Whether egress allows this host: then the image's own installer can use the network. */
static bool reaches(const struct sandbox *s, const char *host)
{
	static struct egress_entry n; /* one thread uses it */
	size_t len = strlen(host), i;
	json_t *text;

	json_array_foreach(s->spec.egress, i, text)
	{
		const char *words = json_string_value(text);
		struct err e = { 0 };

		if (!words || egress_entry_parse(words, strlen(words), &n, &e) < 0)
			continue;
		size_t name = strlen(n.host);

		if (n.wild ? len > name + 1 && host[len - name - 1] == '.' &&
				     strcasecmp(host + len - name, n.host) == 0 :
			     strcasecmp(host, n.host) == 0)
			return true;
	}
	return false;
}

static void begin(struct tools_port *p, const char *text, size_t len)
{
	uint64_t began_ns = kernel_share_clock();
	json_t *m = schema_depth_ok(text, len, DEPTH_MAX) &&
				    schema_values_ok(text, len, VALUES_MAX) ?
			    json_alloc_load(text, len, JSON_REJECT_DUPLICATES, NULL) :
			    NULL;
	const char *language = json_string_value(json_object_get(m, "language"));
	const char *index = json_string_value(json_object_get(m, "index"));
	const json_t *packages = json_object_get(m, "packages"), *one;
	enum ecosystem eco = language ? ecosystem_find(language) : ECO_MAX_;
	bool good = eco != ECO_MAX_ && json_is_array(packages);
	struct refusal why;
	size_t i;

	json_array_foreach((json_t *)packages, i, one) good = good && json_is_string(one);
	(void)refusal_set(&why, REFUSAL_INVALID, "invalid_requirement", NULL, NULL,
			  "a request has a language and a list of packages");
	timer_cancel(&p->late);
	bool direct = good && index && reaches(p->sandbox, index);

	const struct install_request q = {
		.eco = eco,
		.requirements = packages,
		.upgrade = json_is_true(json_object_get(m, "upgrade")),
	};

	if (good && !direct)
		p->install = install_begin(packages_of(p->sandbox), p->sandbox, p->sandbox->owner,
					   &q, &ops, p, &why);
	json_decref(m);
	charge(p, began_ns);
	if (p->install)
		loop_mod(&p->client, EPOLLRDHUP);
	else
		answer(p, direct ? json_pack("{s:b}", "direct", 1) : refused(&why));
}

static void on_client(struct watch *w, uint32_t events)
{
	struct tools_port *p = w->arg;
	char chunk[4096];
	ssize_t n;

	if (p->out.len > 0) {
		flush(p);
		return;
	}
	if (p->install || events & (EPOLLERR | EPOLLHUP)) { /* it does not wait any more */
		end_client(p);
		return;
	}
	n = recv(w->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || buf_append(&p->in, chunk, (size_t)n) < 0)
		end_client(p);
	else if (chunk[n - 1] == '\n')
		begin(p, p->in.data, p->in.len);
}

/* ---- the listener -------------------------------------------------------------------------- */

static void on_accept(struct watch *w, uint32_t events)
{
	struct tools_port *p = w->arg;
	int fd = foreign_accept(w->fd, &p->stalled_ns);

	(void)events;
	if (fd == -ETIMEDOUT) {
		cell_refuse(p->cell, "a socket of it makes the daemon wait");
		return;
	}
	loop_del(w);
	buf_init(&p->in, REQUEST_MAX);
	buf_init(&p->out, ANSWER_MAX);
	p->client = (struct watch){
		.fd = fd < 0 ? -1 : fd, .events = EPOLLIN, .fn = on_client, .arg = p
	};
	timer_after(loop_of(p), &p->late, LATE_NS);
	if (fd < 0 || loop_add(loop_of(p), &p->client, NULL) < 0)
		end_client(p);
}

static void on_listener(struct cell_command *job, int pid, int *fds, size_t n_fds)
{
	struct tools_port *p = of_job(job);

	(void)pid;
	if (n_fds != 1)
		return;
	p->listener.fd = TAKE_FD(fds[0]);
	(void)loop_add(loop_of(p), &p->listener, NULL);
}

/* A program of the cell listens there: then it has no way to packages but that of its kernels. */
static void on_no_listener(struct cell_command *job, const struct init_failed *f)
{
	(void)job, (void)f;
}

static void on_open(struct timer *t)
{
	struct tools_port *p = t->arg;
	struct err e = { 0 };

	kernel_share_rested(&p->owing);
	if (p->listener.fd >= 0)
		(void)loop_add(loop_of(p), &p->listener, &e);
	else
		(void)cell_listen(p->cell, &p->job, INIT_LISTEN_TOOLS, 0, &e);
}

void tools_listen(struct sandbox *s)
{
	struct tools_port *p;

	if (!packages_on(packages_of(s)) || s->spec.fetcher || s->tools ||
	    !(p = s->tools = calloc(1, sizeof(*p))))
		return;
	p->sandbox = s;
	p->cell = s->cell;
	p->job = (struct cell_command){ .started = on_listener, .failed = on_no_listener };
	p->listener = (struct watch){ .fd = -1, .events = EPOLLIN, .fn = on_accept, .arg = p };
	p->client.fd = -1;
	p->late = (struct timer){ .fn = on_late, .arg = p };
	p->open = (struct timer){ .fn = on_open, .arg = p };
	timer_after(loop_of(p), &p->open, OPEN_NS);
}

void tools_unlisten(struct sandbox *s)
{
	struct tools_port *p = s->tools;

	if (!p)
		return;
	s->tools = NULL;
	if (p->job.id)
		cell_forget(p->cell, &p->job);
	end_client(p);
	kernel_share_rested(&p->owing);
	timer_cancel(&p->open);
	loop_del(&p->listener);
	p->listener.fd = foreign_close(p->listener.fd);
	free(p);
}
