/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_build.c - `caisson image build`: an image from Debian packages, in one command.
 *
 * The archive that build.h writes becomes the one layer of an image, with a configuration and a
 * manifest that are made here. From there on it is like an imported image: the same checks, the
 * same unpacker, the same publishing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "image/build.h"
#include "image/image_digest.h"
#include "image/incoming.h"
#include "image/verbs.h"

#define SUITE_DEFAULT "bookworm"
#define PACKAGES                                                                                   \
	"python3,python3-numpy,python3-pandas,python3-matplotlib,nodejs,git,curl,ca-certificates"
#define PACKAGES_MAX 2048
#define LAYER "layer.tar"

/* No value has a character that JSON would escape. */
static int write_config(const char *diff_id, struct buf *out)
{
	const struct platform here = platform_here();
	time_t now = time(NULL);
	struct tm tm;
	char created[40] = "";

	if (gmtime_r(&now, &tm))
		(void)strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return buf_printf(
		out,
		"{\"created\":\"%s\",\"architecture\":\"%s\",\"os\":\"%s\",\"config\":{\"Env\":"
		"[\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"],"
		"\"Cmd\":[\"python3\"]},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\"]}}",
		created, here.arch, here.os, diff_id);
}

/* The names go into one argument of mmdebstrap, which accepts other things there, too. */
static int options_of(const struct image_options *o, char packages[PACKAGES_MAX],
		      struct build_request *ret, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.,:";
	const char *more = o->package ? o->package : "";

	if (more[strspn(more, letters)])
		return err_say(e, -EINVAL,
			       "--package: expected names of Debian packages, separated by commas");
	if ((size_t)snprintf(packages, PACKAGES_MAX, PACKAGES "%s%s", *more ? "," : "", more) >=
	    PACKAGES_MAX)
		return err_say(e, -EINVAL, "--package: too many");
	*ret = (struct build_request){ .suite = o->suite ? o->suite : SUITE_DEFAULT,
				       .mirror = o->mirror,
				       .packages = packages };
	if (ret->suite[strspn(ret->suite, letters)] || ret->suite[0] == '-')
		return err_say(e, -EINVAL,
			       "--suite: expected the name of a Debian release, such as bookworm");
	if (ret->mirror && strncmp(ret->mirror, "http", 4) != 0)
		return err_say(e, -EINVAL,
			       "--mirror: expected a URL, such as http://deb.debian.org/debian");
	return 0;
}

/* The documents of an image whose one layer is known. */
static int make_documents(struct incoming *in, struct err *e)
{
	int r;

	in->m.n_layers = 1;
	if ((r = write_config(in->m.layers[0].digest, &in->config)) < 0 ||
	    (r = digest_of(buf_str(&in->config), in->config.len, in->m.config.digest)) < 0)
		return err_set(e, r, "write the image's configuration");
	in->m.config.size = in->config.len;
	if ((r = manifest_write(&in->m, &in->manifest)) < 0 ||
	    (r = digest_of(buf_str(&in->manifest), in->manifest.len, in->ret->digest)) < 0)
		return err_set(e, r, "write the image's manifest");
	return manifest_parse(buf_str(&in->manifest), in->manifest.len, &in->m, e);
}

static int build_in(int dir, const struct build_request *request, struct incoming *in,
		    struct err *e)
{
	struct blob *layer = &in->m.layers[0];
	_fd_ int archive = openat(dir, LAYER, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r;

	if (archive < 0)
		return err_set(e, -errno, "make the layer");
	if ((r = build_tar(request, archive, in->show, layer->digest, &layer->size, e)) < 0 ||
	    (r = make_documents(in, e)) < 0 || (r = incoming_check(in, e)) < 0)
		return r;
	/* The unpacker reads it, and must not be able to write it. */
	_fd_ int layer_fd = openat(dir, LAYER, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (layer_fd < 0)
		return err_set(e, -errno, "open the layer");
	r = incoming_unpack(in, &layer_fd, e);
	return r < 0 ? r : incoming_publish(in, e);
}

static int build(const struct image_options *o, const struct store *s, const struct ref *ref,
		 struct incoming_result *ret, struct err *e)
{
	char packages[PACKAGES_MAX], tree[STORE_NAME_MAX];
	struct build_request request;
	struct incoming in;
	struct show show;
	int r = options_of(o, packages, &request, e);

	if (r < 0)
		return r;
	_fd_ int dir = store_tree_new(s, tree, e);

	if (dir < 0)
		return dir;
	show_begin(&show, o->json, o->quiet);
	incoming_init(&in, s, &show, ret);
	ref_format(ref, ret->ref);
	r = build_in(dir, &request, &in, e);
	incoming_free(&in);
	store_tree_drop(s, tree);
	return r;
}

int verb_build(const struct image_options *o, struct store *s, struct err *e)
{
	struct incoming_result result;
	struct ref ref;
	int r = ref_parse(o->n_rest ? o->rest[0] : IMAGE_BUILD_NAME, &ref, e);

	if (r == 0 && !ref.tag[0])
		r = err_say(e, -EINVAL, "a built image has a tag, not a digest");
	ref.digest[0] = '\0'; /* no registry answers for one */
	if (r < 0 || (r = image_change(o, s, e)) < 0 || (r = build(o, s, &ref, &result, e)) < 0)
		return r;
	image_done(o, &result);
	return 0;
}
