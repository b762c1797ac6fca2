/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install.c - The beginning of an install: its request is taken, and admitted.
 *
 * Theory of operation. A program (src/guest/fetch) in a cell of its own resolves, downloads and
 * builds: a sandbox without a name, with limits of its own and the configured hosts as its only
 * network. It reports the packages that it would install, and goes on when the rules
 * (package_rules.h) permit them. When it is done, the cell's pid 1 packs the tree, and the package
 * store reads it from a descriptor that the front only passes on. So of all that a package brings
 * the front sees some lines of JSON, and treats them as data of the package's author.
 *
 * Each stage has a file, which hands the install on to the next: this one, fetcher.c,
 * fetch_output.c, install_keep.c, install_end.c. Every failure leads to the end, which ends the
 * cell, and with it everything that was fetched.
 */
#include "front/packages/install.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "front/cell/image_use.h"
#include "front/packages/fetcher.h"
#include "front/packages/install_int.h"
#include "front/packages/packages.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/metrics.h"
#include "front/support/name.h"
#include "ledger/ledger.h"

#define LINE_MAX_BYTES (4u << 20)
#define HOUR_NS (3600 * CLOCK_NS_PER_S)

/* ---- admission ----------------------------------------------------------------------------- */

static uint64_t hash_owner(const char *owner)
{
	uint64_t h = 1469598103934665603u;

	for (; *owner; owner++)
		h = (h ^ (unsigned char)*owner) * 1099511628211u;
	return h | 1;
}

/*
 * A table of fixed size, by a hash of the owner. A full table forgets the owner that began longest
 * ago: that owner may have more than allowed, and never less.
 */
static int count_fetch(struct packages *packages, const char *owner, struct refusal *why)
{
	uint64_t key = hash_owner(owner), now = packages->loop->now_ns;
	struct package_rate *r = NULL, *oldest = &packages->rates[0];

	for (size_t i = 0; i < PACKAGES_RATES; i++) {
		struct package_rate *at = &packages->rates[i];

		if (at->owner == key)
			r = at;
		if (at->since_ns < oldest->since_ns)
			oldest = at;
	}
	if (!r || now > r->since_ns + HOUR_NS) {
		r = r ? r : oldest;
		*r = (struct package_rate){ .owner = key, .since_ns = now };
	}
	if (r->n >= packages->daemon->config.package_rate) {
		(void)refusal_set(why, REFUSAL_TOO_MANY, "package_rate", "package",
				  "the operator's limit: --package-rate",
				  "too many packages were fetched for you in this hour");
		why->retry_after_s =
			(unsigned int)((r->since_ns + HOUR_NS - now) / CLOCK_NS_PER_S) + 1;
		return -1;
	}
	r->n++;
	return 0;
}

/* One owner leaves a place for the others. */
static bool has_share(const struct install *in)
{
	size_t own = 0;

	for (const struct install *at = in->packages->installs; at; at = at->next)
		own += at != in && !at->cached && strcmp(at->owner, in->owner) == 0;
	return own < INSTALL_FETCHES_MAX - 1;
}

static int admit(struct install *in, struct refusal *why)
{
	struct packages *packages = in->packages;
	struct err e = { 0 };

	if (in->image->lost)
		return refusal_set(why, REFUSAL_CONFLICT, "package_conflict", "package",
				   "the operator brings it back with: caisson image pull",
				   "the image of this sandbox, %.200s, is no longer in the store",
				   in->image->name);
	if (packages->daemon->draining || packages->store.watch.fd < 0)
		return refusal_set(why, REFUSAL_UNAVAILABLE, "draining", "package", NULL, "%s",
				   packages->daemon->draining ?
					   "the daemon is shutting down" :
					   "the package store is gone: restart the daemon");
	if (packages->n_installs >= INSTALL_FETCHES_MAX || !has_share(in)) {
		(void)refusal_set(why, REFUSAL_TOO_MANY, "packages_busy", "package", NULL,
				  "other packages are being fetched; try again");
		why->retry_after_s = 2;
		return -1;
	}
	if (count_fetch(packages, in->owner, why) < 0)
		return -1;
	if (ledger_record(packages->daemon->ledger, &e, "packages.begin", in->owner, in->sandbox,
			  L_STR("id", in->id), L_STR("image", image_key(in->image)),
			  L_STR("language", ecosystem_name(in->eco)),
			  L_STR("request", in->request)) < 0)
		return refusal_set(why, REFUSAL_UNAVAILABLE, "not_recorded", "package", NULL,
				   "the ledger cannot be written, so nothing is done");
	return 0;
}

/* ---- the beginning ------------------------------------------------------------------------- */

static struct install *make(struct packages *packages, const struct sandbox *s, const char *owner,
			    const struct install_request *q)
{
	struct install *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->packages = packages;
	in->image = s ? s->image : &packages->sandboxes->cells->images->own;
	image_hold(in->image);
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
	LIST_PUSH(packages->installs, in);
	return in;
}

static int fetch(struct install *in, struct refusal *why)
{
	if (admit(in, why) < 0 || fetcher_start(in, why) < 0)
		return -1;
	in->packages->n_installs++;
	return 0;
}

struct install *install_begin(struct packages *packages, struct sandbox *s, const char *owner,
			      const struct install_request *q, const struct install_ops *ops,
			      void *arg, struct refusal *why)
{
	struct install *in = make(packages, s, owner, q);

	if (!in) {
		(void)refusal_no_memory(why);
		return NULL;
	}
	in->ops = ops;
	in->arg = arg;
	if (install_take(in, q->requirements, q->version, why) < 0) {
		metric_package(why->kind == REFUSAL_FORBIDDEN ? "blocked" : "unsupported");
		install_free(in);
		return NULL;
	}
	if (install_beside(in, s, why) < 0) {
		install_free(in);
		return NULL;
	}
	in->tree = trees_find(in, s);
	in->cached = in->tree != NULL;
	if (in->cached) {
		install_end(in);
	} else if (fetch(in, why) < 0) {
		metric_package("failed");
		install_free(in);
		return NULL;
	}
	return in;
}

/* ---- afterwards ---------------------------------------------------------------------------- */

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
