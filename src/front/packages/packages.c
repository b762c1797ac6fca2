/* SPDX-License-Identifier: Apache-2.0 */
/* packages.c - Beginning, garbage, and what kernels and commands are told. */
#include "front/packages/packages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "cell/spec.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/gate/index_hosts.h"
#include "front/packages/fetcher.h"
#include "front/sandbox/sandbox.h"
#include "front/support/front.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"

#define TIDY_MAX_MS (600 * UINT64_C(1000))
#define TIDY_MIN_MS UINT64_C(1000)
#define MESSAGE_MAX (256u << 10)
#define PINS_MAX (4u << 20)

bool packages_on(const struct front *f)
{
	return f->packages->store_fd >= 0;
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* "name==version sha256:..." on each line; '#' begins a comment. */
static int parse_pins(char *text, json_t *ret, struct err *e)
{
	unsigned int number = 0;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *hash, *inner = NULL, *name;

		number++;
		line[strcspn(line, "#\r")] = '\0';
		name = strtok_r(line, " \t", &inner);
		hash = name ? strtok_r(NULL, " \t", &inner) : NULL;
		if (!name)
			continue;
		if (!hash || !strstr(name, "==") ||
		    json_object_set_new(ret, name, json_string(hash)) < 0)
			return err_say(e, -EINVAL,
				       "line %u: not of the form NAME==VERSION sha256:HASH",
				       number);
	}
	return 0;
}

static int load_pins(struct front *f, struct err *e)
{
	_mem_ char *text = NULL;
	const char *path = f->config.package_pins;
	ssize_t n;

	if (!path)
		return 0;
	text = malloc(PINS_MAX);
	f->packages->pins = json_object();
	if (!text || !f->packages->pins)
		return err_set(e, -ENOMEM, "--package-pins");
	n = fd_read_file(AT_FDCWD, path, text, PINS_MAX);
	if (n < 0)
		return err_set(e, (int)n, "--package-pins %s", path);
	return parse_pins(text, f->packages->pins, e) < 0 ? err_wrap(e, "--package-pins %s", path) :
							    0;
}

int packages_open(struct front *f, struct err *e)
{
	const struct config *c = &f->config;
	struct packages *p = f->packages;

	p->store_fd = p->dir_fd = p->store.link.watch.fd = -1;
	if (!c->pip_index && !c->npm_registry && !c->package_dir)
		return 0;
	if (c->package_dir) {
		p->dir_fd = open(c->package_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (p->dir_fd < 0)
			return err_set(e, -errno, "--package-dir %s", c->package_dir);
	}
	json_decref(index_hosts(c, e));
	if (e->code)
		return err_wrap(e, "the package index");
	if (load_pins(f, e) < 0)
		return e->code;
	p->store_fd = package_store_open(&p->store, c->state, e);
	return p->store_fd < 0 ? p->store_fd : 0;
}

void packages_tidy_soon(struct front *f)
{
	struct timer *t = &f->packages->tidy;
	uint64_t soon = f->loop.now_ns + TIDY_MIN_MS * CLOCK_NS_PER_MS;

	if (!t->loop || t->at_ns > soon) /* what goes on and on does not put it off */
		timer_set(&f->loop, t, soon);
}

/* As often as what is kept for so long is worth it. */
static void on_tidy(struct timer *t)
{
	struct front *f = t->arg;
	uint64_t ms = f->config.package_keep_ms / 4;

	trees_tidy(f);
	ms = ms < TIDY_MIN_MS ? TIDY_MIN_MS : ms > TIDY_MAX_MS ? TIDY_MAX_MS : ms;
	timer_set(&f->loop, t, f->loop.now_ns + ms * CLOCK_NS_PER_MS);
}

/* Users that ended while nobody looked: sandboxes that the front before us had, and that are no
 * more. */
static void drop_dead_users(struct front *f)
{
	bool again = true;

	while (again) {
		again = false;
		for (const struct tree_use *u = f->packages->trees.uses; u && !again; u = u->next) {
			const struct sandbox *s = f->sandboxes;

			if (u->holder[0] != 's')
				continue;
			while (s && strcmp(s->id, u->holder + 2) != 0)
				s = s->next;
			if (!s) {
				struct sandbox dead;

				(void)snprintf(dead.id, sizeof(dead.id), "%s", u->holder + 2);
				(void)trees_leave(f, &dead);
				again = true;
			}
		}
	}
}

static const char *url_of(const struct config *c, enum ecosystem eco)
{
	return eco == ECO_PYTHON ? c->pip_index : c->npm_registry;
}

/* Where packages come from, and who said so. */
static void log_indexes(const struct config *c)
{
	for (int eco = 0; eco < ECO_MAX_; eco++) {
		const char *url = url_of(c, (enum ecosystem)eco), *note = c->index_note[eco];
		const char *from = c->index_from[eco];

		log_event(note ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "package_index",
			  F_STR("language", ecosystem_name((enum ecosystem)eco)),
			  F_STR("index", url ? url : "none"), F_STR("from", from ? from : ""),
			  F_STR("note", note ? note : ""));
	}
}

void packages_health(const struct front *f, struct json *j)
{
	json_object_begin(j);
	for (int eco = 0; eco < ECO_MAX_; eco++) {
		const char *url = url_of(&f->config, (enum ecosystem)eco);

		json_key(j, ecosystem_name((enum ecosystem)eco));
		json_object_begin(j);
		json_member_str(j, "index", url ? url : "none");
		if (f->config.index_from[eco])
			json_member_str(j, "from", f->config.index_from[eco]);
		if (f->config.index_note[eco])
			json_member_str(j, "note", f->config.index_note[eco]);
		json_object_end(j);
	}
	json_object_end(j);
}

int packages_start(struct front *f, struct err *e)
{
	log_indexes(&f->config);
	if (!packages_on(f))
		return 0;
	if (trees_load(f, e) < 0 || package_store_start(&f->packages->store, &f->loop, e) < 0)
		return err_wrap(e, "packages");
	drop_dead_users(f);
	f->packages->tidy.fn = on_tidy;
	f->packages->tidy.arg = f;
	packages_tidy_soon(f);
	return 0;
}

void packages_left(struct front *f, const struct sandbox *s)
{
	if (packages_on(f) && trees_leave(f, s))
		packages_tidy_soon(f);
}

/* ---- what sandboxes are told --------------------------------------------------------------- */

static const char *const below[ECO_MAX_] = { [ECO_PYTHON] = "", [ECO_JAVASCRIPT] = "/node_modules" };
static const char *const programs[ECO_MAX_] = {
	[ECO_PYTHON] = "/bin", [ECO_JAVASCRIPT] = "/node_modules/.bin"
};

json_t *packages_paths(const struct sandbox *s, enum ecosystem eco)
{
	const struct tree_use *at = NULL;
	const struct tree *t;
	json_t *paths = json_array();

	while ((t = trees_next(s->f, s, &at))) {
		char path[128];

		if (t->eco != eco)
			continue;
		(void)snprintf(path, sizeof(path), PACKAGES_PATH "/%s%s", t->key, below[eco]);
		(void)json_array_append_new(paths, json_string(path));
	}
	return paths;
}

/* @first: before them; what the image has there comes after them. */
static void put_joined(json_t *env, const char *name, const char *first, const json_t *paths,
		       const char *last)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_MAX);
	size_t i;
	json_t *path;

	(void)buf_puts(&b, first);
	json_array_foreach((json_t *)paths, i, path)(void)
		buf_printf(&b, "%s%s", b.len ? ":" : "", json_string_value(path));
	if (last && last[0])
		(void)buf_printf(&b, ":%s", last);
	if (json_array_size(paths) > 0 && !b.err)
		(void)json_object_set_new(env, name, json_string(buf_str(&b)));
}

static const char *image_says(const struct sandbox *s, const char *name)
{
	return json_string_value(json_object_get(s->image->env, name));
}

/* Programs of packages come last: none of them stands in for one of the image. */
static void put_programs(json_t *env, const struct sandbox *s)
{
	const struct tree_use *at = NULL;
	const struct tree *t;
	json_t *paths = json_array();

	while ((t = trees_next(s->f, s, &at))) {
		char path[128];

		(void)snprintf(path, sizeof(path), PACKAGES_PATH "/%s%s", t->key, programs[t->eco]);
		(void)json_array_append_new(paths, json_string(path));
	}
	const char *path = image_says(s, "PATH");

	put_joined(env, "PATH", path ? path : CELL_PATH, paths, NULL);
	json_decref(paths);
}

json_t *packages_env(const struct sandbox *s)
{
	const struct tree_use *at = NULL;
	json_t *env, *paths;

	if (!packages_on(s->f) || s->spec.fetcher || !trees_next(s->f, s, &at))
		return NULL;
	env = json_object();
	paths = packages_paths(s, ECO_PYTHON);
	put_joined(env, "PYTHONPATH", "", paths, image_says(s, "PYTHONPATH"));
	json_decref(paths);
	paths = packages_paths(s, ECO_JAVASCRIPT);
	put_joined(env, "NODE_PATH", "", paths, image_says(s, "NODE_PATH"));
	json_decref(paths);
	put_programs(env, s);
	return env;
}

static void send(struct kernel *kernel, json_t *message)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_MAX);
	char *text = json_dumps(message, JSON_COMPACT);

	if (text)
		(void)buf_puts(&b, text);
	json_alloc_free(text);
	kernel_pipes_send(&kernel->pipes, &b);
}

void packages_tell(struct sandbox *s, struct kernel *kernel)
{
	enum ecosystem eco = kernel->language->id == LANG_JAVASCRIPT ? ECO_JAVASCRIPT : ECO_PYTHON;
	bool first = kernel->packages == 0;
	json_t *env, *message;

	if (!packages_on(s->f))
		return;
	trees_touch(s);
	if (kernel->packages == s->f->packages->trees.changes)
		return;
	kernel->packages = s->f->packages->trees.changes;
	env = packages_env(s);
	if (!env && first)
		return;
	message = json_pack("{s:s, s:o, s:o}", "type", "packages", "paths", packages_paths(s, eco),
			    "env", env ? env : json_object());
	if (message)
		send(kernel, message);
	json_decref(message);
}

void packages_json(const struct sandbox *s, struct json *j)
{
	const struct tree_use *at = NULL;
	const struct tree *t;
	size_t i;
	json_t *p;

	json_array_begin(j);
	while ((t = trees_next(s->f, s, &at)))
		json_array_foreach(t->packages, i, p)
		{
			json_object_begin(j);
			json_member_str(j, "name", json_string_value(json_object_get(p, "name")));
			json_member_str(j, "version",
					json_string_value(json_object_get(p, "version")));
			json_member_str(j, "hash", json_string_value(json_object_get(p, "hash")));
			json_member_bool(j, "built", json_is_true(json_object_get(p, "built")));
			json_member_str(j, "language", ecosystem_name(t->eco));
			json_object_end(j);
		}
	json_array_end(j);
}

size_t packages_mounts(const struct front *f, bool fetcher, struct cell_spec *spec, int *fds)
{
	const struct packages *p = f->packages;
	struct cell_mount *m = &spec->mounts[spec->n_mounts];
	int fd = fetcher ? p->dir_fd : p->store_fd;

	if (fd < 0)
		return 0;
	(void)snprintf(m->dst, sizeof(m->dst), "%s", fetcher ? PACKAGES_DIR : PACKAGES_PATH);
	m->flags = CELL_MOUNT_PLAIN;
	spec->n_mounts++;
	*fds = fd;
	return 1;
}
