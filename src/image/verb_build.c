/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_build.c - `caisson image build`: an image from Debian packages, in one command.
 *
 * The archive (build.h) becomes the one layer of an OCI layout in the store's tmp, and that is
 * imported like any other: the same checks, the same unpacker, the same way to a name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "image/build.h"
#include "image/digest.h"
#include "image/import.h"
#include "image/manifest.h"
#include "image/verbs.h"

#define NAME_DEFAULT "caisson/base"
#define SUITE_DEFAULT "bookworm"
#define PACKAGES                                                                                   \
	"python3,python3-numpy,python3-pandas,python3-matplotlib,nodejs,git,curl,ca-certificates"
#define PACKAGES_MAX 2048
#define DOCUMENT_MAX 8192
#define LAYER "layer.tar"

/* ---- documents ----------------------------------------------------------------------------- */

static void member_blob(struct json *j, const char *type, const char *digest, uint64_t size)
{
	json_object_begin(j);
	json_member_str(j, "mediaType", type);
	json_member_str(j, "digest", digest);
	json_member_uint(j, "size", size);
	json_object_end(j);
}

static void write_config(struct json *j, const char *diff_id)
{
	const struct platform here = platform_here();
	time_t now = time(NULL);
	struct tm tm;
	char created[40] = "";

	if (gmtime_r(&now, &tm))
		(void)strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_begin(j);
	json_member_str(j, "created", created);
	json_member_str(j, "architecture", here.arch);
	json_member_str(j, "os", here.os);
	json_key(j, "config");
	json_object_begin(j);
	json_key(j, "Env");
	json_array_begin(j);
	json_str(j, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	json_array_end(j);
	json_key(j, "Cmd");
	json_array_begin(j);
	json_str(j, "python3");
	json_array_end(j);
	json_object_end(j);
	json_key(j, "rootfs");
	json_object_begin(j);
	json_member_str(j, "type", "layers");
	json_key(j, "diff_ids");
	json_array_begin(j);
	json_str(j, diff_id);
	json_array_end(j);
	json_object_end(j);
	json_object_end(j);
}

static void write_manifest(struct json *j, const struct blob *config, const struct blob *layer)
{
	json_object_begin(j);
	json_member_uint(j, "schemaVersion", 2);
	json_member_str(j, "mediaType", MEDIA_OCI_MANIFEST);
	json_key(j, "config");
	member_blob(j, MEDIA_OCI_CONFIG, config->digest, config->size);
	json_key(j, "layers");
	json_array_begin(j);
	member_blob(j, MEDIA_OCI_LAYER, layer->digest, layer->size);
	json_array_end(j);
	json_object_end(j);
}

static void write_index(struct json *j, const struct blob *manifest)
{
	json_object_begin(j);
	json_member_uint(j, "schemaVersion", 2);
	json_key(j, "manifests");
	json_array_begin(j);
	member_blob(j, MEDIA_OCI_MANIFEST, manifest->digest, manifest->size);
	json_array_end(j);
	json_object_end(j);
}

/* ---- the layout ---------------------------------------------------------------------------- */

static int put(int dir, const char *name, const char *data, size_t len, struct err *e)
{
	_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_all(fd, data, len);

	return r < 0 ? err_set(e, r, "write '%s' of the layout", name) : 0;
}

static int put_blob(int dir, const struct buf *b, struct blob *ret, struct err *e)
{
	char name[128];

	ret->size = b->len;
	if (b->err || digest_of(buf_str(b), b->len, ret->digest) < 0)
		return err_say(e, -EIO, "write a document of the image");
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(ret->digest));
	return put(dir, name, buf_str(b), b->len, e);
}

/* The layer is in @dir already, under its own name. */
static int put_documents(int dir, const struct blob *layer, struct err *e)
{
	_buf_ struct buf b = BUF_INIT(DOCUMENT_MAX);
	struct blob config, manifest;
	struct json j;
	int r;

	json_init(&j, &b);
	write_config(&j, layer->digest);
	r = put_blob(dir, &b, &config, e);
	buf_clear(&b);
	json_init(&j, &b);
	write_manifest(&j, &config, layer);
	if (r == 0)
		r = put_blob(dir, &b, &manifest, e);
	if (r < 0)
		return r;
	buf_clear(&b);
	json_init(&j, &b);
	write_index(&j, &manifest);
	r = put(dir, "index.json", buf_str(&b), b.len, e);
	return r == 0 ? put(dir, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}", 30, e) : r;
}

static int make_layout(int dir, const struct build_request *w, struct show *show, struct err *e)
{
	char name[128];
	struct blob layer;

	if (mkdirat(dir, "blobs", 0700) < 0 || mkdirat(dir, "blobs/sha256", 0700) < 0)
		return err_set(e, -errno, "make a layout");
	_fd_ int to = openat(dir, LAYER, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = to < 0 ? err_set(e, -errno, "make the layer") :
			 build_tar(w, to, show, layer.digest, &layer.size, e);

	if (r < 0)
		return r;
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(layer.digest));
	if (renameat(dir, LAYER, dir, name) < 0)
		return err_set(e, -errno, "name the layer");
	return put_documents(dir, &layer, e);
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int any(void *arg, const struct ref *ref, struct err *e)
{
	return image_allowed(arg, ref, e);
}

/* Names of packages go into one word of mmdebstrap's, which would take other things there too. */
static int options_of(const struct image_options *o, char packages[PACKAGES_MAX],
		      struct build_request *ret, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.,:";
	const char *more = o->package ? o->package : "";

	if (more[strspn(more, letters)])
		return err_say(e, -EINVAL,
			       "--package: names of Debian packages, with commas between them");
	if ((size_t)snprintf(packages, PACKAGES_MAX, PACKAGES "%s%s", *more ? "," : "", more) >=
	    PACKAGES_MAX)
		return err_say(e, -EINVAL, "--package: too many");
	*ret = (struct build_request){ .suite = o->suite ? o->suite : SUITE_DEFAULT,
				       .mirror = o->mirror,
				       .packages = packages };
	if (ret->suite[strspn(ret->suite, letters)] || ret->suite[0] == '-')
		return err_say(e, -EINVAL, "--suite: the name of a Debian release, as in bookworm");
	if (ret->mirror && strncmp(ret->mirror, "http", 4) != 0)
		return err_say(e, -EINVAL,
			       "--mirror: an address, as in http://deb.debian.org/debian");
	return 0;
}

static int build(struct image_options *o, const struct store *s, const struct ref *ref,
		 struct pull_result *ret, struct err *e)
{
	char packages[PACKAGES_MAX], tree[STORE_NAME_MAX], path[64];
	struct build_request request;
	struct show show;
	int r = options_of(o, packages, &request, e);

	if (r < 0)
		return r;
	_fd_ int dir = store_tree_new(s, tree, e);

	if (dir < 0)
		return dir;
	show_begin(&show, o->json, o->quiet);
	r = make_layout(dir, &request, &show, e);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (r == 0)
		r = import(s, path, ref, any, o, &show, ret, e);
	store_tree_drop(s, tree);
	return r;
}

int verb_build(int argc, char **argv)
{
	static const struct form form = {
		.verb = OPT_BUILD,
		.usage = "build [NAME]",
		.text = "Makes an image of Debian packages: python3 with numpy, pandas and matplotlib, node, git, curl, and those\n"
			"that --package names. It is called " NAME_DEFAULT
			" unless NAME says otherwise. Takes mmdebstrap, a mirror\n"
			"of Debian and some minutes. Packages' scripts run as root of a user namespace, never of this machine.\n",
		.min = 0,
		.max = 1,
	};
	_store_ struct store s = STORE_NONE;
	struct image_options o;
	struct pull_result result;
	struct ref ref;
	struct err e = { 0 };
	int code;

	if (!image_begin(&o, &form, argc, argv, &code))
		return code;
	if (ref_parse(o.n_rest ? o.rest[0] : NAME_DEFAULT, &ref, &e) == 0 &&
	    image_change(&o, &s, &e) == 0 && build(&o, &s, &ref, &result, &e) == 0)
		image_done(&o, &result);
	return image_end(&o, &e);
}
