/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - From an archive to the store: the same checks and the same unpackers as a pull has. */
#include "image/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/layer.h"
#include "image/publish.h"

struct import {
	const struct store *s;
	struct show *show;
	struct pull_result *ret;
	struct archive_image a;
	struct config c;
	bool here[IMAGE_LAYERS_MAX];
	struct layer_job jobs[IMAGE_LAYERS_MAX];
	char trees[IMAGE_LAYERS_MAX][STORE_NAME_MAX];
	char seals[IMAGE_LAYERS_MAX][IMAGE_DIGEST_MAX];
};

/* A directory as it is; an archive unpacked into one, whose name in tmp is @tree then. */
static int open_source(const struct store *s, const char *path, char tree[STORE_NAME_MAX],
		       struct err *e)
{
	_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct unpack_report report;
	struct layer_job job;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open %.300s", path);
	if (S_ISDIR(st.st_mode))
		return TAKE_FD(fd);
	if (!S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "%.300s is neither a file nor a directory", path);
	r = layer_begin(&job, s, fd, (uint64_t)st.st_size, e);
	if (r == 0)
		r = layer_end(&job, s, NULL, &report, e);
	if (r < 0)
		return err_wrap(e, "%.200s", path);
	memcpy(tree, job.tree, sizeof(job.tree));
	int dir = openat(s->tmp, tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return dir < 0 ? err_set(e, -errno, "open what was unpacked") : dir;
}

static bool is_here(const struct import *im, size_t i)
{
	if (store_has_layer(im->s, im->c.diff_ids[i]))
		return true;
	for (size_t k = 0; k < i; k++)
		if (strcmp(im->c.diff_ids[k], im->c.diff_ids[i]) == 0)
			return true;
	return false;
}

static int begin(struct import *im, size_t i, struct err *e)
{
	const struct blob *b = &im->a.m.layers[i];
	int r;

	im->here[i] = is_here(im, i);
	show_row(im->show, i, im->here[i] ? SHOW_HERE : SHOW_UNPACKS, b->size);
	show_tick(im->show);
	if (im->here[i])
		return 0;
	r = archive_check_layer(im->a.layers[i], b, e);
	return r == 0 ? layer_begin(&im->jobs[i], im->s, im->a.layers[i], b->size, e) : r;
}

static int end(struct import *im, size_t i, struct err *e)
{
	struct unpack_report report;
	int r;

	if (im->here[i])
		return 0;
	r = layer_end(&im->jobs[i], im->s, im->c.diff_ids[i], &report, e);
	if (r < 0)
		return err_wrap(e, "layer %zu", i + 1);
	memcpy(im->trees[i], im->jobs[i].tree, sizeof(im->trees[i]));
	memcpy(im->seals[i], report.seal, sizeof(im->seals[i]));
	im->ret->loaded++;
	im->ret->dropped.devices += report.devices;
	im->ret->dropped.set_ids += report.set_ids;
	im->ret->dropped.xattrs += report.xattrs;
	im->ret->dropped.ids += report.ids;
	show_row(im->show, i, SHOW_DONE, im->a.m.layers[i].size);
	show_tick(im->show);
	return 0;
}

/* As many at once as there are processors, ended in their order. */
static int unpack_layers(struct import *im, struct err *e)
{
	size_t n = im->a.m.n_layers, most = get_nprocs() > 1 ? (size_t)get_nprocs() : 1, begun = 0;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		(void)show_add(im->show, im->a.m.layers[i].digest, im->a.m.layers[i].size);
	for (size_t ended = 0; ended < n && r == 0; ended++) {
		while (begun < n && begun - ended < most && r == 0)
			r = begin(im, begun++, e);
		if (r == 0)
			r = end(im, ended, e);
	}
	return r;
}

static int publish_it(struct import *im, struct err *e)
{
	struct publish_layer layers[IMAGE_LAYERS_MAX];
	const struct publish what = { .ref = im->ret->ref,
				      .digest = im->a.digest,
				      .config_digest = im->a.m.config.digest,
				      .manifest = &im->a.manifest,
				      .config = &im->a.config,
				      .layers = layers,
				      .n_layers = im->a.m.n_layers };
	int r;

	for (size_t i = 0; i < im->a.m.n_layers; i++)
		layers[i] = (struct publish_layer){ im->c.diff_ids[i], im->trees[i], im->seals[i] };
	r = publish(im->s, &what, e);
	if (r == 0)
		memset(im->trees, 0, sizeof(im->trees));
	return r;
}

static int check(struct import *im, struct err *e)
{
	const struct platform here = platform_here();
	int r = config_parse(buf_str(&im->a.config), im->a.config.len, &im->c, e);

	if (r < 0)
		return r;
	if (im->c.n_layers != im->a.m.n_layers)
		return err_say(e, -EBADMSG, "the image has %zu layers and %zu in its configuration",
			       im->a.m.n_layers, im->c.n_layers);
	if (strcmp(im->c.os, here.os) != 0 || strcmp(im->c.arch, here.arch) != 0)
		return err_say(e, -ENOENT, "the image is made for %s/%s, and this machine is %s/%s",
			       im->c.os, im->c.arch, here.os, here.arch);
	im->ret->layers = im->a.m.n_layers;
	memcpy(im->ret->digest, im->a.digest, sizeof(im->ret->digest));
	return 0;
}

static int take_name(struct import *im, const struct ref *request, struct ref *ret, struct err *e)
{
	if (request)
		*ret = *request;
	else if (!im->a.ref[0])
		return err_say(
			e, -EINVAL,
			"the archive does not say what the image is called: --name REF does");
	else if (ref_parse(im->a.ref, ret, e) < 0)
		return -EINVAL;
	ret->digest[0] = '\0'; /* it came from no registry that could be held to one */
	if (!ret->tag[0])
		return err_say(e, -EINVAL, "--name: an imported image has a tag, not a digest");
	ref_format(ret, im->ret->ref);
	return 0;
}

int import(const struct store *s, const char *path, const struct ref *request,
	   int (*allowed)(void *arg, const struct ref *ref, struct err *e), void *arg,
	   struct show *show, struct pull_result *ret, struct err *e)
{
	struct import im = { .s = s, .show = show, .ret = ret };
	char tree[STORE_NAME_MAX] = "";
	struct ref ref;
	int r;

	*ret = (struct pull_result){ 0 };
	_fd_ int dir = open_source(s, path, tree, e);

	if (dir < 0)
		return dir;
	r = archive_read(dir, request ? request->tag : NULL, &im.a, e);
	if (r == 0)
		r = take_name(&im, request, &ref, e);
	if (r == 0)
		r = allowed(arg, &ref, e);
	if (r == 0)
		r = check(&im, e);
	if (r == 0)
		r = unpack_layers(&im, e);
	if (r == 0)
		r = publish_it(&im, e);
	show_end(show);
	for (size_t i = 0; i < IMAGE_LAYERS_MAX; i++) {
		layer_abort(&im.jobs[i], s);
		if (im.trees[i][0])
			store_tree_drop(s, im.trees[i]);
	}
	if (tree[0])
		store_tree_drop(s, tree);
	archive_image_free(&im.a);
	config_free(&im.c);
	return r;
}
