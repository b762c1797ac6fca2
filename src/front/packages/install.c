/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install.c - The life of one request.
 *
 * Theory of operation. A program (src/guest/fetch) in a cell of its own resolves, downloads and
 * builds: a sandbox without a name, with limits of its own and the configured hosts as its only
 * network. It reports the packages that it would install, and goes on when the rules
 * (package_rules.h) permit them. When it is done, the cell's pid 1 packs the tree, and the package
 * store reads it from a descriptor that the front only passes on. So of all that a package brings
 * the front sees some lines of JSON, and treats them as data of the package's author.
 *
 * Every failure ends the cell, and with it everything that was fetched.
 */
#include "front/packages/install.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "cell/spec.h"
#include "client/files_client.h"
#include "front/cell/image_use.h"
#include "front/packages/fetcher.h"
#include "front/packages/install_int.h"
#include "front/packages/packages.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/metrics.h"
#include "front/support/name.h"
#include "ledger/ledger.h"

#define FILES_LIMIT 200000u
#define LINE_MAX_BYTES (4u << 20)
#define NOT_FOUND 127 /* the exit code of a shell (init_explain()) */

/* ---- the end ------------------------------------------------------------------------------- */

static void free_install(struct install *in)
{
	LIST_DROP(in->packages->installs, in);
	json_decref(in->requirements);
	json_decref(in->constraints);
	json_decref(in->recalled);
	json_decref(in->closure);
	buf_free(&in->line);
	image_release(in->image);
	free(in->request);
	free(in);
}

static void leave_cell(struct install *in)
{
	struct sandbox *fetcher = in->fetcher;

	timer_cancel(&in->timer);
	service_link_forget(&in->packages->store, &in->call.call);
	if (in->cell)
		cell_forget(in->cell, &in->pack);
	in->cell = NULL;
	command_release(&in->command);
	in->fetcher = NULL;
	sandbox_leave(&in->hold); /* nobody else is in it: it ends */
	if (fetcher && !fetcher->ending)
		sandbox_end(fetcher, "done");
}

/* Deferred: callers still use the objects that are released here. */
static void conclude(struct deferred *d)
{
	struct install *in = d->arg;
	struct sandbox *s = install_sandbox(in);

	if (in->cell || in->fetcher || in->command.sandboxes)
		leave_cell(in);
	in->packages->n_installs -= in->cached ? 0 : 1;
	in->ended_ns = clock_now_ns();
	if (!in->refusal.kind && in->sandbox_id[0] && !s)
		(void)refusal_set(&in->refusal, REFUSAL_CONFLICT, "session_ended", NULL, NULL,
				  "the sandbox ended before its packages were there");
	if (!in->refusal.kind)
		trees_use(in->packages, s, in->owner, in->tree);
	outcome_record(in);
	if (in->ops)
		in->ops->done(in);
	free_install(in);
}

static void install_end(struct install *in)
{
	if (in->ended)
		return;
	in->ended = true;
	in->later.fn = conclude;
	in->later.arg = in;
	loop_defer(in->packages->loop, &in->later);
}

void install_fail(struct install *in, const struct refusal *why)
{
	if (in->ended)
		return;
	in->refusal = *why;
	install_end(in);
}

void install_fail_text(struct install *in, enum refusal_kind kind, const char *code,
		       const char *hint, const char *fmt, ...)
{
	struct refusal why = { .kind = kind, .code = code, .hint = hint };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why.message, sizeof(why.message), fmt, ap);
	va_end(ap);
	if (kind == REFUSAL_UNAVAILABLE)
		why.retry_after_s = 5;
	install_fail(in, &why);
}

void install_no_tool(struct install *in, const char *fmt, ...)
{
	const char *hint = in->eco == ECO_PYTHON ?
				   "use an image that has python3 with pip (22.2 or later) or uv" :
				   "use an image that has node and npm";
	char missing[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(missing, sizeof(missing), fmt, ap);
	va_end(ap);
	install_fail_text(in, REFUSAL_UNSUPPORTED, "no_installer", hint,
			  "'%.60s' cannot be installed with the image %.150s: %s", in->first,
			  in->image->name, missing);
}

struct sandbox *install_sandbox(const struct install *in)
{
	struct sandbox *s = in->sandbox_id[0] ? in->packages->sandboxes->first : NULL;

	while (s && strcmp(s->id, in->sandbox_id) != 0)
		s = s->next;
	return s;
}

void install_drop(struct install *in)
{
	in->ops = NULL;
	if (!in->closure)
		install_fail_text(in, REFUSAL_CONFLICT, "cancelled", NULL,
				  "cancelled: no client waits for it");
}

/* ---- the finished tree --------------------------------------------------------------------- */

static struct install *of_pack(struct cell_command *job)
{
	return (struct install *)((char *)job - offsetof(struct install, pack));
}

static void on_stored(struct package_store_call *c, const struct package_store_reply *r)
{
	struct install *in = c->arg;

	if (in->ended)
		return;
	if (r->code == 0) {
		in->tree = trees_add(in->packages, in, r);
		packages_tidy_soon(in->packages);
		if (in->tree)
			install_end(in);
		else
			install_fail_text(in, REFUSAL_UNAVAILABLE, "install_failed", NULL,
					  "the packages could not be recorded");
	} else if (r->code == -EFBIG) {
		install_fail_text(in, REFUSAL_TOO_LARGE, "package_too_big",
				  "the operator's limit: --package-size",
				  "the packages are too big: %s", r->msg);
	} else if (r->code == -EPERM || r->code == -EBADMSG || r->code == -EEXIST) {
		install_fail_text(in, REFUSAL_INVALID, "invalid_package", NULL,
				  "the packages are refused: %s", r->msg);
	} else {
		install_fail_text(in, REFUSAL_UNAVAILABLE, "install_failed", NULL,
				  "the packages could not be kept: %s", r->msg);
	}
}

static void on_pack_started(struct cell_command *job, int pid, int *fds, size_t n_fds)
{
	struct install *in = of_pack(job);
	struct package_store_req q = { .op = PACKAGE_STORE_STORE,
				       .max_bytes = in->packages->daemon->config.package_size,
				       .max_files = FILES_LIMIT };

	(void)pid;
	in->call.fn = on_stored;
	in->call.arg = in;
	if (n_fds != 2 || package_store_ask(&in->packages->store, &in->call, &q, fds[1]) < 0)
		install_fail_text(in, REFUSAL_UNAVAILABLE, "install_failed", "see the daemon's log",
				  "the package store does not answer");
}

static void on_pack_failed(struct cell_command *job, const struct init_failed *f)
{
	struct install *in = of_pack(job);

	install_fail_text(in, REFUSAL_UNAVAILABLE, "install_failed", NULL,
			  "the packages could not be packed: %s", strerror(f->error));
}

/* The package store learns at the end of the pipe how the packing ended. */
static void on_pack_exited(struct cell_command *job, const struct init_exited *x)
{
	(void)job, (void)x;
}

static void pack(struct install *in)
{
	struct files_request q = { .op = FILES_TAR_OUT,
				   .depth = FILES_DEPTH_MAX,
				   .path = FETCHER_SITE,
				   .uid = CELL_UID,
				   .gid = CELL_GID };
	struct err e = { 0 };

	in->pack = (struct cell_command){ .started = on_pack_started,
					  .failed = on_pack_failed,
					  .exited = on_pack_exited };
	if (!in->cell || cell_files(in->cell, &in->pack, &q, &e) < 0)
		install_fail_text(in, REFUSAL_UNAVAILABLE, "install_failed", NULL,
				  "the fetcher's cell is over");
}

/* ---- the fetcher --------------------------------------------------------------------------- */

static void on_output(struct command *c, enum command_stream stream, const char *data, size_t len)
{
	if (stream == COMMAND_STDOUT)
		fetch_output_feed(c->owner, data, len);
}

static void on_fetched(struct command *c)
{
	struct install *in = c->owner;

	if (in->ended)
		return;
	if (c->refusal.kind) {
		install_fail(in, &c->refusal);
	} else if (in->reported_done && in->closure && c->verdict.exit_code == 0) {
		pack(in);
	} else if (c->not_started && c->verdict.exit_code == NOT_FOUND) {
		install_no_tool(in, "it has no %s", fetcher_program(in->eco));
	} else if (c->wall_hit) {
		install_fail_text(
			in, REFUSAL_TIMEOUT, "index_timeout",
			"the operator's limit: --package-timeout",
			"'%.60s' was not fetched and built in %llu s", in->first,
			(unsigned long long)(in->packages->daemon->config.package_timeout_ms /
					     1000));
	} else if (c->verdict.status == RESULT_LIMIT) {
		install_fail_text(in, REFUSAL_TOO_LARGE, "package_too_big",
				  "the operator's limit: --package-size",
				  "'%.60s' needed more than the fetcher's cell has: %.150s",
				  in->first, c->verdict.hint);
	} else {
		install_fail_text(in, REFUSAL_BAD_ANSWER, "install_failed", NULL,
				  "the fetcher ended without a report: %.200s", c->verdict.hint);
	}
}

static const struct command_ops fetch_ops = { .output = on_output, .done = on_fetched };

/* ---- the cell ------------------------------------------------------------------------------ */

static void on_in(struct entry *en, struct cell *r)
{
	struct install *in = en->arg;

	in->cell = r;
	command_run(&in->command, in->fetcher);
}

static void on_refused(struct entry *en, const struct refusal *why)
{
	struct install *in = en->arg;

	in->fetcher = NULL; /* ends by itself: nobody else uses it */
	install_fail(in, why);
}

static void on_gone(struct entry *en, const struct cell_usage *u)
{
	struct install *in = en->arg;

	in->cell = NULL;
	in->fetcher = NULL;
	if (u->end == CELL_END_MEMORY)
		install_fail_text(in, REFUSAL_TOO_LARGE, "package_too_big",
				  "the operator's limit: --package-size",
				  "'%.60s' needed more memory than the fetcher's cell has",
				  in->first);
	else
		install_fail_text(in, REFUSAL_UNAVAILABLE, "install_failed", NULL,
				  "the fetcher's cell ended");
}

static void on_late(struct timer *t)
{
	struct install *in = t->arg;

	install_fail_text(in, REFUSAL_TIMEOUT, "index_timeout",
			  "the operator's limit: --package-timeout",
			  "'%.60s' was not installed in time", in->first);
}

static int fetch(struct install *in, struct refusal *why)
{
	struct packages *packages = in->packages;
	struct sandbox_spec spec;

	fetcher_spec(in, &spec);
	in->fetcher = sandbox_create(packages->sandboxes, in->owner, NULL, &spec, why);
	if (!in->fetcher) {
		sandbox_spec_free(&spec);
		return -1;
	}
	if (fetcher_line(in, &in->command.line, why) < 0) {
		command_line_free(&in->command.line);
		sandbox_end(in->fetcher, "done");
		return -1;
	}
	in->command.ops = &fetch_ops;
	in->command.owner = in;
	in->command.timeout_ms = packages->daemon->config.package_timeout_ms;
	in->hold = (struct entry){ .in = on_in, .refused = on_refused, .gone = on_gone, .arg = in };
	in->timer.fn = on_late;
	in->timer.arg = in;
	timer_after(packages->loop, &in->timer,
		    2 * packages->daemon->config.package_timeout_ms * CLOCK_NS_PER_MS);
	sandbox_enter(in->fetcher, &in->hold);
	return 0;
}

/* ---- the start ----------------------------------------------------------------------------- */

static int admit(struct install *in, struct refusal *why)
{
	struct packages *packages = in->packages;
	struct err e = { 0 };

	if (packages->daemon->draining || packages->store.watch.fd < 0)
		return refusal_set(why, REFUSAL_UNAVAILABLE, "draining", "package", NULL, "%s",
				   packages->daemon->draining ?
					   "the daemon is shutting down" :
					   "the package store is gone: restart the daemon");
	if (packages->n_installs >= INSTALL_FETCHES_MAX) {
		(void)refusal_set(why, REFUSAL_TOO_MANY, "packages_busy", "package", NULL,
				  "other packages are being fetched; try again");
		why->retry_after_s = 2;
		return -1;
	}
	if (install_rate(packages, in->owner, why) < 0)
		return -1;
	if (ledger_record(packages->daemon->ledger, &e, "packages.begin", in->owner, in->sandbox,
			  L_STR("id", in->id), L_STR("image", image_key(in->image)),
			  L_STR("language", ecosystem_name(in->eco)),
			  L_STR("request", in->request)) < 0)
		return refusal_set(why, REFUSAL_UNAVAILABLE, "not_recorded", "package", NULL,
				   "the ledger cannot be written, so nothing is done");
	return 0;
}

static void enlist(struct install *in)
{
	LIST_PUSH(in->packages->installs, in);
}

struct install *install_begin(struct packages *packages, struct sandbox *s, const char *owner,
			      const struct install_request *q, const struct install_ops *ops,
			      void *arg, struct refusal *why)
{
	struct install *in = calloc(1, sizeof(*in));

	if (!in) {
		(void)refusal_no_memory(why);
		return NULL;
	}
	in->packages = packages;
	in->image = s ? s->image : &packages->sandboxes->cells->images->own;
	image_hold(in->image);
	in->ops = ops;
	in->arg = arg;
	in->eco = q->eco;
	in->upgrade = q->upgrade;
	in->began_ns = clock_now_ns();
	buf_init(&in->line, LINE_MAX_BYTES);
	random_id(in->id);
	(void)snprintf(in->owner, sizeof(in->owner), "%s", owner);
	if (s) {
		(void)snprintf(in->sandbox, sizeof(in->sandbox), "%s", s->name);
		(void)snprintf(in->sandbox_id, sizeof(in->sandbox_id), "%s", s->id);
	}
	enlist(in);
	if (install_take(in, q->requirements, q->version, why) < 0) {
		metric_package(why->kind == REFUSAL_FORBIDDEN ? "blocked" : "unsupported");
		free_install(in);
		return NULL;
	}
	in->tree = trees_find(in, s);
	in->cached = in->tree != NULL;
	if (in->cached) {
		install_end(in);
		return in;
	}
	install_constrain(in, s);
	install_recall(in, s);
	if (fetcher_may(in, why) < 0 || admit(in, why) < 0 || fetch(in, why) < 0) {
		metric_package("failed");
		free_install(in);
		return NULL;
	}
	packages->n_installs++;
	return in;
}
