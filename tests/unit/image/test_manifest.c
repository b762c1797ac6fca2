/* SPDX-License-Identifier: Apache-2.0 */
/* test_manifest.c - Documents of images: accepted ones, and refused ones with their error. */
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/err.h"
#include "base/fd.h"
#include "image/documents.h"

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define CONFIG(type) "\"config\":{\"mediaType\":\"" type "\",\"digest\":\"" A "\",\"size\":7}"
#define LAYER(type) "{\"mediaType\":\"" type "\",\"digest\":\"" B "\",\"size\":9}"
#define OCI_CONFIG CONFIG(MEDIA_OCI_CONFIG)
#define OF(os, arch, variant, digest)                                                              \
	"{\"digest\":\"" digest "\",\"size\":3,\"platform\":{\"os\":\"" os                         \
	"\",\"architecture\":\"" arch "\",\"variant\":\"" variant "\"}}"

static const struct platform amd64 = { "linux", "amd64", "" }, arm64 = { "linux", "arm64", "v8" };

TEST(manifest)
{
	static const struct {
		const char *text, *wrong; /* NULL: fine */
	} cases[] = {
		{ "{\"schemaVersion\":2," OCI_CONFIG
		  ",\"layers\":[" LAYER(MEDIA_OCI_LAYER "+gzip") "]}",
		  NULL },
		{ "{\"mediaType\":\"" MEDIA_DOCKER_MANIFEST "\"," CONFIG(
			  "application/"
			  "vnd.docker.container.image.v1+json") ",\"layers\":[" LAYER("application/vnd.docker.image.rootfs.diff.tar.gzip") "]}",
		  NULL },
		{ "{\"schemaVersion\":1,\"layers\":[]}", "schema 1" },
		{ "{" OCI_CONFIG ",\"layers\":[]}", "0 layers" },
		{ "{" OCI_CONFIG ",\"layers\":[" LAYER(
			  "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip") "]}",
		  "foreign" },
		{ "{" OCI_CONFIG ",\"layers\":[" LAYER(MEDIA_OCI_LAYER "+gzip+encrypted") "]}",
		  "encrypted" },
		{ "{" CONFIG("application/vnd.cncf.helm.config.v1+json") ",\"layers\":[" LAYER(
			  MEDIA_OCI_LAYER) "]}",
		  "helm" },
		{ "{" OCI_CONFIG ",\"layers\":[" LAYER(MEDIA_OCI_LAYER) "],\"manifests\":[]}",
		  "both" },
		{ "{\"mediaType\":\"" MEDIA_OCI_INDEX "\"," OCI_CONFIG
		  ",\"layers\":[" LAYER(MEDIA_OCI_LAYER) "]}",
		  "not of the type" },
		{ "{" OCI_CONFIG ",\"layers\":[{\"mediaType\":\"" MEDIA_OCI_LAYER
		  "\",\"digest\":\"../x\",\"size\":1}]}",
		  "digest" },
		{ "{" OCI_CONFIG ",\"layers\":[{\"mediaType\":\"" MEDIA_OCI_LAYER
		  "\",\"digest\":\"" A "\",\"size\":-1}]}",
		  "size" },
		{ "{" OCI_CONFIG ",\"layers\":[{\"mediaType\":\"" MEDIA_OCI_LAYER
		  "\",\"digest\":\"" A "\",\"size\":9000000000000}]}",
		  "more than" },
		{ "{\"layers\":[1]", "manifest" },
		{ "[]", "not a JSON object" },
		{ "", "manifest" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct manifest m;
		struct err e = { 0 };
		int r = manifest_parse(cases[i].text, strlen(cases[i].text), &m, &e);

		if (cases[i].wrong ? r == 0 || !strstr(e.msg, cases[i].wrong) : r < 0)
			fail_msg("case %zu: %d '%s'", i, r, e.msg);
		if (r == 0) {
			assert_string_equal(m.config.digest, A);
			assert_int_equal(m.n_layers, 1);
			assert_string_equal(m.layers[0].digest, B);
			assert_int_equal(m.layers[0].size, 9);
		}
	}
}

TEST(kind)
{
	static const char index[] = "{\"manifests\":[]}", image[] = "{\"layers\":[]}";

	assert_int_equal(manifest_kind(index, strlen(index), MEDIA_OCI_INDEX "; charset=x", NULL),
			 MANIFEST_INDEX);
	assert_int_equal(manifest_kind(index, strlen(index), NULL, NULL), MANIFEST_INDEX);
	assert_int_equal(manifest_kind(image, strlen(image), MEDIA_DOCKER_MANIFEST, NULL),
			 MANIFEST_IMAGE);
	assert_true(manifest_kind(image, strlen(image), MEDIA_DOCKER_LIST, NULL) < 0);
	assert_true(manifest_kind(image, strlen(image),
				  "application/vnd.docker.distribution.manifest.v1+prettyjws",
				  NULL) < 0);
}

static int choose(const char *text, const struct platform *p, char digest[IMAGE_DIGEST_MAX],
		  struct err *e)
{
	struct blob b = { 0 };
	int r = index_choose(text, strlen(text), p, &b, e);

	memcpy(digest, b.digest, IMAGE_DIGEST_MAX);
	return r;
}

TEST(index)
{
	static const char three[] = "{\"manifests\":[" OF("unknown", "unknown", "", C) "," OF(
		"linux", "arm64", "v8", B) "," OF("linux", "amd64", "", A) "]}";
	static const char levels[] = "{\"manifests\":[" OF("linux", "amd64", "v3", B) "," OF(
		"linux", "amd64", "v1", A) "]}";
	static const char plain_arm[] = "{\"manifests\":[" OF("linux", "arm64", "", A) "]}";
	char digest[IMAGE_DIGEST_MAX];
	struct err e = { 0 };

	assert_int_equal(choose(three, &amd64, digest, &e), 0);
	assert_string_equal(digest, A);
	assert_int_equal(choose(three, &arm64, digest, &e), 0);
	assert_string_equal(digest, B);
	assert_int_equal(choose(levels, &amd64, digest, &e), 0);
	assert_string_equal(digest, A);
	assert_int_equal(choose(plain_arm, &arm64, digest, &e), 0);
	assert_int_equal(choose(plain_arm, &amd64, digest, &e), -2);
	assert_non_null(strstr(e.msg, "linux/arm64"));
	assert_non_null(strstr(e.msg, "linux/amd64"));
}

TEST(config)
{
	static const char good[] =
		"{\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{\"type\":\"layers\","
		"\"diff_ids\":[\"" A "\",\"" B
		"\"]},\"config\":{\"Env\":[\"A=b\",\"P=\"],\"Cmd\":[\"sh\",\"-c\",\"a\\nb\"],"
		"\"Entrypoint\":null,"
		"\"WorkingDir\":\"/w\",\"User\":\"1:2\"}}";
	static const char *const bad[] = {
		"{}",
		"{\"rootfs\":{\"diff_ids\":[\"sha256:1\"]}}",
		"{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"Env\":[\"A\"]}}",
		"{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"Env\":[\"=x\"]}}",
		"{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"Env\":\"A=b\"}}",
		"{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"Cmd\":[1]}}",
		"{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"Cmd\":[\"a\\u0001\"]}}",
		"{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"WorkingDir\":\"w\"}}",
		"{\"rootfs\":{\"diff_ids\":[]},\"config\":{\"User\":\"a\\nb\"}}",
	};
	struct config c;

	assert_int_equal(config_parse(good, strlen(good), &c, NULL), 0);
	assert_int_equal(c.n_layers, 2);
	assert_string_equal(c.diff_ids[1], B);
	assert_string_equal(c.run.env[0], "A=b");
	assert_null(c.run.env[2]);
	assert_string_equal(c.run.cmd[2], "a\nb");
	assert_null(c.run.entrypoint[0]);
	assert_string_equal(c.run.workdir, "/w");
	assert_string_equal(c.run.user, "1:2");
	config_free(&c);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = { 0 };

		if (config_parse(bad[i], strlen(bad[i]), &c, &e) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_true(e.msg[0]);
	}
}
