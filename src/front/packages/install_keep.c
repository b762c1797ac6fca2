/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install_keep.c - The finished tree: packed in the fetcher's cell, kept by the package store,
 * recorded.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "front/packages/fetcher.h"
#include "front/packages/install_int.h"
#include "front/packages/packages.h"
#include "front/sandbox/sandboxes.h"

#define FILES_LIMIT 200000u

/* ---- the package store --------------------------------------------------------------------- */

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

/* ---- the cell ------------------------------------------------------------------------------ */

static struct install *of_pack(struct cell_command *job)
{
	return (struct install *)((char *)job - offsetof(struct install, pack));
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

static void on_in(struct entry *en, struct cell *r)
{
	struct install *in = en->arg;
	struct err e = { 0 };

	in->cell = r;
	in->pack = (struct cell_command){ .started = on_pack_started, .failed = on_pack_failed };
	if (cell_pack(r, &in->pack, FETCHER_SITE, 0, &e) < 0)
		install_fail_text(in, REFUSAL_UNAVAILABLE, "install_failed", NULL,
				  "the fetcher's cell is over");
}

static void on_refused(struct entry *en, const struct refusal *why)
{
	install_fail(en->arg, why);
}

static void on_gone(struct entry *en, const struct cell_usage *u)
{
	struct install *in = en->arg;

	in->cell = NULL;
	if (u->end == CELL_END_MEMORY)
		install_fail_text(in, REFUSAL_TOO_LARGE, "package_too_big",
				  "the operator's limit: --package-size",
				  "'%.60s' needed more memory than the fetcher's cell has",
				  in->first);
	else
		install_fail_text(in, REFUSAL_UNAVAILABLE, "install_failed", NULL,
				  "the fetcher's cell ended");
}

void install_keep(struct install *in)
{
	struct sandbox *s = in->command.entry.sandbox;

	in->entry =
		(struct entry){ .in = on_in, .refused = on_refused, .gone = on_gone, .arg = in };
	if (s)
		sandbox_enter(s, &in->entry);
	else
		install_fail_text(in, REFUSAL_UNAVAILABLE, "install_failed", NULL,
				  "the fetcher's cell is over");
}

void install_keep_stop(struct install *in)
{
	service_link_forget(&in->packages->store, &in->call.call);
	if (in->cell)
		cell_forget(in->cell, &in->pack);
	in->cell = NULL;
	sandbox_leave(&in->entry);
}
