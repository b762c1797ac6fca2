/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.c - `caisson image import`: from a file or a directory to the store, with the checks and
 * the unpackers of a pull.
 *
 * An archive becomes a directory in tmp, which is removed again when its layers are unpacked. Its
 * content is as little trusted as the archive: every name is opened below the directory, and links
 * cannot lead out. Two kinds of directories hold images: OCI layouts, and those of `docker save`,
 * which have no OCI manifest: one is made from their list, so that the store knows one form only. A
 * directory that is both (Docker 25 and later) is read as a layout.
 */
#include "image/incoming.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/verbs.h"

#define NAME_ANNOTATION "org.opencontainers.image.ref.name"
#define CONTAINERD_ANNOTATION "io.containerd.image.name"

/* An image of such a directory, beside its documents. */
struct layout {
	char ref[IMAGE_REF_MAX];      /* the name that the directory has for it; "": no name */
	int layers[IMAGE_LAYERS_MAX]; /* files, the lowest first; or -1 */
};

static void layout_close(struct layout *l)
{
	fd_close_all(l->layers, IMAGE_LAYERS_MAX);
}

/* ---- files --------------------------------------------------------------------------------- */

static int open_file(int dir, const char *path, struct stat *st, struct err *e)
{
	_fd_ int fd = fd_openat2(dir, path, O_RDONLY | O_NONBLOCK,
				 RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return err_set(e, -errno, "open '%.150s' of the archive", path);
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
		return err_say(e, -EBADMSG, "'%.150s' of the archive is not a file", path);
	return TAKE_FD(fd);
}

static int read_file(int dir, const char *path, struct buf *ret, struct err *e)
{
	struct stat st;
	_fd_ int fd = open_file(dir, path, &st, e);

	buf_clear(ret);
	if (fd < 0)
		return fd;
	int r = fd_read_buf(fd, ret);

	return r < 0 ? err_set(e, r, "read '%.150s' of the archive", path) : 0;
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

/* A name that is only a tag does not name an image. */
static void keep_name(struct layout *l, const char *name)
{
	struct ref ref;

	if (strpbrk(name, "/:") && ref_parse(name, &ref, NULL) == 0)
		ref_format(&ref, l->ref);
}

static bool has_tag(const json_t *entry, const char *tag)
{
	const char *name = name_of(entry),
		   *own = document_text(json_object_get(entry, "annotations"), NAME_ANNOTATION);
	const char *colon = strrchr(name, ':');

	return strcmp(own, tag) == 0 || (colon && strcmp(colon + 1, tag) == 0);
}

/* The entries with this tag; all entries if no entry has it. Their names must not differ. */
static json_t *narrow(const json_t *list, const char *tag, struct err *e)
{
	json_t *some = json_array(), *entry;
	const char *first = NULL;
	size_t i;

	json_array_foreach(list, i, entry)
	{
		if (tag && *tag && has_tag(entry, tag))
			(void)json_array_append(some, entry);
	}
	if (json_array_size(some) == 0)
		(void)json_array_extend(some, (json_t *)list);
	json_array_foreach(some, i, entry)
	{
		if (first && strcmp(first, name_of(entry)) != 0) {
			(void)err_say(
				e, -EINVAL,
				"the archive has several images ('%.60s', '%.60s'): choose one "
				"with --name NAME:TAG",
				first, name_of(entry));
			json_decref(some);
			return NULL;
		}
		first = name_of(entry);
	}
	return some;
}

/* The entry for this machine among those that narrow() leaves. */
static int choose_entry(const json_t *index, const char *tag, const struct platform *here,
			struct layout *l, struct blob *ret, struct err *e)
{
	json_auto_t *some = narrow(json_object_get(index, "manifests"), tag, e);

	if (!some)
		return -EINVAL;
	json_auto_t *doc = json_pack("{s:i, s:O}", "schemaVersion", 2, "manifests", some);
	_mem_ char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	if (!text)
		return err_set(e, -ENOMEM, "read the index");
	keep_name(l, name_of(json_array_get(some, 0)));
	return index_choose(text, strlen(text), here, ret, e);
}

/* An entry may be an index in turn, which has an entry for each platform. */
static int choose(int dir, const json_t *index, const char *tag, struct incoming *in,
		  struct layout *l, struct blob *ret, struct err *e)
{
	const struct platform here = platform_here();
	int r = choose_entry(index, tag, &here, l, ret, e);

	for (int depth = 0; r == 0 && depth < 3; depth++) {
		r = read_blob(dir, ret, &in->manifest, e);
		if (r == 0)
			r = manifest_kind(buf_str(&in->manifest), in->manifest.len, NULL, e);
		if (r != MANIFEST_INDEX)
			return r < 0 ? r : 0;
		r = index_choose(buf_str(&in->manifest), in->manifest.len, &here, ret, e);
	}
	return r < 0 ? r : err_say(e, -EBADMSG, "the archive's indexes are nested too deep");
}

static int open_blobs(int dir, const struct manifest *m, struct layout *l, struct err *e)
{
	char path[IMAGE_DIGEST_MAX + 16];
	struct stat st;

	for (size_t i = 0; i < m->n_layers; i++) {
		blob_path(path, m->layers[i].digest);
		l->layers[i] = open_file(dir, path, &st, e);
		if (l->layers[i] < 0)
			return l->layers[i];
		if ((uint64_t)st.st_size != m->layers[i].size)
			return err_say(e, -EBADMSG, "%s of the archive is damaged",
				       m->layers[i].digest);
	}
	return 0;
}

static int read_layout(int dir, const char *tag, struct incoming *in, struct layout *l,
		       struct err *e)
{
	_buf_ struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
	struct blob one;
	int r = read_file(dir, "index.json", &text, e);

	if (r < 0)
		return r;
	json_auto_t *index = document_load("index", buf_str(&text), text.len, e);

	if (!index)
		return -EBADMSG;
	if ((r = choose(dir, index, tag, in, l, &one, e)) < 0 ||
	    (r = manifest_parse(buf_str(&in->manifest), in->manifest.len, &in->m, e)) < 0 ||
	    (r = read_blob(dir, &in->m.config, &in->config, e)) < 0)
		return r;
	memcpy(in->ret->digest, one.digest, sizeof(in->ret->digest));
	return open_blobs(dir, &in->m, l, e);
}

/* ---- docker save --------------------------------------------------------------------------- */

static int take_saved_layers(int dir, const json_t *list, struct manifest *m, struct layout *l,
			     struct err *e)
{
	struct stat st;
	size_t i;
	json_t *path;

	if (!json_is_array(list) || json_array_size(list) == 0 ||
	    json_array_size(list) > IMAGE_LAYERS_MAX)
		return err_say(e, -EBADMSG, "the archive's image has no layers, or more than %d",
			       IMAGE_LAYERS_MAX);
	json_array_foreach(list, i, path)
	{
		l->layers[i] = json_is_string(path) ?
				       open_file(dir, json_string_value(path), &st, e) :
				       err_say(e, -EBADMSG, "the archive's 'Layers' are not paths");
		if (l->layers[i] < 0)
			return l->layers[i];
		m->n_layers = i + 1;
		m->layers[i].size = (uint64_t)st.st_size;
		int r = digest_fd(l->layers[i], -1, m->layers[i].digest);

		if (r < 0)
			return err_set(e, r, "hash a layer of the archive");
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
	(void)err_say(e, -EINVAL, "the archive has %zu images: choose one with --name NAME:TAG",
		      json_array_size(list));
	return NULL;
}

/* A manifest with the content of the list. */
static int make_manifest(struct incoming *in, struct err *e)
{
	int r = manifest_write(&in->m, &in->manifest);

	if (r == 0)
		r = digest_of(buf_str(&in->manifest), in->manifest.len, in->ret->digest);
	return r < 0 ? err_set(e, r, "make a manifest") : 0;
}

static int read_saved(int dir, const char *tag, struct incoming *in, struct layout *l,
		      struct err *e)
{
	_buf_ struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
	struct blob *config = &in->m.config;
	int r = read_file(dir, "manifest.json", &text, e);

	if (r < 0)
		return r;
	json_auto_t *list = json_loadb(buf_str(&text), text.len, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_array(list))
		return err_say(e, -EBADMSG, "the archive's manifest.json is not a list");
	const json_t *entry = saved_entry(list, tag, e);

	if (!entry)
		return -EINVAL;
	const char *name = json_string_value(json_array_get(json_object_get(entry, "RepoTags"), 0));

	keep_name(l, name ? name : "");
	r = read_file(dir, document_text(entry, "Config"), &in->config, e);
	if (r < 0)
		return r;
	config->size = in->config.len;
	r = digest_of(buf_str(&in->config), in->config.len, config->digest);
	if (r < 0)
		return err_set(e, r, "hash the configuration");
	r = take_saved_layers(dir, json_object_get(entry, "Layers"), &in->m, l, e);
	return r < 0 ? r : make_manifest(in, e);
}

/* ---- either -------------------------------------------------------------------------------- */

/*
 * Find an image in the directory @dir; @in gets its documents and their digests. The digests of
 * manifest and configuration are checked, those of layers are not.
 * @tag: of several images, the one with this tag; NULL or "": there must be one alone
 */
static int layout_read(int dir, const char *tag, struct incoming *in, struct layout *ret,
		       struct err *e)
{
	ret->ref[0] = '\0';
	for (size_t i = 0; i < IMAGE_LAYERS_MAX; i++)
		ret->layers[i] = -1;
	if (faccessat(dir, "oci-layout", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return read_layout(dir, tag, in, ret, e);
	if (faccessat(dir, "manifest.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return read_saved(dir, tag, in, ret, e);
	return err_say(e, -EBADMSG,
		       "this is neither an OCI layout (no 'oci-layout') nor the output of 'docker "
		       "save' (no 'manifest.json')");
}

/* ---- the way into the store ---------------------------------------------------------------- */

/* A directory is opened; an archive is unpacked into one, which gets the name @tree in tmp. */
static int open_source(const struct store *s, const char *path, char tree[STORE_NAME_MAX],
		       struct err *e)
{
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct unpack_report report;
	struct layer_job job;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open %.300s", path);
	if (S_ISDIR(st.st_mode))
		return TAKE_FD(fd);
	if (!S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "%.300s is neither a file nor a directory", path);
	if (layer_begin(&job, s, fd, (uint64_t)st.st_size, e) < 0 ||
	    layer_end(&job, s, NULL, &report, e) < 0)
		return err_wrap(e, "%.200s", path);
	memcpy(tree, job.tree, sizeof(job.tree));
	int dir = openat(s->tmp, tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return dir < 0 ? err_set(e, -errno, "open the unpacked archive") : dir;
}

static int choose_name(const struct layout *l, const struct ref *request, struct ref *ret,
		       struct err *e)
{
	if (request)
		*ret = *request;
	else if (!l->ref[0])
		return err_say(e, -EINVAL,
			       "the archive has no name for the image: give --name REF");
	else if (ref_parse(l->ref, ret, e) < 0)
		return -EINVAL;
	ret->digest[0] = '\0'; /* no registry answers for one */
	if (!ret->tag[0])
		return err_say(e, -EINVAL, "--name: an imported image has a tag, not a digest");
	return 0;
}

static int import_dir(int dir, const struct ref *request, const char *allow, struct incoming *in,
		      struct err *e)
{
	__attribute__((cleanup(layout_close))) struct layout l;
	struct ref ref;
	int r;

	if ((r = layout_read(dir, request ? request->tag : NULL, in, &l, e)) < 0 ||
	    (r = choose_name(&l, request, &ref, e)) < 0 ||
	    (r = image_allowed(allow, &ref, e)) < 0 || (r = incoming_check(in, e)) < 0 ||
	    (r = incoming_unpack(in, l.layers, e)) < 0)
		return r;
	ref_format(&ref, in->ret->ref);
	return incoming_publish(in, e);
}

int verb_import(const struct image_options *o, struct store *s, struct err *e)
{
	char tree[STORE_NAME_MAX] = "";
	struct incoming_result result;
	struct incoming in;
	struct show show;
	struct ref ref;
	int r;

	show_begin(&show, o->json, o->quiet);
	if ((o->name && (r = ref_parse(o->name, &ref, e)) < 0) || (r = image_change(o, s, e)) < 0)
		return r;
	incoming_init(&in, s, &show, &result);
	_fd_ int dir = open_source(s, o->rest[0], tree, e);

	r = dir < 0 ? dir : import_dir(dir, o->name ? &ref : NULL, o->allow, &in, e);
	incoming_free(&in);
	if (tree[0])
		store_tree_drop(s, tree);
	if (r == 0)
		image_done(o, &result);
	return r;
}
