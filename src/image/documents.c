/* SPDX-License-Identifier: Apache-2.0 */
/*
 * documents.c - Index, manifest and configuration, read member by member.
 *
 * Each document comes from a registry or an archive and may hold anything. Nothing is used that was
 * not checked here: a digest has its exact form, a size its maximum, a list its maximal length, and
 * text no control characters but tab and newline, because it goes to execve(2) and to terminals.
 * JSON with the same member twice is refused, since another reader could take the other one.
 */
#include "image/documents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "image/ref.h"

#define WORD_MAX (128u << 10) /* what the Linux kernel allows one argument of a program */

/* ---- the machine --------------------------------------------------------------------------- */

struct platform platform_here(void)
{
	static const struct {
		const char *machine;
		struct platform p;
	} rows[] = {
		{ "x86_64", { "linux", "amd64", "" } },
		{ "aarch64", { "linux", "arm64", "v8" } },
		{ "armv7l", { "linux", "arm", "v7" } },
		{ "i686", { "linux", "386", "" } },
		{ "ppc64le", { "linux", "ppc64le", "" } },
		{ "riscv64", { "linux", "riscv64", "" } },
		{ "s390x", { "linux", "s390x", "" } },
	};
	struct utsname u;

	if (uname(&u) == 0)
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			if (strcmp(u.machine, rows[i].machine) == 0)
				return rows[i].p;
	return (struct platform){ "linux", "unknown", "" };
}

/* ---- members ------------------------------------------------------------------------------- */

json_t *document_load(const char *what, const char *text, size_t len, struct err *e)
{
	json_error_t error;
	json_t *doc;

	if (len > MANIFEST_BYTES_MAX) {
		(void)err_say(e, -EBADMSG, "the %s has more than %u MiB", what,
			      MANIFEST_BYTES_MAX >> 20);
		return NULL;
	}
	doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (json_is_object(doc))
		return doc;
	(void)err_say(e, -EBADMSG, "the %s is invalid: %.120s", what,
		      doc ? "not a JSON object" : error.text);
	json_decref(doc);
	return NULL;
}

const char *document_text(const json_t *of, const char *member)
{
	const char *s = json_string_value(json_object_get(of, member));

	return s ? s : "";
}

static int take_blob(const json_t *from, const char *what, uint64_t max, struct blob *ret,
		     struct err *e)
{
	const char *digest = document_text(from, "digest");
	const json_t *size = json_object_get(from, "size");

	if (!ref_digest_ok(digest))
		return err_say(e, -EBADMSG, "%s: 'digest' is not sha256: and 64 hexadecimal digits",
			       what);
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return err_say(e, -EBADMSG, "%s: 'size' is not a size in bytes", what);
	if ((uint64_t)json_integer_value(size) > max)
		return err_say(e, -EFBIG,
			       "%s: %lld bytes are more than the %" PRIu64 " MiB allowed", what,
			       (long long)json_integer_value(size), max >> 20);
	memcpy(ret->digest, digest, sizeof(ret->digest));
	ret->size = (uint64_t)json_integer_value(size);
	return 0;
}

/* ---- which document ------------------------------------------------------------------------ */

static bool is_type(const char *type, const char *name)
{
	size_t n = strlen(name);

	return strncmp(type, name, n) == 0 && (!type[n] || type[n] == ';' || type[n] == ' ');
}

static int kind_of_type(const char *type)
{
	if (is_type(type, MEDIA_OCI_INDEX) || is_type(type, MEDIA_DOCKER_LIST))
		return MANIFEST_INDEX;
	if (is_type(type, MEDIA_OCI_MANIFEST) || is_type(type, MEDIA_DOCKER_MANIFEST))
		return MANIFEST_IMAGE;
	return -ENOENT;
}

/*
 * By the document's own "mediaType", or by which of the two lists it has. A document with both
 * lists could be read in two ways.
 */
static int kind_of(const json_t *doc, const char *type, struct err *e)
{
	const json_t *layers = json_object_get(doc, "layers"),
		     *manifests = json_object_get(doc, "manifests");
	const char *own = document_text(doc, "mediaType");
	int by_list = layers ? MANIFEST_IMAGE : MANIFEST_INDEX, by_type;

	if (json_integer_value(json_object_get(doc, "schemaVersion")) == 1 ||
	    (type && strstr(type, "docker.distribution.manifest.v1")))
		return err_say(
			e, -EBADMSG,
			"the image has a manifest of Docker's schema 1, which is not supported: "
			"push it again with a current tool");
	if (!layers == !manifests)
		return err_say(e, -EBADMSG,
			       layers ? "the manifest has both 'layers' and 'manifests'" :
					"the manifest has neither 'layers' nor 'manifests'");
	by_type = kind_of_type(*own ? own : type ? type : "");
	if (*own && by_type < 0)
		return err_say(e, -EBADMSG, "a manifest of type '%.80s' is not supported", own);
	if (by_type >= 0 && by_type != by_list)
		return err_say(e, -EBADMSG, "the manifest is not of the type that it declares");
	return by_list;
}

int manifest_kind(const char *text, size_t len, const char *type, struct err *e)
{
	json_auto_t *doc = document_load("manifest", text, len, e);

	return doc ? kind_of(doc, type, e) : -EBADMSG;
}

/* ---- index --------------------------------------------------------------------------------- */

/* How well an entry fits; 0: not at all. */
static int rank(const json_t *entry, const struct platform *want)
{
	const json_t *p = json_object_get(entry, "platform");
	const char *variant = document_text(p, "variant");

	if (!p)
		return 1;
	if (strcmp(document_text(p, "os"), want->os) != 0 ||
	    strcmp(document_text(p, "architecture"), want->arch) != 0)
		return 0;
	if (strcmp(variant, want->variant) == 0)
		return 4;
	/* amd64 has levels, and every machine has v1. arm64 without a variant is v8. */
	if (!*variant || (strcmp(want->arch, "amd64") == 0 && strcmp(variant, "v1") == 0))
		return 3;
	return 0;
}

static void list_platforms(const json_t *list, char *text, size_t size)
{
	size_t i, at = 0;
	json_t *entry;

	text[0] = '\0';
	json_array_foreach(list, i, entry)
	{
		const json_t *p = json_object_get(entry, "platform");
		const char *os = document_text(p, "os"), *arch = document_text(p, "architecture");

		if (at + 1 >= size || !*os || strcmp(os, "unknown") == 0)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%s%.20s/%.20s", at ? ", " : "", os,
				       arch);
	}
}

int index_choose(const char *text, size_t len, const struct platform *want, struct blob *ret,
		 struct err *e)
{
	json_auto_t *doc = document_load("index", text, len, e);
	const json_t *list, *entry, *best = NULL;
	int top = 0, r;
	size_t i;
	char have[200];

	if (!doc)
		return -EBADMSG;
	r = kind_of(doc, NULL, e);
	if (r < 0)
		return r;
	if (r != MANIFEST_INDEX)
		return err_say(e, -EBADMSG, "expected an index, found a manifest");
	list = json_object_get(doc, "manifests");
	json_array_foreach(list, i, entry)
	{
		r = rank(entry, want);
		if (r > top) {
			top = r;
			best = entry;
		}
	}
	if (!best) {
		list_platforms(list, have, sizeof(have));
		return err_say(e, -ENOENT, "the image does not support %s/%s; it supports: %.200s",
			       want->os, want->arch, have[0] ? have : "nothing");
	}
	return take_blob(best, "the index's manifest", MANIFEST_BYTES_MAX, ret, e);
}

/* ---- manifest ------------------------------------------------------------------------------ */

static int check_layer_type(const json_t *layer, const char *what, struct err *e)
{
	static const char *const known[] = {
		MEDIA_OCI_LAYER,
		MEDIA_OCI_LAYER "+gzip",
		MEDIA_OCI_LAYER "+zstd",
		"application/vnd.docker.image.rootfs.diff.tar",
		"application/vnd.docker.image.rootfs.diff.tar.gzip",
		"application/vnd.docker.image.rootfs.diff.tar.zstd",
	};
	const char *type = document_text(layer, "mediaType");

	for (size_t k = 0; k < ARRAY_SIZE(known); k++)
		if (strcmp(type, known[k]) == 0)
			return 0;
	return err_say(e, -EBADMSG, "%s: type '%.100s' is not supported", what, type);
}

int manifest_parse(const char *text, size_t len, struct manifest *ret, struct err *e)
{
	json_auto_t *doc = document_load("manifest", text, len, e);
	const json_t *layers, *layer;
	const char *type;
	char what[32];
	size_t i;
	int r;

	*ret = (struct manifest){ 0 };
	if (!doc)
		return -EBADMSG;
	r = kind_of(doc, NULL, e);
	if (r < 0)
		return r;
	layers = json_object_get(doc, "layers");
	if (r != MANIFEST_IMAGE || !json_is_array(layers))
		return err_say(e, -EBADMSG, "the manifest has no list of layers");
	if (json_array_size(layers) == 0 || json_array_size(layers) > IMAGE_LAYERS_MAX)
		return err_say(e, -EBADMSG, "the image has %zu layers; 1 to %d are supported",
			       json_array_size(layers), IMAGE_LAYERS_MAX);
	type = document_text(json_object_get(doc, "config"), "mediaType");
	if (strcmp(type, MEDIA_OCI_CONFIG) != 0 &&
	    strcmp(type, "application/vnd.docker.container.image.v1+json") != 0)
		return err_say(e, -EBADMSG, "not an image: the configuration has type '%.100s'",
			       type);
	r = take_blob(json_object_get(doc, "config"), "config", MANIFEST_BYTES_MAX, &ret->config,
		      e);
	json_array_foreach(layers, i, layer)
	{
		(void)snprintf(what, sizeof(what), "layer %zu", i + 1);
		if (r < 0 || (r = check_layer_type(layer, what, e)) < 0 ||
		    (r = take_blob(layer, what, LAYER_BYTES_MAX, &ret->layers[i], e)) < 0)
			return r;
	}
	ret->n_layers = json_array_size(layers);
	return r;
}

/* Types and digests have no character that JSON would escape. */
static void write_blob(struct buf *out, const char *type, const struct blob *b)
{
	(void)buf_printf(out, "{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%" PRIu64 "}", type,
			 b->digest, b->size);
}

int manifest_write(const struct manifest *m, struct buf *out)
{
	(void)buf_puts(out,
		       "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"config\":");
	write_blob(out, MEDIA_OCI_CONFIG, &m->config);
	for (size_t i = 0; i < m->n_layers; i++) {
		(void)buf_puts(out, i ? "," : ",\"layers\":[");
		write_blob(out, MEDIA_OCI_LAYER, &m->layers[i]);
	}
	return buf_puts(out, "]}");
}

/* ---- configuration ------------------------------------------------------------------------- */

/* Of the control characters only tabs and newlines are in use. */
static bool word_ok(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t')
			return false;
	return true;
}

static int take_words(const json_t *run, const char *member, char ***ret, struct err *e)
{
	const json_t *list = json_object_get(run, member);
	size_t n = json_is_array(list) ? json_array_size(list) : 0;

	if (list && !json_is_array(list) && !json_is_null(list))
		return err_say(e, -EBADMSG, "the configuration's '%s' is not a list", member);
	if (n > IMAGE_WORDS_MAX)
		return err_say(e, -EBADMSG, "the configuration's '%s' has more than %d words",
			       member, IMAGE_WORDS_MAX);
	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return err_set(e, -ENOMEM, "read the configuration");
	for (size_t i = 0; i < n; i++) {
		const json_t *word = json_array_get(list, i);

		if (!json_is_string(word) || json_string_length(word) > WORD_MAX ||
		    strlen(json_string_value(word)) != json_string_length(word) ||
		    !word_ok(json_string_value(word)))
			return err_say(e, -EBADMSG,
				       "the configuration's '%s' contains an invalid string",
				       member);
		(*ret)[i] = strdup(json_string_value(word));
		if (!(*ret)[i])
			return err_set(e, -ENOMEM, "read the configuration");
	}
	return 0;
}

static int take_text(const json_t *run, const char *member, size_t max, char **ret, struct err *e)
{
	const char *text = document_text(run, member);

	if (strlen(text) > max || !word_ok(text) || strpbrk(text, "\n\t"))
		return err_say(e, -EBADMSG,
			       "the configuration's '%s' is too long, or not a line of text",
			       member);
	*ret = strdup(text);
	return *ret ? 0 : err_set(e, -ENOMEM, "read the configuration");
}

static int check_env(char **env, struct err *e)
{
	for (; *env; env++)
		if (**env == '=' || !strchr(*env, '='))
			return err_say(e, -EBADMSG,
				       "the configuration's 'Env' has an entry without a name");
	return 0;
}

static int take_run(const json_t *run, struct image_config *ret, struct err *e)
{
	int r;

	if ((r = take_words(run, "Env", &ret->env, e)) < 0 || (r = check_env(ret->env, e)) < 0 ||
	    (r = take_words(run, "Entrypoint", &ret->entrypoint, e)) < 0 ||
	    (r = take_words(run, "Cmd", &ret->cmd, e)) < 0 ||
	    (r = take_text(run, "WorkingDir", 4095, &ret->workdir, e)) < 0 ||
	    (r = take_text(run, "User", 255, &ret->user, e)) < 0)
		return r;
	if (ret->workdir[0] && ret->workdir[0] != '/')
		return err_say(e, -EBADMSG, "the configuration's 'WorkingDir' is not absolute");
	return 0;
}

static int take_layers(const json_t *doc, struct config *ret, struct err *e)
{
	const json_t *list = json_object_get(json_object_get(doc, "rootfs"), "diff_ids"), *id;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > IMAGE_LAYERS_MAX)
		return err_say(
			e, -EBADMSG,
			"the configuration's 'rootfs.diff_ids' is not a list, or is too long");
	json_array_foreach(list, i, id)
	{
		const char *text = json_string_value(id);

		if (!text || !ref_digest_ok(text))
			return err_say(e, -EBADMSG,
				       "the configuration's 'diff_ids' contains an invalid digest");
		memcpy(ret->diff_ids[i], text, sizeof(ret->diff_ids[i]));
	}
	ret->n_layers = json_array_size(list);
	return 0;
}

/* As many whole characters as fit. */
static void copy_text(const json_t *doc, const char *member, char *to, size_t size)
{
	const char *text = document_text(doc, member);

	(void)snprintf(to, size, "%.*s", (int)utf8_fit(text, strlen(text), size - 1), text);
}

int config_parse(const char *text, size_t len, struct config *ret, struct err *e)
{
	json_auto_t *doc = document_load("configuration", text, len, e);
	int r;

	*ret = (struct config){ 0 };
	if (!doc)
		return -EBADMSG;
	copy_text(doc, "architecture", ret->arch, sizeof(ret->arch));
	copy_text(doc, "os", ret->os, sizeof(ret->os));
	copy_text(doc, "created", ret->created, sizeof(ret->created));
	r = take_layers(doc, ret, e);
	if (r == 0)
		r = take_run(json_object_get(doc, "config"), &ret->run, e);
	if (r < 0)
		config_free(ret);
	return r;
}

void image_config_free(struct image_config *c)
{
	mem_free_list(c->env);
	mem_free_list(c->entrypoint);
	mem_free_list(c->cmd);
	free(c->workdir);
	free(c->user);
	*c = (struct image_config){ 0 };
}

void config_free(struct config *c)
{
	image_config_free(&c->run);
}

int documents_fit(const struct manifest *m, const struct config *c, struct err *e)
{
	const struct platform here = platform_here();

	if (c->n_layers != m->n_layers)
		return err_say(e, -EBADMSG, "the image has %zu layers and %zu in its configuration",
			       m->n_layers, c->n_layers);
	if (strcmp(c->os, here.os) != 0 || strcmp(c->arch, here.arch) != 0)
		return err_say(e, -ENOENT, "the image is made for %s/%s, and this machine is %s/%s",
			       c->os, c->arch, here.os, here.arch);
	return 0;
}
