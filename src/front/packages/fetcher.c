/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetcher.c - What the fetcher is given: room, time, hosts, and its task as one argument.
 *
 * The writable layer lives in memory: it holds what is downloaded, built and installed, so it is several times
 * what a tree may be, and the memory is that and what compilers take.
 */
#include "front/packages/fetcher.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/egress/entry.h"
#include "front/egress/rules.h"
#include "front/front.h"
#include "front/packages/install.h"
#include "front/packages/packages.h"
#include "front/room/spare.h"
#include "front/run/command_line.h"
#include "front/run/execution.h"
#include "front/sandbox/sandbox_spec.h"

extern const struct embed_file fetch_files[];

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* "https://user:word@host:8443/simple" to "host:8443"; without a port that of its scheme. */
static void add_url(json_t *list, const char *url)
{
	const char *host = strstr(url, "://") + 3, *at;
	size_t len = strcspn(host, "/");
	char entry[EGRESS_TEXT_MAX + 8];

	at = memrchr(host, '@', len);
	if (at) {
		len -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	(void)snprintf(entry, sizeof(entry), "%.*s%s", len < EGRESS_TEXT_MAX ? (int)len : 0, host,
		       memchr(host, ':', len)           ? "" :
		       strncmp(url, "https://", 8) == 0 ? ":443" :
							  ":80");
	(void)json_array_append_new(list, json_string(entry));
}

/* Where the best known index has its files. */
static const struct {
	const char *index, *files;
} companions[] = { { "://pypi.org/", "https://files.pythonhosted.org" },
		   { "://test.pypi.org/", "https://test-files.pythonhosted.org" } };

static json_t *hosts_of(const struct front *f, enum ecosystem eco, struct err *e)
{
	const struct config *c = &f->config;
	const char *index = eco == ECO_PYTHON ? c->pip_index : c->npm_registry;
	json_t *said = json_array(), *list;

	if (!index || !said) {
		json_decref(said);
		return NULL;
	}
	add_url(said, index);
	for (size_t i = 0; i < ARRAY_SIZE(companions); i++)
		if (strstr(index, companions[i].index))
			add_url(said, companions[i].files);
	for (size_t i = 0; c->package_hosts[i]; i++)
		(void)json_array_append_new(said, json_string(c->package_hosts[i]));
	list = egress_list(said, e);
	json_decref(said);
	return list;
}

int fetcher_check(const struct front *f, struct err *e)
{
	for (int eco = 0; eco < ECO_MAX_; eco++) {
		json_t *hosts = hosts_of(f, (enum ecosystem)eco, e);

		json_decref(hosts);
		if (e->code)
			return err_wrap(e, "%s",
					eco == ECO_PYTHON ? "--pip-index" : "--npm-registry");
	}
	return 0;
}

void fetcher_spec(const struct install *in, struct sandbox_spec *ret)
{
	struct front *f = in->f;
	struct cell_limits *l;

	sandbox_spec_default(f, in->owner, ret);
	ret->egress = hosts_of(f, in->eco, NULL);
	l = &ret->limits;
	l->disk_bytes = 2 * f->config.package_size + 256 * MIB;
	l->memory_bytes = l->disk_bytes + GIB;
	l->inodes = 500000;
	l->pids = 256;
	l->cpu_milli = l->cpu_milli < 2000 ? 2000 : l->cpu_milli;
	ret->own_limits = true;
	ret->fetcher = true;
	if (in->image == &f->images.own)
		return;
	(void)snprintf(ret->image, sizeof(ret->image), "%s", in->image->name);
	(void)snprintf(ret->digest, sizeof(ret->digest), "%s", in->image->digest);
}

static const char *index_of(const struct install *in)
{
	const struct config *c = &in->f->config;

	return in->eco == ECO_PYTHON ? c->pip_index : c->npm_registry;
}

static bool has_credentials(const char *url)
{
	const char *host = url ? strstr(url, "://") : NULL;

	return host && memchr(host + 3, '@', strcspn(host + 3, "/"));
}

/* An interpreter of somebody else's image could write the credentials into a tree, where its sandboxes read them. */
int fetcher_may(const struct install *in, struct refusal *why)
{
	*why = (struct refusal){ .status = 409, .code = "package_conflict", .field = "package" };
	if (in->image->lost) {
		why->hint = "the operator brings it back with: caisson image pull";
		(void)snprintf(why->message, sizeof(why->message),
			       "the image of this sandbox, %.200s, is not in the store any more",
			       in->image->name);
		return -1;
	}
	if (in->image != &in->f->images.own && has_credentials(index_of(in))) {
		why->hint = "use a sandbox of the daemon's own image (--image), or an index that "
			    "needs no credentials";
		(void)snprintf(why->message, sizeof(why->message),
			       "the index is asked with credentials, and only the daemon's own "
			       "image is trusted with them");
		return -1;
	}
	return 0;
}

/* Each language's packages are brought by its own interpreter: an image need not have another. */
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

static json_t *task_of(const struct install *in)
{
	const struct config *c = &in->f->config;

	return json_pack("{s:s, s:O, s:O, s:s*, s:s*, s:b, s:b}", "language",
			 ecosystem_name(in->eco), "requirements", in->requirements, "constraints",
			 in->constraints, "index", index_of(in), "dir",
			 in->eco == ECO_PYTHON && in->f->packages.dir_fd >= 0 ? PACKAGES_DIR : NULL,
			 "build", !c->package_wheels_only, "scripts", c->npm_scripts);
}

int fetcher_line(const struct install *in, struct command_line *ret, struct refusal *why)
{
	const struct embed_file *script = embed_find(fetch_files, tools[in->eco].script);
	json_t *task = task_of(in);
	char *text = task ? json_dumps(task, JSON_COMPACT) : NULL;
	const char *tail[6] = { NULL };
	const struct command_words words = { .program = tools[in->eco].program,
					     .tail = tail,
					     .image_env = in->image->env,
					     .cwd = "/tmp" };
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
	spare_free(text);
	json_decref(task);
	return r;
}
