/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetcher.c - The limits, the network and the task of the fetcher's cell.
 *
 * The writable layer lives in memory. It holds downloads, builds and the installed tree, so it is
 * several times as large as a tree may be, and compilers need memory besides.
 *
 * The fetcher does not get the credentials of the index: its environment has placeholders, and the
 * gate puts the values into its requests to the index. So code of a package that runs there, or a
 * strange image, cannot read them.
 */
#include "front/packages/fetcher.h"

#include <jansson.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/embed.h"
#include "front/cell/command_line.h"
#include "front/cell/image_use.h"
#include "front/gate/index_hosts.h"
#include "front/packages/install_int.h"
#include "front/packages/packages.h"
#include "front/policy/egress_rules.h"
#include "front/sandbox/sandboxes.h"
#include "front/secrets/secrets.h"
#include "front/secrets/trust.h"
#include "front/spec/sandbox_spec.h"
#include "front/support/json_alloc.h"
#include "front/support/refusal.h"
#include "vault/index.h"

extern const struct embed_file fetch_files[];

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

_Static_assert(ECO_PYTHON == (int)INDEX_PIP && ECO_JAVASCRIPT == (int)INDEX_NPM,
	       "each ecosystem has its index");

/* ---- the index ----------------------------------------------------------------------------- */

/* The secrets that the gate puts into requests to the index, as a spec names them; NULL: none. */
static json_t *keys_of(const struct packages *packages, enum ecosystem eco,
		       const struct index_url *u)
{
	json_t *list = NULL;

	for (int k = 0; k < INDEX_KEYS; k++) {
		const char *name = index_key_name((enum index_kind)eco, (enum index_key)k);
		char use[VAULT_NAME_MAX + VAULT_HOST_MAX + 2];

		if (!vault_find(&packages->secrets->vault, name, NULL))
			continue;
		(void)snprintf(use, sizeof(use), "%s@%s", name, u->name);
		list = list ? list : json_array();
		(void)json_array_append_new(list, json_string(use));
	}
	return list;
}

/*
 * Where the gate puts credentials in, it lets requests through that read and no others: a build
 * must not publish with them. It also ends TLS for an index at an address, whose certificate is not
 * for the name that cells know.
 */
static bool is_looked_into(const struct index_url *u, const json_t *keys)
{
	return keys || (u->secure && u->is_address);
}

/* ---- the cell ------------------------------------------------------------------------------ */

static void set_network(const struct install *in, struct sandbox_spec *ret)
{
	json_t *said = json_array();
	struct index_url u;

	if (index_of(&in->packages->daemon->config, (enum index_kind)in->eco, &u)) {
		ret->secrets = keys_of(in->packages, in->eco, &u);
		index_hosts_add(said, &in->packages->daemon->config, &u,
				is_looked_into(&u, ret->secrets));
		ret->egress = egress_list(said, NULL);
	}
	json_decref(said);
}

static void make_spec(const struct install *in, struct sandbox_spec *ret)
{
	struct packages *packages = in->packages;
	struct cell_limits *l;

	sandbox_spec_default(packages->sandboxes->admission, in->owner, ret);
	set_network(in, ret);
	l = &ret->limits;
	l->disk_bytes = 2 * packages->daemon->config.package_size + 256 * MIB;
	l->memory_bytes = l->disk_bytes + l->disk_bytes / 7 + GIB; /* cell_layer_bytes() */
	/* There is nothing in it to keep. It takes a cgroup. */
	if (!(packages->sandboxes->cells->spec.without & CELL_WITHOUT_CGROUP))
		l->oom = CELL_OOM_CELL;
	l->inodes = 500000;
	l->pids = 256;
	l->cpu_milli = l->cpu_milli < 2000 ? 2000 : l->cpu_milli;
	ret->own_limits = true;
	ret->fetcher = true;
	if (in->image == &packages->sandboxes->cells->images->own)
		return;
	(void)snprintf(ret->image, sizeof(ret->image), "%s", in->image->name);
	(void)snprintf(ret->digest, sizeof(ret->digest), "%s", in->image->digest);
}

/* The interpreter of a language fetches its packages: an image needs no other. */
static const struct {
	const char *program, *script, *args[3];
} tools[ECO_MAX_] = {
	[ECO_PYTHON] = { "python3", "fetch.py", { "-I", "-c" } },
	[ECO_JAVASCRIPT] = { "node", "fetch.js", { "-e" } },
};

const char *fetcher_program(enum ecosystem eco)
{
	return tools[eco].program;
}

static json_t *task_of(const struct install *in, const struct sandbox *s)
{
	const struct config *c = &in->packages->daemon->config;
	struct index_url u;
	bool index = index_of(c, (enum index_kind)in->eco, &u);
	/* Written with the egress of the cell (egress_apply.c). */
	bool certs = index &&
		     (is_looked_into(&u, s->spec.secrets) || in->packages->secrets->roots >= 0);

	return json_pack("{s:s, s:O, s:O, s:O, s:s*, s:s*, s:s*, s:b, s:b, s:b}", "language",
			 ecosystem_name(in->eco), "requirements", in->requirements, "constraints",
			 in->constraints, "recalled", in->recalled, "index",
			 index ? u.inside : NULL, "certs", certs ? TRUST_PATH : NULL, "dir",
			 in->eco == ECO_PYTHON && in->packages->dir_fd >= 0 ? PACKAGES_DIR : NULL,
			 "build", !c->package_wheels_only, "scripts", c->npm_scripts, "upgrade",
			 in->upgrade);
}

static int make_line(const struct install *in, const struct sandbox *s, struct command_line *ret,
		     struct refusal *why)
{
	const struct embed_file *script = embed_find(fetch_files, tools[in->eco].script);
	json_t *task = task_of(in, s);
	char *text = task ? json_dumps(task, JSON_COMPACT) : NULL;
	const char *tail[6] = { NULL };
	const struct command_words words = { .program = tools[in->eco].program,
					     .tail = tail,
					     .image_env = in->image->env,
					     .sandbox_env = s->vars,
					     .cwd = "/tmp",
					     .fetcher = true };
	size_t n = 0;
	int r = -1;

	for (; tools[in->eco].args[n]; n++)
		tail[n] = tools[in->eco].args[n];
	tail[n++] = (const char *)script->data;
	tail[n] = text;
	if (text)
		r = command_line_make(&words, ret, why);
	else
		(void)refusal_no_memory(why);
	json_alloc_free(text);
	json_decref(task);
	return r;
}

/* ---- its life ------------------------------------------------------------------------------ */

static void on_late(struct timer *t)
{
	struct install *in = t->arg;

	install_fail_text(in, REFUSAL_TIMEOUT, "index_timeout",
			  "the operator's limit: --package-timeout",
			  "'%.60s' was not installed in time", in->first);
}

int fetcher_start(struct install *in, struct refusal *why)
{
	struct packages *packages = in->packages;
	uint64_t timeout_ms = packages->daemon->config.package_timeout_ms;
	struct command *c = &in->command;
	struct sandbox_spec spec;
	struct sandbox *s;

	make_spec(in, &spec);
	s = sandbox_create(packages->sandboxes, in->owner, NULL, &spec, why);
	if (!s) {
		sandbox_spec_free(&spec);
		return -1;
	}
	if (make_line(in, s, &c->line, why) < 0) {
		command_line_free(&c->line);
		sandbox_end(s, "done");
		return -1;
	}
	c->ops = &fetch_output_ops;
	c->owner = in;
	c->timeout_ms = timeout_ms;
	in->timer.fn = on_late;
	in->timer.arg = in;
	timer_after(packages->loop, &in->timer, 2 * timeout_ms * CLOCK_NS_PER_MS);
	command_run(c, s);
	return 0;
}

void fetcher_stop(struct install *in)
{
	struct sandbox *s = in->command.entry.sandbox; /* NULL: it ends by itself */

	timer_cancel(&in->timer);
	timer_cancel(&in->rest);
	kernel_share_rested(&in->owing);
	command_release(&in->command);
	if (s)
		sandbox_end(s, "done");
}
