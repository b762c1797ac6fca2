/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packages.c - The start, the removal of old trees, and what kernels and commands can import.
 *
 * A kernel learns of new packages before the code that follows runs (packages_tell()), a command by
 * variables of its environment (packages_env()). The newest tree of a sandbox comes first, and
 * programs of packages come after those of the image.
 */
#include "front/packages/packages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "cell/spec.h"
#include "front/cell/cell.h"
#include "front/cell/image_use.h"
#include "front/gate/index_hosts.h"
#include "front/packages/closure.h"
#include "front/packages/tools.h"
#include "front/sandbox/hooks.h"
#include "front/sandbox/sandbox.h"
#include "front/sandbox/sandboxes.h"
#include "front/support/json_alloc.h"
#include "front/support/log.h"

#define TIDY_MAX_MS (600 * UINT64_C(1000))
#define TIDY_MIN_MS UINT64_C(1000)
#define MESSAGE_MAX (1u << 20)
#define PINS_MAX (4u << 20)

struct packages *packages_of(const struct sandbox *s)
{
	return s->sandboxes->hooks->packages.part;
}

bool packages_on(const struct packages *packages)
{
	return packages->store_fd >= 0;
}

/* ---- the start ----------------------------------------------------------------------------- */

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

static int load_pins(struct packages *packages, struct err *e)
{
	_mem_ char *text = NULL;
	const char *path = packages->daemon->config.package_pins;
	ssize_t n;

	if (!path)
		return 0;
	text = malloc(PINS_MAX);
	packages->pins = json_object();
	if (!text || !packages->pins)
		return err_set(e, -ENOMEM, "--package-pins");
	n = fd_read_file(AT_FDCWD, path, text, PINS_MAX);
	if (n < 0)
		return err_set(e, (int)n, "--package-pins %s", path);
	return parse_pins(text, packages->pins, e) < 0 ? err_wrap(e, "--package-pins %s", path) : 0;
}

int packages_open(struct packages *p, struct err *e)
{
	const struct config *c = &p->daemon->config;

	p->store_fd = p->dir_fd = p->store.watch.fd = -1;
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
	if (load_pins(p, e) < 0)
		return e->code;
	p->store_fd = package_store_open(&p->store, c->state, e);
	return p->store_fd < 0 ? p->store_fd : tools_put(p->store_fd, c->state, e);
}

void packages_tidy_soon(struct packages *packages)
{
	struct timer *t = &packages->tidy;
	uint64_t soon = packages->loop->now_ns + TIDY_MIN_MS * CLOCK_NS_PER_MS;

	if (!t->loop || t->at_ns > soon) /* frequent calls do not put it off */
		timer_set(packages->loop, t, soon);
}

/* Every quarter of --package-keep, within bounds. */
static void on_tidy(struct timer *t)
{
	struct packages *packages = t->arg;
	uint64_t ms = packages->daemon->config.package_keep_ms / 4;

	trees_tidy(packages);
	ms = ms < TIDY_MIN_MS ? TIDY_MIN_MS : ms > TIDY_MAX_MS ? TIDY_MAX_MS : ms;
	timer_after(packages->loop, t, ms * CLOCK_NS_PER_MS);
}

/* Sandboxes of the former front that have ended since. */
static void drop_dead_users(struct packages *packages)
{
	for (const struct tree_use *u = packages->trees.uses; u;) {
		const struct sandbox *s = packages->sandboxes->first;
		char id[TREE_HOLDER_MAX];

		while (s && strcmp(s->id, u->holder + 2) != 0)
			s = s->next;
		if (s || u->holder[0] != 's') {
			u = u->next;
			continue;
		}
		(void)snprintf(id, sizeof(id), "%s", u->holder + 2);
		(void)trees_leave(packages, id);
		u = packages->trees.uses; /* others may have gone with it */
	}
}

static const char *url_of(const struct config *c, enum ecosystem eco)
{
	return eco == ECO_PYTHON ? c->pip_index : c->npm_registry;
}

/* Where packages come from, and who named that index. */
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

void packages_health(const struct packages *packages, struct json *j)
{
	json_object_begin(j);
	for (int eco = 0; eco < ECO_MAX_; eco++) {
		const char *url = url_of(&packages->daemon->config, (enum ecosystem)eco);

		json_key(j, ecosystem_name((enum ecosystem)eco));
		json_object_begin(j);
		json_member_str(j, "index", url ? url : "none");
		if (packages->daemon->config.index_from[eco])
			json_member_str(j, "from", packages->daemon->config.index_from[eco]);
		if (packages->daemon->config.index_note[eco])
			json_member_str(j, "note", packages->daemon->config.index_note[eco]);
		json_object_end(j);
	}
	json_object_end(j);
}

int packages_start(struct packages *packages, struct err *e)
{
	log_indexes(&packages->daemon->config);
	if (!packages_on(packages))
		return 0;
	if (trees_load(packages, e) < 0 ||
	    service_link_start(&packages->store, packages->loop, e) < 0)
		return err_wrap(e, "packages");
	drop_dead_users(packages);
	packages->tidy.fn = on_tidy;
	packages->tidy.arg = packages;
	packages_tidy_soon(packages);
	return 0;
}

void packages_left(struct packages *packages, const struct sandbox *s)
{
	if (packages_on(packages) && trees_leave(packages, s->id))
		packages_tidy_soon(packages);
}

/* ---- what sandboxes can import ------------------------------------------------------------- */

static const char *const modules[ECO_MAX_] = {
	[ECO_PYTHON] = "", [ECO_JAVASCRIPT] = "/node_modules"
};
static const char *const programs[ECO_MAX_] = {
	[ECO_PYTHON] = "/bin", [ECO_JAVASCRIPT] = "/node_modules/.bin"
};

/* A new array. @eco: of that language; ECO_MAX_: of all. */
static json_t *paths_of(const struct sandbox *s, enum ecosystem eco, const char *const *below)
{
	const struct tree_use *at = NULL;
	const struct tree *t;
	json_t *paths = json_array();

	while ((t = trees_next(packages_of(s), s, &at))) {
		char path[128];

		if (eco != ECO_MAX_ && t->eco != eco)
			continue;
		(void)snprintf(path, sizeof(path), PACKAGES_PATH "/%s%s", t->key, below[t->eco]);
		(void)json_array_append_new(paths, json_string(path));
	}
	return paths;
}

json_t *packages_paths(const struct sandbox *s, enum ecosystem eco)
{
	return paths_of(s, eco, modules);
}

/* Takes @paths. @first: before them; @last: after them. */
static void put_joined(json_t *env, const char *name, const char *first, json_t *paths,
		       const char *last)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_MAX);
	size_t i;
	json_t *path;

	(void)buf_puts(&b, first);
	json_array_foreach(paths, i, path)
	{
		(void)buf_printf(&b, "%s%s", b.len ? ":" : "", json_string_value(path));
	}
	if (last && last[0])
		(void)buf_printf(&b, ":%s", last);
	if (json_array_size(paths) > 0 && !b.err)
		(void)json_object_set_new(env, name, json_string(buf_str(&b)));
	json_decref(paths);
}

/* Programs of packages come last in PATH: none of them replaces one of the image. */
json_t *packages_env(const struct sandbox *s)
{
	const struct tree_use *at = NULL;
	json_t *env;

	if (!packages_on(packages_of(s)) || s->spec.fetcher || !trees_next(packages_of(s), s, &at))
		return NULL;
	const json_t *own = s->image->env;
	const char *path = json_string_value(json_object_get(own, "PATH"));

	env = json_object();
	put_joined(env, "PYTHONPATH", CELL_TOOLS_PYTHONPATH, paths_of(s, ECO_PYTHON, modules),
		   json_string_value(json_object_get(own, "PYTHONPATH")));
	put_joined(env, "NODE_PATH", "", paths_of(s, ECO_JAVASCRIPT, modules),
		   json_string_value(json_object_get(own, "NODE_PATH")));
	put_joined(env, "PATH", path ? path : CELL_TOOLS_PATH(CELL_PATH),
		   paths_of(s, ECO_MAX_, programs), NULL);
	return env;
}

void packages_send(struct kernel *kernel, json_t *message)
{
	_buf_ struct buf b = BUF_INIT(MESSAGE_MAX);
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

	if (text) {
		(void)buf_puts(&b, text);
		kernel_pipes_send(&kernel->pipes, &b);
	}
	json_alloc_free(text);
	json_decref(message);
}

void packages_tell(struct sandbox *s, struct kernel *kernel)
{
	enum ecosystem eco = kernel->language->id == LANG_JAVASCRIPT ? ECO_JAVASCRIPT : ECO_PYTHON;
	bool first = kernel->packages == 0;
	json_t *env;

	if (!packages_on(packages_of(s)))
		return;
	trees_touch(s);
	if (kernel->packages == packages_of(s)->trees.changes)
		return;
	kernel->packages = packages_of(s)->trees.changes;
	env = packages_env(s);
	if (!env && first)
		return;
	packages_send(kernel,
		      json_pack("{s:s, s:o, s:o}", "type", "packages", "paths",
				paths_of(s, eco, modules), "env", env ? env : json_object()));
}

/* Names of packages of each language. */
struct names {
	json_t *of[ECO_MAX_];
};

static struct names names_new(void)
{
	struct names n;

	for (int eco = 0; eco < ECO_MAX_; eco++)
		n.of[eco] = json_object();
	return n;
}

static void names_free(struct names *n)
{
	for (int eco = 0; eco < ECO_MAX_; eco++)
		json_decref(n->of[eco]);
}

/* The packages of @t that were installed, or those of its image. */
static void names_add(struct names *n, const struct tree *t, bool of_image)
{
	size_t i;
	json_t *p;

	json_array_foreach(t->packages, i, p)
	{
		if (closure_of_image(p) == of_image)
			(void)json_object_set_new(n->of[t->eco], closure_text(p, "name"),
						  json_true());
	}
}

static bool names_have(const struct names *n, const struct tree *t, const json_t *p)
{
	return json_object_get(n->of[t->eco], closure_text(p, "name")) != NULL;
}

static void package_json(const struct tree *t, const json_t *p, bool active, struct json *j)
{
	json_object_begin(j);
	closure_members(p, j);
	json_member_str(j, "language", ecosystem_name(t->eco));
	json_member_str(j, "request", t->request);
	json_member_bool(j, "active", active);
	json_object_end(j);
}

/*
 * Code imports an installed package from the newest tree that has it, and one of the image where no
 * tree has another: every tree comes before the image. The image's are listed once.
 */
void packages_json(const struct sandbox *s, struct json *j)
{
	struct names any = names_new(), newer = names_new(), listed = names_new();
	const struct tree_use *at = NULL;
	const struct tree *t;
	size_t i;
	json_t *p;

	while ((t = trees_next(packages_of(s), s, &at)))
		names_add(&any, t, false);
	json_array_begin(j);
	for (at = NULL; (t = trees_next(packages_of(s), s, &at));) {
		json_array_foreach(t->packages, i, p)
		{
			bool image = closure_of_image(p);

			if (!image || !names_have(&listed, t, p))
				package_json(t, p, !names_have(image ? &any : &newer, t, p), j);
		}
		names_add(&newer, t, false);
		names_add(&listed, t, true);
	}
	json_array_end(j);
	names_free(&any);
	names_free(&newer);
	names_free(&listed);
}

size_t packages_mounts(const struct packages *p, bool fetcher, struct cell_spec *spec, int *fds)
{
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
