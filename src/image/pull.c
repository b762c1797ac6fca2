/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull.c - `caisson image pull`: manifest, configuration, layers; then all of it gets its names at
 * once.
 *
 * Theory of operation. A process that has no rights talks to the registry (fetch.h); this one tells
 * it which layers to load, and gives it the files. The configuration comes before the layers,
 * because it has the digests of the unpacked layers: a layer that the store has under such a digest
 * is not loaded. The others are loaded, LOADS_MAX at a time, into files of the store, which a later
 * pull continues if this one ends. A layer is unpacked as soon as its file is complete, while
 * others are still loading, with as many unpackers at once as there are processors. One thread
 * waits for the reports of all of these processes together.
 */
#include "image/incoming.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/fetch.h"
#include "image/registry_creds.h"
#include "image/verbs.h"

#define LOADS_MAX 3
#define STEP_MS 100

struct pull_layer {
	enum show_state state;
	int file;
	uint64_t have;
};

struct pull {
	struct incoming in;
	struct fetch fetch;
	struct pull_layer *layers;
};

/* ---- layers -------------------------------------------------------------------------------- */

static void plan_layers(struct pull *p)
{
	for (size_t i = 0; i < p->in.m.n_layers; i++) {
		p->layers[i].file = -1;
		if (incoming_has(&p->in, i)) {
			p->layers[i].state = SHOW_HERE;
			p->layers[i].have = p->in.m.layers[i].size;
			show_row(p->in.show, i, SHOW_HERE, p->in.m.layers[i].size);
		}
	}
}

static int begin_load(struct pull *p, size_t i, struct err *e)
{
	struct pull_layer *l = &p->layers[i];

	l->file = store_part_open(p->in.s, p->in.m.layers[i].digest, e);
	if (l->file < 0)
		return l->file;
	l->state = SHOW_LOADS;
	return fetch_layer(&p->fetch, i, l->file, e);
}

/* One reply of the process that loads. */
static int hear(struct pull *p, struct err *e)
{
	static struct image_fetch_reply r;
	int code = fetch_hear(&p->fetch, &r, e);
	struct pull_layer *l = r.layer < p->in.m.n_layers ? &p->layers[r.layer] : NULL;

	if (l && l->state == SHOW_LOADS && (code == -EBADMSG || code == -EFBIG))
		store_part_drop(p->in.s, p->in.m.layers[r.layer].digest);
	if (code < 0)
		return code;
	if (!l || l->state != SHOW_LOADS || r.have > p->in.m.layers[r.layer].size)
		return err_say(e, -EPROTO, "a layer that was not asked for was loaded");
	l->have = r.have;
	if (r.say != IMAGE_FETCH_LOADED)
		return 0;
	p->in.ret->bytes += r.have - (r.had < r.have ? r.had : r.have);
	l->state = SHOW_LOADED;
	return 0;
}

static int begin_unpack(struct pull *p, size_t i, struct err *e)
{
	int r = incoming_begin(&p->in, i, p->layers[i].file, e);

	if (r == 0)
		p->layers[i].state = SHOW_UNPACKS;
	return r;
}

static int end_unpack(struct pull *p, size_t i, struct err *e)
{
	struct pull_layer *l = &p->layers[i];
	int r = incoming_end(&p->in, i, e);

	if (r < 0) {
		store_part_drop(p->in.s, p->in.m.layers[i].digest);
		return r;
	}
	l->file = fd_close(l->file);
	l->state = SHOW_DONE;
	return 0;
}

static size_t count(const struct pull *p, enum show_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < p->in.m.n_layers; i++)
		n += p->layers[i].state == state;
	return n;
}

/* Begin as many loads and unpackers as may run at once. */
static int begin_some(struct pull *p, struct err *e)
{
	size_t unpackers = get_nprocs() > 1 ? (size_t)get_nprocs() : 1;
	int r = 0;

	for (size_t i = 0; i < p->in.m.n_layers && r == 0; i++) {
		enum show_state state = p->layers[i].state;

		if (state == SHOW_WAITS && count(p, SHOW_LOADS) < LOADS_MAX)
			r = begin_load(p, i, e);
		else if (state == SHOW_LOADED && count(p, SHOW_UNPACKS) < unpackers)
			r = begin_unpack(p, i, e);
	}
	return r;
}

/* Wait for loads and unpackers that run, and take the results of those that ended. */
static int step(struct pull *p, struct err *e)
{
	struct pollfd all[1 + IMAGE_LAYERS_MAX] = { { .fd = p->fetch.sock, .events = POLLIN } };
	size_t of[IMAGE_LAYERS_MAX];
	nfds_t n = 1;
	int r = 0;

	for (size_t i = 0; i < p->in.m.n_layers; i++)
		if (p->layers[i].state == SHOW_UNPACKS) {
			of[n - 1] = i;
			all[n++] = (struct pollfd){ .fd = p->in.layers[i].job.files.report,
						    .events = POLLIN };
		}
	if (poll(all, n, STEP_MS) < 0 && errno != EINTR)
		return err_set(e, -errno, "wait for layers");
	for (nfds_t k = 1; k < n && r == 0; k++)
		if (all[k].revents)
			r = end_unpack(p, of[k - 1], e);
	/* When everything is loaded it may well end. */
	if (r == 0 && all[0].revents && count(p, SHOW_LOADS) > 0)
		r = hear(p, e);
	for (size_t i = 0; i < p->in.m.n_layers; i++)
		show_row(p->in.show, i, p->layers[i].state, p->layers[i].have);
	show_tick(p->in.show);
	return r;
}

static int get_layers(struct pull *p, struct err *e)
{
	size_t n = p->in.m.n_layers;
	int r = 0;

	p->layers = calloc(n, sizeof(*p->layers));
	if (!p->layers)
		return err_set(e, -ENOMEM, "pull an image");
	plan_layers(p);
	while (r == 0 && count(p, SHOW_DONE) + count(p, SHOW_HERE) < n) {
		r = begin_some(p, e);
		if (r == 0)
			r = step(p, e);
	}
	return r;
}

static void free_layers(struct pull *p)
{
	for (size_t i = 0; p->layers && i < p->in.m.n_layers; i++)
		fd_close(p->layers[i].file);
	free(p->layers);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void drop_parts(const struct pull *p)
{
	for (size_t i = 0; i < p->in.m.n_layers; i++)
		store_part_drop(p->in.s, p->in.m.layers[i].digest);
}

/* That something is missing or refused is said of registries alone, by these two numbers. */
static int fail_here(struct err *e)
{
	if (e->code == -EACCES || e->code == -ENOENT)
		e->code = -EIO;
	return e->code;
}

static int pull_all(struct pull *p, const struct ref *ref, const struct image_options *o,
		    struct err *e)
{
	struct creds creds = { 0 };
	bool ready = creds_find(ref->host, o->authfile, &creds, e) == 0 &&
		     fetch_start(&p->fetch, o->ca, o->insecure, e) == 0;
	int r = ready ? fetch_image(&p->fetch, ref, &creds, &p->in, e) : fail_here(e);

	explicit_bzero(&creds, sizeof(creds));
	if (r < 0 || (r = get_layers(p, e)) < 0)
		return r;
	/* Everything is unpacked: the archives need not be synced to the disk. */
	drop_parts(p);
	return incoming_publish(&p->in, e);
}

/* On failure the store is as it was, except that archives of layers that were begun are kept, for
 * another try. */
int verb_pull(const struct image_options *o, struct store *s, struct err *e)
{
	struct incoming_result result;
	struct pull p = { .fetch = FETCH_NONE };
	struct show show;
	struct ref ref;
	char text[IMAGE_REF_MAX + 16];
	int r;

	if ((r = ref_parse(o->rest[0], &ref, e)) < 0 || (r = image_allowed(o->allow, &ref, e)) < 0)
		return r;
	if (image_change(o, s, e) < 0)
		return fail_here(e);
	show_begin(&show, o->json, o->quiet);
	(void)snprintf(text, sizeof(text), "pulling %s", o->rest[0]);
	show_step(&show, "pulling", text);
	incoming_init(&p.in, s, &show, &result);
	ref_format(&ref, result.ref);
	r = pull_all(&p, &ref, o, e);
	fetch_end(&p.fetch);
	free_layers(&p);
	/* Archives that were loaded are for the next try, unless they are what fills the disk. */
	if (r == -ENOSPC || r == -EDQUOT)
		drop_parts(&p);
	incoming_free(&p.in);
	if (r == 0)
		image_done(o, &result);
	return r;
}
