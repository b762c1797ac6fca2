/* SPDX-License-Identifier: Apache-2.0 */
/* test_bucket.c - Lists that are no trees, manifests, archives. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "archive/tar_writer.h"
#include "base/err.h"
#include "base/fd.h"
#include "bucket/bucket.h"

static struct s3_page page(const char *const *keys, size_t n)
{
	struct s3_page p = { .list = calloc(n, sizeof(struct s3_object)), .n = n };

	for (size_t i = 0; i < n; i++) {
		p.list[i].key = strdup(keys[i]);
		p.list[i].key_len = strlen(keys[i]);
		p.list[i].size = 10;
	}
	return p;
}

static int check(const char *const *keys, size_t n, const char *prefix, struct err *e)
{
	_listing_ struct listing l = { 0 };
	struct s3_page p = page(keys, n);
	int r = listing_add(&l, &p, prefix, e);

	s3_page_free(&p);
	return r == 0 ? listing_check(&l, e) : r;
}

TEST(listing)
{
	const char *good[] = { "p/", "p/b", "p/a/c", "p/a/", "p/a-b" };
	const char *escape[] = { "p/ok", "p/a/../b", "p//x" };
	const char *both[] = { "a", "a!", "a/b" };
	const char *mark[] = { "a", "a/" };
	const char *other[] = { "q/a" };
	struct err e = { 0 };

	assert_int_equal(check(good, 5, "p/", &e), 0);
	assert_int_equal(check(escape, 3, "p/", &e), -EINVAL);
	assert_non_null(strstr(e.msg, "2 keys"));
	assert_non_null(strstr(e.msg, "'a/../b'"));
	assert_non_null(strstr(e.msg, "'/x'"));
	assert_int_equal(check(both, 3, "", &e), -EINVAL);
	assert_non_null(strstr(e.msg, "'a/b'"));
	assert_int_equal(check(mark, 2, "", &e), -EINVAL);
	assert_int_equal(check(other, 1, "p/", &e), -EBADMSG);
}

TEST(manifest)
{
	static const char text[] = "12 e2 h2 b c\0"
				   "0   a\n\0";
	_manifest_ struct manifest m = { 0 };
	char temp[] = "/tmp/caisson-manifest-XXXXXX";
	struct bucket_req q = { .work = "0123456789abcdef0123456789abcdef" };
	struct job j = { .q = &q };
	struct err e = { 0 };

	assert_int_equal(manifest_parse(text, sizeof(text) - 1, &m), 0);
	assert_int_equal(m.n, 2);
	assert_string_equal(m.list[0].path, "a\n");
	assert_string_equal(m.list[0].etag, "");
	assert_string_equal(manifest_find(&m, "b c")->etag, "e2");
	assert_string_equal(manifest_find(&m, "b c")->sha256, "h2");
	assert_int_equal(manifest_set(&m, "aa", 5, "x", "y"), 0);
	assert_string_equal(m.list[1].path, "aa");
	assert_int_equal(manifest_set(&m, "aa", 6, "x", "z"), 0);
	manifest_drop(&m, manifest_find(&m, "a\n"));
	assert_int_equal(m.n, 2);

	assert_non_null(mkdtemp(temp));
	j.dir = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(manifest_write(&j, false, &m, &e), 0);
	manifest_free(&m);
	assert_int_equal(manifest_read(&j, &m, &e), -ENOENT); /* it does not count yet */
	assert_int_equal(manifest_keep(&j, &e), 0);
	assert_int_equal(manifest_read(&j, &m, &e), 0);
	assert_int_equal(m.n, 2);
	assert_int_equal(manifest_find(&m, "aa")->size, 6);
	assert_string_equal(manifest_find(&m, "aa")->sha256, "z");
	assert_int_equal(manifest_forget(&j, &e), 0);
	assert_int_equal(close(j.dir), 0);
	assert_int_equal(rmdir(temp), 0);
}

TEST(manifest_refused)
{
	static const char *const bad[] = { "x", "1 e", "1 e h", "x e h p", "1 e h ", "-1 e h p" };
	struct manifest m;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(manifest_parse(bad[i], strlen(bad[i]) + 1, &m), -EBADMSG);
	assert_int_equal(manifest_parse("1 e h p", 7, &m), -EBADMSG); /* no end */
}

/*
 * Two entries with content: one is read, the other passed over; the pipe is read no further than
 * the end.
 */
TEST(archive)
{
	char long_name[301], data[8];
	struct archive_in in;
	struct tar_entry a;
	struct err e = { 0 };
	int ends[2];
	const struct tar_writer w = { tar_put_fd, &ends[1] };

	memset(long_name, 'n', 300);
	long_name[150] = '/';
	long_name[300] = '\0';
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(tar_put_head(&w, &(struct tar_entry){ .type = '5', .path = "./d/" }), 0);
	a = (struct tar_entry){ .type = '0', .path = long_name, .size = 5 };
	assert_int_equal(tar_put_head(&w, &a), 0);
	assert_int_equal(w.put(w.arg, "hello", 5) | tar_put_padding(&w, 5), 0);
	a = (struct tar_entry){ .type = '0', .path = "skipped", .size = 3 };
	assert_int_equal(tar_put_head(&w, &a), 0);
	assert_int_equal(w.put(w.arg, "xyz", 3) | tar_put_padding(&w, 3), 0);
	assert_int_equal(tar_put_end(&w), 0);
	(void)close(ends[1]);
	archive_open(&in, ends[0]);
	assert_int_equal(archive_next(&in, &a, &e), 1);
	assert_string_equal(a.path, "d");
	assert_int_equal(a.type, '5');
	assert_int_equal(archive_next(&in, &a, &e), 1);
	assert_string_equal(a.path, long_name);
	assert_int_equal(a.size, 5);
	assert_int_equal(archive_read(&in, data, 2) | archive_read(&in, data + 2, 3), 0);
	assert_memory_equal(data, "hello", 5);
	assert_int_equal(archive_next(&in, &a, &e), 1);
	assert_string_equal(a.path, "skipped");
	assert_int_equal(archive_next(&in, &a, &e), 0);
	assert_int_equal(archive_next(&in, &a, &e), 0);
	assert_int_equal(read(ends[0], data, 8), 8); /* the second block of the end */
	archive_free(&in);
	/* An archive that ends in the middle is invalid. */
	archive_open(&in, ends[0]);
	assert_int_equal(archive_next(&in, &a, &e), -ENODATA);
	archive_free(&in);
	(void)close(ends[0]);
}
