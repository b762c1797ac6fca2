/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_use.c - Images in use: find, open, hold, close.
 *
 * Theory of operation. To open an image, the front waits for the image opener. It does so only for
 * an image that is not in use yet, or whose name was not looked up for CHECK_NS, and the opener
 * reads a few files, which takes as long as one write to the daemon's store. The opener sends
 * descriptors and text; from then on cells of the image are made as those of the daemon's own
 * image.
 *
 * A name may mean another image after it was pulled again. Existing sandboxes keep their image, and
 * new ones get the new image: the old entry is stale, and is removed with its last holder.
 */
#include "front/cell/image_use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "cell/spec.h"
#include "client/image_opener_client.h"
#include "front/cell/cells.h"
#include "front/support/log.h"
#include "front/support/refusal.h"
#include "image/ref.h"

#define CHECK_NS (5 * CLOCK_NS_PER_S)
#define IDLE_NS (300 * CLOCK_NS_PER_S)
#define TICK_NS (1 * CLOCK_NS_PER_S)
#define OTHERS_MAX 13u /* images in use beside the daemon's own: each keeps cells ready */

_Static_assert(IMAGE_REF_MAX <= IMAGE_OPENER_REF_MAX, "a canonical reference fits");

/* ---- the content of an image --------------------------------------------------------------- */

_Static_assert(LANG_MAX_ <= IMAGE_OPENER_PROGRAMS_MAX, "all in one request");

static const char *const *program_names(void)
{
	static const char *names[LANG_MAX_ + 1];

	for (size_t i = 0; i < LANG_MAX_; i++)
		names[i] = languages[i].program;
	return names;
}

/* Whether the cell itself sets this variable. */
static bool is_ours(const char *kv)
{
	static const char *const ours[] = { "HOME=", "USER=", "LOGNAME=" };

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strncmp(kv, ours[i], strlen(ours[i])) == 0)
			return true;
	return false;
}

/* The daemon's own programs beside those of the image. */
static void add_tools(json_t *env)
{
	const char *path = json_string_value(json_object_get(env, "PATH"));
	const char *modules = json_string_value(json_object_get(env, "PYTHONPATH"));
	const char *node = json_string_value(json_object_get(env, "NODE_OPTIONS"));

	if (path)
		(void)json_object_set_new(env, "PATH", json_sprintf(CELL_TOOLS_PATH("%s"), path));
	if (modules)
		(void)json_object_set_new(env, "PYTHONPATH",
					  json_sprintf(CELL_TOOLS_PYTHONPATH ":%s", modules));
	if (node)
		(void)json_object_set_new(env, "NODE_OPTIONS",
					  json_sprintf(CELL_NODE_REQUIRE " %s", node));
}

static json_t *take_env(const struct loan *l)
{
	json_t *env = json_object();
	size_t at = 0;

	(void)loan_string(l, &at); /* the working directory: kernels have their own */
	for (uint32_t i = 0; i < l->reply.n_env; i++) {
		const char *kv = loan_string(l, &at), *eq = kv ? strchr(kv, '=') : NULL;
		char name[256];

		if (!eq || eq == kv || is_ours(kv) || (size_t)(eq - kv) >= sizeof(name))
			continue;
		memcpy(name, kv, (size_t)(eq - kv));
		name[eq - kv] = '\0';
		(void)json_object_set_new(env, name, json_string(eq + 1));
	}
	add_tools(env);
	return env;
}

void image_spec(const struct image_use *g, struct cell_spec *spec)
{
	spec->image = g->kind;
	spec->n_layers = g->n_layers;
}

const char *image_key(const struct image_use *g)
{
	return g->digest[0] ? g->digest : g->name;
}

void image_languages(const struct image_use *g, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < LANG_MAX_; i++)
		if (g->has_language[i] && at < size)
			at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "",
					       languages[i].name);
}

/* ---- life of an image ---------------------------------------------------------------------- */

static void on_zygote_change(struct zygote_supply *n)
{
	pool_poke(&n->image->pool);
}

static void begin(struct image_use *g)
{
	g->supply.on_change = on_zygote_change;
	/* The pool first: starting the supply may already report a failure to it. */
	pool_start(&g->pool, g);
	zygote_supply_start(&g->supply, g);
}

static void let_go(struct image_use *g)
{
	for (size_t i = 0; i < g->n_fds; i++)
		g->fds[i] = fd_close(g->fds[i]);
	g->n_fds = 0;
	json_decref(g->env);
	g->env = NULL;
}

static void finish(struct image_use *g)
{
	if (g->ending)
		return;
	g->ending = true;
	log_event(LOG_LEVEL_INFO, "image_end", F_STR("image", g->name), F_STR("digest", g->digest));
	pool_stop(&g->pool);
	zygote_supply_retire(&g->supply);
}

/* Whether an image that ends may be removed: cells that are being made have to be done first. */
static bool is_over(const struct image_use *g)
{
	return g->ending && pool_quiet(&g->pool);
}

static void on_tick(struct timer *t)
{
	struct cells *cells = t->arg;
	uint64_t now = cells->loop->now_ns;

	for (struct image_use **at = &cells->images->others; *at;) {
		struct image_use *g = *at;

		if (g->holders == 0 && (g->stale || now - g->used_ns > IDLE_NS))
			finish(g);
		if (!is_over(g)) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		let_go(g);
		free(g);
	}
	if (cells->images->others)
		timer_set(cells->loop, t, now + TICK_NS);
}

/*
 * At OTHERS_MAX images, close the one that was unused for longest. If all are in use, one more is
 * opened.
 */
static void make_room(struct cells *cells)
{
	struct image_use *oldest = NULL;
	size_t n = 0;

	for (struct image_use *g = cells->images->others; g; g = g->next) {
		n += !g->ending;
		if (!g->ending && g->holders == 0 && (!oldest || g->used_ns < oldest->used_ns))
			oldest = g;
	}
	if (n >= OTHERS_MAX && oldest)
		finish(oldest);
}

static void adopt_loan(struct image_use *g, struct loan *l)
{
	const struct image_opener_reply *r = &l->reply;

	(void)snprintf(g->name, sizeof(g->name), "%s", r->ref);
	(void)snprintf(g->digest, sizeof(g->digest), "%s", r->digest);
	g->kind = CELL_IMAGE_LAYERS;
	g->n_layers = r->n_layers;
	g->n_fds = l->n_fds;
	memcpy(g->fds, l->fds, l->n_fds * sizeof(int));
	l->n_fds = 0;
	g->env = take_env(l);
	for (size_t i = 0; i < LANG_MAX_; i++)
		g->has_language[i] = r->found & 1u << i;
}

/* ---- finding ------------------------------------------------------------------------------- */

int image_name(const struct cells *cells, const char *text, char ret[IMAGE_OPENER_REF_MAX],
	       struct err *e)
{
	struct ref ref;

	ret[0] = '\0';
	if (strcmp(text, cells->daemon->config.image) == 0 ||
	    strcmp(text, cells->images->own.name) == 0)
		return 0;
	if (strcmp(text, "host") == 0 || strncmp(text, "dir:", 4) == 0)
		return err_say(e, -EINVAL,
			       "only the daemon's own image (--image) can be of this kind");
	int r = ref_parse(text, &ref, e);

	if (r < 0)
		return r;
	ref_format(&ref, ret);
	if (strcmp(ret, cells->images->own.name) == 0)
		ret[0] = '\0';
	return 0;
}

static struct image_use *find(struct cells *cells, const char *name, const char *digest)
{
	for (struct image_use *g = cells->images->others; g; g = g->next)
		if (!g->ending && strcmp(g->name, name) == 0 &&
		    (digest ? strcmp(g->digest, digest) == 0 : !g->stale))
			return g;
	return NULL;
}

/* @l NULL: the image is not in the store any more. */
static struct image_use *add(struct cells *cells, const char *name, struct loan *l)
{
	struct image_use *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	make_room(cells);
	g->cells = cells;
	if (l)
		adopt_loan(g, l);
	g->lost = !l;
	(void)snprintf(g->name, sizeof(g->name), "%s", name);
	g->next = cells->images->others;
	cells->images->others = g;
	if (!cells->images->tick.loop)
		timer_after(cells->loop, &cells->images->tick, TICK_NS);
	log_event(LOG_LEVEL_INFO, "image_begin", F_STR("image", g->name),
		  F_STR("digest", g->digest), F_UINT("layers", g->n_layers));
	if (cells->images->started)
		begin(g);
	return g;
}

static struct image_use *refuse(struct refusal *r, enum refusal_kind kind, const char *code,
				const char *why)
{
	(void)refusal_set(r, kind, code, "image", NULL, "%.300s", why);
	if (kind == REFUSAL_UNAVAILABLE)
		r->retry_after_s = 1;
	else
		r->hint = "the operator brings images with: caisson image pull, or lets the daemon "
			  "pull them with --image-pull missing; without the field the daemon's own "
			  "is used";
	return NULL;
}

/* A reference by digest: the same name without its tag. */
static void by_digest(const char *name, const char *digest, char ret[IMAGE_OPENER_REF_MAX])
{
	struct ref ref;

	(void)snprintf(ret, IMAGE_OPENER_REF_MAX, "%s", name);
	if (ref_parse(name, &ref, NULL) < 0)
		return;
	ref.tag[0] = '\0';
	(void)snprintf(ref.digest, sizeof(ref.digest), "%s", digest);
	ref_format(&ref, ret);
}

/* @loan: static, because it is large. 0 or -errno. */
static int look_up(struct cells *cells, const char *name, const char *digest, struct loan *loan,
		   struct err *e)
{
	char ref[IMAGE_OPENER_REF_MAX];

	if (digest)
		by_digest(name, digest, ref);
	else
		(void)snprintf(ref, sizeof(ref), "%s", name);
	int r = image_opener_ask(cells->images->opener, ref, program_names(), loan, e);

	if (r == -EPIPE || r == -ETIMEDOUT || r == -EPROTO) {
		/* A late answer would be taken for that of the next request. */
		cells->images->opener = fd_close(cells->images->opener);
		log_event(LOG_LEVEL_ERROR, "image_opener_gone", F_STR("why", e->msg));
	}
	return r;
}

static struct image_use *borrow(struct cells *cells, const char *name, const char *digest,
				struct refusal *ret)
{
	static struct loan loan;
	struct err e = { 0 };

	if (look_up(cells, name, digest, &loan, &e) < 0)
		return refuse(ret, REFUSAL_INVALID, "image_unavailable", e.msg);
	struct image_use *was = find(cells, name, digest);

	if (was && strcmp(was->digest, loan.reply.digest) == 0) {
		loan_close(&loan);
		was->checked_ns = cells->loop->now_ns;
		return was;
	}
	if (was)
		was->stale = true;
	struct image_use *g = add(cells, name, &loan);

	loan_close(&loan);
	if (!g)
		return refuse(ret, REFUSAL_UNAVAILABLE, "out_of_memory",
			      "the daemon is out of memory");
	g->checked_ns = digest ? 0 : cells->loop->now_ns;
	return g;
}

bool image_missing(struct cells *cells, const char *name)
{
	static struct loan loan;
	struct err e = { 0 };

	if (!name[0] || find(cells, name, NULL))
		return false;
	int r = look_up(cells, name, NULL, &loan, &e);

	if (r == 0)
		loan_close(&loan);
	return r == -ENOENT;
}

struct image_use *image_get(struct cells *cells, const char *name, const char *digest,
			    struct refusal *ret)
{
	struct image_use *g = &cells->images->own;

	if (name[0]) {
		g = find(cells, name, digest);
		if (!g || (!digest && cells->loop->now_ns - g->checked_ns > CHECK_NS))
			g = borrow(cells, name, digest, ret);
	}
	if (g)
		image_hold(g);
	return g;
}

struct image_use *image_lost(struct cells *cells, const char *name, const char *digest)
{
	struct image_use *g = add(cells, name, NULL);

	if (!g)
		return NULL;
	(void)snprintf(g->digest, sizeof(g->digest), "%s", digest);
	memset(g->has_language, true, sizeof(g->has_language));
	g->stale = true;
	image_hold(g);
	return g;
}

void image_hold(struct image_use *g)
{
	g->holders++;
	g->used_ns = g->cells->loop->now_ns;
}

void image_release(struct image_use *g)
{
	g->holders--;
	g->used_ns = g->cells->loop->now_ns;
}

struct image_use *images_next(struct cells *cells, const struct image_use *g)
{
	if (!g)
		return &cells->images->own;
	return g == &cells->images->own ? cells->images->others : g->next;
}

/* ---- the daemon's own image ---------------------------------------------------------------- */

/*
 * Note which interpreters the image has. A symbolic link counts as an interpreter: only a start
 * shows whether its target is one.
 */
static void look_for_languages(struct image_use *g, int root)
{
	static const char *const dirs[] = { "usr/local/bin", "usr/bin", "bin" };
	char path[64];

	for (size_t i = 0; i < LANG_MAX_; i++)
		for (size_t d = 0; d < ARRAY_SIZE(dirs); d++) {
			(void)snprintf(path, sizeof(path), "%s/%s", dirs[d], languages[i].program);
			if (faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
				g->has_language[i] = true;
		}
}

static int open_dir(struct image_use *g, const char *path, struct err *e)
{
	g->kind = CELL_IMAGE_DIR;
	g->fds[0] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->fds[0] < 0)
		return err_set(e, -errno, "--image dir:%s", path);
	g->n_fds = 1;
	look_for_languages(g, g->fds[0]);
	return 0;
}

static int open_stored(struct cells *cells, struct image_use *g, struct err *e)
{
	static struct loan loan;
	int r = image_opener_ask(cells->images->opener, cells->daemon->config.image,
				 program_names(), &loan, e);

	if (r < 0)
		return err_wrap(e, "--image");
	adopt_loan(g, &loan);
	return 0;
}

int images_open(struct cells *cells, struct err *e)
{
	struct image_use *g = &cells->images->own;
	const char *image = cells->daemon->config.image;
	int r = image_opener_start(cells->daemon->config.image_store, NULL, e);

	if (r < 0)
		return r;
	cells->images->opener = r;
	cells->images->tick.fn = on_tick;
	cells->images->tick.arg = cells;
	g->cells = cells;
	g->kind = CELL_IMAGE_HOST;
	g->holders = 1;
	(void)snprintf(g->name, sizeof(g->name), "%s", image);
	if (strcmp(image, "host") == 0) {
		_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (root < 0)
			return err_set(e, -errno, "look for interpreters");
		look_for_languages(g, root);
		return 0;
	}
	return strncmp(image, "dir:", 4) == 0 ? open_dir(g, image + 4, e) :
						open_stored(cells, g, e);
}

void images_start(struct cells *cells)
{
	cells->images->started = true;
	for (struct image_use *g = NULL; (g = images_next(cells, g));)
		begin(g);
}

void images_stop(struct cells *cells)
{
	timer_cancel(&cells->images->tick);
	for (struct image_use *g = NULL; (g = images_next(cells, g));) {
		pool_stop(&g->pool);
		zygote_supply_stop(&g->supply);
	}
}
