/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c - A store made by hand: opening an image, its lease, damage, and the collector. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "image/documents.h"
#include "image/image_store.h"
#include "image/incoming.h"
#include "image/open.h"
#include "image/unpack.h"

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

struct place {
	char path[UNIT_DIR_MAX];
	struct store s;
};

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	struct err e = { 0 };

	assert_true(unit_dir_make(p->path, false));
	assert_int_equal(store_open(&p->s, p->path, true, &e), 0);
	assert_int_equal(store_change(&p->s, NULL, &e), 0);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	store_close(&p->s);
	assert_int_equal(tree_remove(AT_FDCWD, p->path, NULL), 0);
	free(p);
	return 0;
}

static const char *config_of(const char *one, const char *two, struct buf *b)
{
	(void)buf_printf(
		b,
		"{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Env\":[\"A=b\"],"
		"\"WorkingDir\":\"/w\"},"
		"\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\",\"%s\"]}}",
		one, two);
	return buf_str(b);
}

/* An image of two layers, unpacked and all. */
static void put(struct store *s, const char *ref, const char *one, const char *two,
		char digest[IMAGE_DIGEST_MAX])
{
	static struct incoming in;
	struct incoming_result made;
	struct show show = { .mode = SHOW_NOTHING };
	struct err e = { 0 };

	incoming_init(&in, s, &show, &made);
	(void)snprintf(made.ref, sizeof(made.ref), "%s", ref);
	in.m.n_layers = 2;
	memcpy(in.c.diff_ids[0], one, strlen(one) + 1);
	memcpy(in.c.diff_ids[1], two, strlen(two) + 1);
	(void)config_of(one, two, &in.config);
	assert_int_equal(digest_of(buf_str(&in.config), in.config.len, in.m.config.digest), 0);
	(void)buf_printf(&in.manifest,
			 "{\"config\":{\"mediaType\":\"" MEDIA_OCI_CONFIG
			 "\",\"digest\":\"%s\",\"size\":%zu},\"layers\":["
			 "{\"mediaType\":\"" MEDIA_OCI_LAYER "\",\"digest\":\"%s\",\"size\":1},"
			 "{\"mediaType\":\"" MEDIA_OCI_LAYER "\",\"digest\":\"%s\",\"size\":1}]}",
			 in.m.config.digest, in.config.len, one, two);
	assert_int_equal(digest_of(buf_str(&in.manifest), in.manifest.len, made.digest), 0);
	for (int i = 0; i < 2; i++)
		if (!store_has_layer(s, in.c.diff_ids[i])) {
			_fd_ int dir = store_tree_new(s, in.layers[i].tree, &e);

			assert_true(dir >= 0);
			fd_close(openat(dir, "file", O_WRONLY | O_CREAT, 0644));
			memcpy(in.layers[i].seal, A, sizeof(in.layers[i].seal));
		}
	assert_int_equal(incoming_publish(&in, &e), 0);
	memcpy(digest, made.digest, sizeof(made.digest));
	incoming_free(&in);
}

TEST(open, set_up, tear_down)
{
	struct place *p = *test_state;
	char digest[IMAGE_DIGEST_MAX];
	struct stat top, st;
	struct image im;
	struct err e = { 0 };

	put(&p->s, "docker.io/library/x:latest", A, B, digest);
	assert_int_equal(image_open(p->s.dir, "x", &im, &e), 0);
	assert_string_equal(im.ref, "docker.io/library/x:latest");
	assert_string_equal(im.digest, digest);
	assert_int_equal(im.n_layers, 2);
	assert_string_equal(im.config.env[0], "A=b");
	assert_string_equal(im.config.workdir, "/w");
	assert_int_equal(fstat(im.layers[0], &top), 0);
	assert_int_equal(fstatat(p->s.layers, digest_hex(B), &st, 0), 0);
	assert_int_equal(top.st_ino, st.st_ino); /* the top one first */
	assert_true(gc_in_use(&p->s, digest));
	image_close(&im);
	assert_false(gc_in_use(&p->s, digest));
	assert_int_equal(image_open(p->s.dir, "y:1", &im, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "caisson image pull y:1"));
	assert_int_equal(image_open(p->s.dir, "Y", &im, &e), -EINVAL);
}

TEST(damage, set_up, tear_down)
{
	struct place *p = *test_state;
	char digest[IMAGE_DIGEST_MAX];
	struct gc_result freed;
	struct image im;
	struct err e = { 0 };

	put(&p->s, "docker.io/library/x:latest", A, B, digest);
	_fd_ int fd = openat(p->s.blobs, digest_hex(digest), O_RDWR);

	assert_int_equal(pwrite(fd, " ", 1, 0), 1);
	assert_int_equal(image_open(p->s.dir, "x", &im, &e), -EBADMSG);
	/* Its layers are unknown: so nothing is removed. */
	assert_int_equal(gc_run(&p->s, true, &freed, &e), -EBADMSG);
	assert_true(store_has_layer(&p->s, A) && store_has_layer(&p->s, B));
	assert_int_equal(pwrite(fd, "{", 1, 0), 1);
	assert_int_equal(image_open(p->s.dir, "x", &im, &e), 0);
	image_close(&im);
	assert_int_equal(tree_remove(p->s.layers, digest_hex(A), NULL), 0);
	assert_int_equal(image_open(p->s.dir, "x", &im, &e), -ENOENT);
}

static void forget(struct store *s, const char *text)
{
	_refs_ struct refs refs = { 0 };
	struct ref want;

	assert_int_equal(ref_parse(text, &want, NULL), 0);
	assert_int_equal(refs_load(s, &refs, NULL), 0);
	refs_drop(&refs, refs_find(&refs, &want));
	assert_int_equal(refs_save(s, &refs, NULL), 0);
}

TEST(collector, set_up, tear_down)
{
	struct place *p = *test_state;
	char one[IMAGE_DIGEST_MAX], two[IMAGE_DIGEST_MAX];
	struct gc_result freed;
	struct image im;
	struct err e = { 0 };

	put(&p->s, "docker.io/library/x:latest", A, B, one);
	put(&p->s, "docker.io/library/y:latest", A, C, two);
	assert_int_equal(image_open(p->s.dir, "x", &im, &e), 0);
	forget(&p->s, "x");
	/* Without a name, but in use. */
	assert_int_equal(gc_run(&p->s, true, &freed, &e), 0);
	assert_int_equal(freed.layers, 0);
	assert_true(store_has_layer(&p->s, B));
	/* The lease belongs to the descriptor, not to the process that has it. */
	int copy = dup(im.lease);

	image_close(&im);
	assert_int_equal(gc_run(&p->s, true, &freed, &e), 0);
	assert_true(store_has_layer(&p->s, B));
	fd_close(copy);
	assert_int_equal(gc_run(&p->s, true, &freed, &e), 0);
	assert_int_equal(freed.layers, 1);
	assert_int_equal(freed.images, 1);
	assert_false(store_has_layer(&p->s, B));
	assert_true(store_has_layer(&p->s, A) && store_has_layer(&p->s, C));
	assert_int_equal(image_open(p->s.dir, "y", &im, &e), 0);
	image_close(&im);
}

TEST(refs)
{
	static const char *const bad[] = {
		A " 1 docker.io/library/x:latest", /* no end */
		A " 1 x\n",                        /* not canonical */
		A " x docker.io/library/x:latest\n",
		A "  docker.io/library/x:latest\n",
		"sha256:1 1 docker.io/library/x:latest\n",
		"\n",
	};
	static const char good[] = A " 1 docker.io/library/x:latest\n" B " 2 r.io/y@" C "\n";
	struct refs refs;
	struct ref want;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(refs_parse(bad[i], strlen(bad[i]), &refs, NULL), -EBADMSG);
	assert_int_equal(refs_parse(good, strlen(good), &refs, NULL), 0);
	assert_int_equal(refs.n, 2);
	assert_int_equal(ref_parse("x@" A, &want, NULL), 0);
	assert_ptr_equal(refs_find(&refs, &want), &refs.rows[0]);
	assert_int_equal(ref_parse("r.io/y@" C, &want, NULL), 0);
	assert_ptr_equal(refs_find(&refs, &want), &refs.rows[1]);
	assert_int_equal(ref_parse("z@" A, &want, NULL), 0);
	assert_null(refs_find(&refs, &want));
	refs_free(&refs);
}

TEST(names)
{
	static const struct {
		const char *name;
		int kind;
		const char *path;
	} cases[] = {
		{ "a/b", NAME_PLAIN, "a/b" },
		{ "./a//b/", NAME_PLAIN, "a/b" },
		{ "/etc/passwd", NAME_PLAIN, "etc/passwd" },
		{ "/", NAME_ROOT, "" },
		{ "./", NAME_ROOT, "" },
		{ "a/.wh.b", NAME_WHITEOUT, "a/b" },
		{ ".wh.b", NAME_WHITEOUT, "b" },
		{ "a/.wh..wh..opq", NAME_OPAQUE, "a" },
		{ ".wh..wh..opq", NAME_OPAQUE, "" },
		{ ".wh..wh.plnk/x", NAME_PLAIN, ".wh..wh.plnk/x" },
		{ ".wh..wh.aufs", NAME_IGNORED, NULL },
		{ "a/../b", -EPERM, NULL },
		{ "..", -EPERM, NULL },
		{ ".wh...", -EPERM, NULL },
		{ ".wh..", -EPERM, NULL },
		{ ".wh.", -EPERM, NULL },
		{ "..a/b..", NAME_PLAIN, "..a/b.." },
	};
	char path[UNPACK_PATH_MAX], deep[3 * UNPACK_DEPTH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (unpack_name(cases[i].name, path) != cases[i].kind)
			fail_msg("%s", cases[i].name);
		if (cases[i].path)
			assert_string_equal(path, cases[i].path);
	}
	for (size_t i = 0; i < sizeof(deep); i += 2)
		memcpy(deep + i, "a/", 2);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(unpack_name(deep, path), -EPERM);
}
