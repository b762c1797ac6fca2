/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - A finished tree goes from the fetcher's cell to the package store.
 *
 * The cell's pid 1 packs it; the package store reads what it writes, from a descriptor that is only
 * passed on here.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "cell/spec.h"
#include "client/files_client.h"
#include "front/packages/fetcher.h"
#include "front/packages/install_int.h"
#include "front/packages/packages.h"
#include "front/support/front.h"

#define FILES_LIMIT 200000u

static void on_stored(struct package_store_call *c, const struct package_store_reply *r)
{
	struct install *in = c->arg;

	if (in->ended)
		return;
	if (r->code == 0) {
		in->tree = trees_add(in->f, in, r);
		packages_tidy_soon(in->f);
		if (in->tree)
			install_end(in);
		else
			install_fail_text(in, 503, "install_failed", NULL,
					  "the packages could not be remembered");
	} else if (r->code == -EFBIG) {
		install_fail_text(in, 413, "package_too_big",
				  "the operator's limit: --package-size",
				  "the packages are too big: %s", r->msg);
	} else if (r->code == -EPERM || r->code == -EBADMSG || r->code == -EEXIST) {
		install_fail_text(in, 422, "invalid_package", NULL, "the packages are refused: %s",
				  r->msg);
	} else {
		install_fail_text(in, 503, "install_failed", NULL,
				  "the packages could not be kept: %s", r->msg);
	}
}

static void on_pack_started(struct cell_command *job, int pid, int *fds, size_t n_fds)
{
	struct install *in = (struct install *)((char *)job - offsetof(struct install, pack));
	struct package_store_req q = { .op = PACKAGE_STORE_STORE,
				       .max_bytes = in->f->config.package_size,
				       .max_files = FILES_LIMIT };

	(void)pid;
	in->call.fn = on_stored;
	in->call.arg = in;
	if (n_fds != 2 || package_store_ask(&in->f->packages->store, &in->call, &q, fds[1]) < 0)
		install_fail_text(in, 503, "install_failed", "see the daemon's log",
				  "the package store does not answer");
}

static void on_pack_failed(struct cell_command *job, const struct init_failed *f)
{
	struct install *in = (struct install *)((char *)job - offsetof(struct install, pack));

	install_fail_text(in, 503, "install_failed", NULL, "the packages could not be packed: %s",
			  strerror(f->error));
}

/* How it ended the package store hears, at the end of the pipe. */
static void on_pack_exited(struct cell_command *job, const struct init_exited *x)
{
	(void)job;
	(void)x;
}

void pack_begin(struct install *in)
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
		install_fail_text(in, 503, "install_failed", NULL, "the fetcher's cell is over");
}
