/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.c - Reading the two kinds of directories that images come in.
 *
 * What `docker save` writes has no manifest of ours to keep: one is made of its list, so that the
 * store knows one form only. Where both are there (Docker 25 and later) the layout is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "image/digest.h"
#include "image/document.h"
#include "image/import.h"
#include "image/ref.h"

#define NAME_ANNOTATION "org.opencontainers.image.ref.name"
#define CONTAINERD_ANNOTATION "io.containerd.image.name"

/* ---- files --------------------------------------------------------------------------------- */

static int open_file(int dir, const char *path, struct stat *st, struct err *e)
{
	const struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	_fd_ int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	if (fd < 0)
		return err_set(e, -errno, "open '%.150s' of the archive", path);
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
		return err_say(e, -EBADMSG, "'%.150s' of the archive is no file", path);
	return TAKE_FD(fd);
}

static int read_file(int dir, const char *path, struct buf *ret, struct err *e)
{
	struct stat st;
	_fd_ int fd = open_file(dir, path, &st, e);
	ssize_t n = 1;

	buf_clear(ret);
	while (fd >= 0 && n > 0) {
		char *to = buf_reserve(ret, 64 << 10);

		n = to ? read(fd, to, 64 << 10) : -1;
		if (n < 0)
			return err_set(e, to ? -errno : ret->err, "read '%.150s' of the archive",
				       path);
		buf_commit(ret, (size_t)n);
	}
	return fd < 0 ? fd : 0;
}

static void blob_path(char path[IMAGE_DIGEST_MAX + 16], const char *digest)
{
	(void)snprintf(path, IMAGE_DIGEST_MAX + 16, "blobs/sha256/%s", digest_hex(digest));
}

static int read_blob(int dir, const struct blob *b, struct buf *ret, struct err *e)
{
	char path[IMAGE_DIGEST_MAX + 16];
	int r;

	blob_path(path, b->digest);
	r = read_file(dir, path, ret, e);
	if (r == 0 && (ret->len != b->size || !digest_is(b->digest, buf_str(ret), ret->len)))
		return err_say(e, -EBADMSG, "%s of the archive is damaged", b->digest);
	return r;
}

/* ---- OCI layouts --------------------------------------------------------------------------- */

static const char *name_of(const json_t *entry)
{
	const json_t *notes = json_object_get(entry, "annotations");
	const char *full = document_text(notes, CONTAINERD_ANNOTATION);

	return *full ? full : document_text(notes, NAME_ANNOTATION);
}

/* A name that is only a tag says nothing of the image. */
static void keep_name(struct archive_image *a, const char *name)
{
	struct ref ref;

	if (strpbrk(name, "/:") && ref_parse(name, &ref, NULL) == 0)
		ref_format(&ref, a->ref);
}

static bool has_tag(const json_t *entry, const char *tag)
{
	const char *name = name_of(entry),
		   *own = document_text(json_object_get(entry, "annotations"), NAME_ANNOTATION);
	const char *colon = strrchr(name, ':');

	return strcmp(own, tag) == 0 || (colon && strcmp(colon + 1, tag) == 0);
}

/* Those that are called @tag, if any is; otherwise all. Their names must not differ. */
static json_t *narrow(const json_t *list, const char *tag, struct err *e)
{
	json_t *some = json_array(), *entry;
	const char *first = NULL;
	size_t i;

	json_array_foreach(list, i, entry) if (tag && *tag && has_tag(entry, tag))(void)
		json_array_append(some, entry);
	if (json_array_size(some) == 0)
		(void)json_array_extend(some, (json_t *)list);
	json_array_foreach(some, i, entry)
	{
		if (first && strcmp(first, name_of(entry)) != 0) {
			(void)err_say(
				e, -EINVAL,
				"the archive has several images ('%.60s', '%.60s'): say which with --name NAME:TAG",
				first, name_of(entry));
			json_decref(some);
			return NULL;
		}
		first = name_of(entry);
	}
	return some;
}

static int choose(int dir, const json_t *index, const char *tag, struct archive_image *a,
		  struct blob *ret, struct err *e)
{
	const struct platform here = platform_here();
	json_t *some = narrow(json_object_get(index, "manifests"), tag, e);
	json_t *doc = some ? json_pack("{s:i, s:O}", "schemaVersion", 2, "manifests", some) : NULL;
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	int r = some ? err_set(e, -ENOMEM, "read the index") : -EINVAL;

	if (text) {
		*e = (struct err){ 0 };
		keep_name(a, name_of(json_array_get(some, 0)));
		r = index_choose(text, strlen(text), &here, ret, e);
	}
	free(text);
	json_decref(doc);
	json_decref(some);
	/* An index in an index: what has several platforms. */
	for (int depth = 0; r == 0 && depth < 3; depth++) {
		r = read_blob(dir, ret, &a->manifest, e);
		if (r == 0)
			r = manifest_kind(buf_str(&a->manifest), a->manifest.len, NULL, e);
		if (r != MANIFEST_INDEX)
			return r < 0 ? r : 0;
		r = index_choose(buf_str(&a->manifest), a->manifest.len, &here, ret, e);
	}
	return r < 0 ? r : err_say(e, -EBADMSG, "the archive's indexes have no end");
}

static int open_blobs(int dir, struct archive_image *a, struct err *e)
{
	char path[IMAGE_DIGEST_MAX + 16];
	struct stat st;

	for (size_t i = 0; i < a->m.n_layers; i++) {
		blob_path(path, a->m.layers[i].digest);
		a->layers[i] = open_file(dir, path, &st, e);
		if (a->layers[i] < 0)
			return a->layers[i];
		if ((uint64_t)st.st_size != a->m.layers[i].size)
			return err_say(e, -EBADMSG, "%s of the archive is damaged",
				       a->m.layers[i].digest);
	}
	return 0;
}

static int read_layout(int dir, const char *tag, struct archive_image *a, struct err *e)
{
	_buf_ struct buf text = BUF_INIT(MANIFEST_BYTES_MAX + (64u << 10));
	struct blob one;
	int r = read_file(dir, "index.json", &text, e);

	if (r < 0)
		return r;
	_document_ json_t *index = document_load("index", buf_str(&text), text.len, e);

	r = index ? choose(dir, index, tag, a, &one, e) : -EBADMSG;
	if (r == 0)
		r = manifest_parse(buf_str(&a->manifest), a->manifest.len, &a->m, e);
	if (r == 0)
		r = read_blob(dir, &a->m.config, &a->config, e);
	if (r == 0)
		memcpy(a->digest, one.digest, sizeof(a->digest));
	return r == 0 ? open_blobs(dir, a, e) : r;
}

/* ---- docker save --------------------------------------------------------------------------- */

static int hash_file(int fd, char ret[IMAGE_DIGEST_MAX], struct err *e)
{
	struct digest *d = digest_new();
	char *chunk = malloc(1 << 20);
	ssize_t n = 1;
	int r = d && chunk ? 0 : -ENOMEM;

	while (r == 0 && n > 0) {
		n = read(fd, chunk, 1 << 20);
		r = n < 0 ? -errno : digest_add(d, chunk, (size_t)n);
	}
	free(chunk);
	if (r == 0)
		r = digest_end(d, ret);
	else
		digest_free(d);
	return r < 0 ? err_set(e, r, "hash a layer of the archive") : 0;
}

int archive_check_layer(int fd, const struct blob *want, struct err *e)
{
	char have[IMAGE_DIGEST_MAX];
	int r = lseek(fd, 0, SEEK_SET) < 0 ? err_set(e, -errno, "read a layer of the archive") :
					     hash_file(fd, have, e);

	if (r == 0 && strcmp(have, want->digest) != 0)
		return err_say(e, -EBADMSG, "%s of the archive is %s: it is damaged", want->digest,
			       have);
	return r;
}

static void put_blob(struct json *j, const char *type, const struct blob *b)
{
	json_object_begin(j);
	json_member_str(j, "mediaType", type);
	json_member_str(j, "digest", b->digest);
	json_member_uint(j, "size", b->size);
	json_object_end(j);
}

/* A manifest that says what the list said. */
static int make_manifest(struct archive_image *a, struct err *e)
{
	struct json j;

	json_init(&j, &a->manifest);
	json_object_begin(&j);
	json_member_uint(&j, "schemaVersion", 2);
	json_member_str(&j, "mediaType", MEDIA_OCI_MANIFEST);
	json_key(&j, "config");
	put_blob(&j, MEDIA_OCI_CONFIG, &a->m.config);
	json_key(&j, "layers");
	json_array_begin(&j);
	for (size_t i = 0; i < a->m.n_layers; i++)
		put_blob(&j, MEDIA_OCI_LAYER, &a->m.layers[i]);
	json_array_end(&j);
	json_object_end(&j);
	if (json_finish(&j) < 0)
		return err_set(e, -ENOMEM, "make a manifest");
	int r = digest_of(buf_str(&a->manifest), a->manifest.len, a->digest);

	return r < 0 ? err_set(e, r, "make a manifest") : 0;
}

static int take_saved_layers(int dir, const json_t *list, struct archive_image *a, struct err *e)
{
	struct stat st;
	size_t i;
	json_t *path;
	int r;

	if (!json_is_array(list) || json_array_size(list) == 0 ||
	    json_array_size(list) > IMAGE_LAYERS_MAX)
		return err_say(e, -EBADMSG, "the archive's image has no layers, or more than %d",
			       IMAGE_LAYERS_MAX);
	json_array_foreach(list, i, path)
	{
		a->layers[i] = json_is_string(path) ?
				       open_file(dir, json_string_value(path), &st, e) :
				       err_say(e, -EBADMSG, "the archive's 'Layers' are no paths");
		if (a->layers[i] < 0)
			return a->layers[i];
		a->m.n_layers = i + 1;
		a->m.layers[i].size = (uint64_t)st.st_size;
		r = hash_file(a->layers[i], a->m.layers[i].digest, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_saved_as(const json_t *entry, const char *tag)
{
	const json_t *names = json_object_get(entry, "RepoTags");

	for (size_t i = 0; tag && i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));
		const char *colon = name ? strrchr(name, ':') : NULL;

		if (colon && strcmp(colon + 1, tag) == 0)
			return true;
	}
	return false;
}

static const json_t *saved_entry(const json_t *list, const char *tag, struct err *e)
{
	if (json_array_size(list) == 1)
		return json_array_get(list, 0);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (is_saved_as(json_array_get(list, i), tag))
			return json_array_get(list, i);
	(void)err_say(e, -EINVAL, "the archive has %zu images: say which with --name NAME:TAG",
		      json_array_size(list));
	return NULL;
}

static int read_saved(int dir, const char *tag, struct archive_image *a, struct err *e)
{
	_buf_ struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
	int r = read_file(dir, "manifest.json", &text, e);

	if (r < 0)
		return r;
	_document_ json_t *list =
		json_loadb(buf_str(&text), text.len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *entry = json_is_array(list) ? saved_entry(list, tag, e) : NULL;

	if (!entry)
		return e->code ? e->code :
				 err_say(e, -EBADMSG, "the archive's manifest.json is no list");
	keep_name(a,
		  json_string_value(json_array_get(json_object_get(entry, "RepoTags"), 0)) ?
			  json_string_value(json_array_get(json_object_get(entry, "RepoTags"), 0)) :
			  "");
	r = read_file(dir, document_text(entry, "Config"), &a->config, e);
	if (r == 0)
		r = digest_of(buf_str(&a->config), a->config.len, a->m.config.digest);
	a->m.config.size = a->config.len;
	if (r == 0)
		r = take_saved_layers(dir, json_object_get(entry, "Layers"), a, e);
	return r == 0 ? make_manifest(a, e) : r;
}

/* ---- either -------------------------------------------------------------------------------- */

int archive_read(int dir, const char *tag, struct archive_image *ret, struct err *e)
{
	struct err local = { 0 };

	if (!e)
		e = &local;
	*ret = (struct archive_image){ 0 };
	for (size_t i = 0; i < IMAGE_LAYERS_MAX; i++)
		ret->layers[i] = -1;
	buf_init(&ret->manifest, MANIFEST_BYTES_MAX + (64u << 10));
	buf_init(&ret->config, MANIFEST_BYTES_MAX + (64u << 10));
	if (faccessat(dir, "oci-layout", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return read_layout(dir, tag, ret, e);
	if (faccessat(dir, "manifest.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return read_saved(dir, tag, ret, e);
	return err_say(
		e, -EBADMSG,
		"this is neither an OCI layout (no 'oci-layout') nor what 'docker save' writes (no 'manifest.json')");
}

void archive_image_free(struct archive_image *a)
{
	for (size_t i = 0; i < IMAGE_LAYERS_MAX; i++)
		fd_close(a->layers[i]);
	buf_free(&a->manifest);
	buf_free(&a->config);
}
