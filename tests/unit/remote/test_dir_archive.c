/* SPDX-License-Identifier: Apache-2.0 */
/* test_dir_archive.c - Directories as archives, there and back; and archives that mean harm. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "archive/tar_writer.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "remote/dir_archive.h"

struct place_of_test {
	char dir[UNIT_DIR_MAX];
	int from, to, root;
};

static int set_up(void **state)
{
	static struct place_of_test p;

	assert_true(unit_dir_make(p.dir, false));
	p.root = open(p.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(p.root, "from", 0755), 0);
	assert_int_equal(mkdirat(p.root, "to", 0755), 0);
	p.from = openat(p.root, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p.to = openat(p.root, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &p;
	return 0;
}

static int tear_down(void **state)
{
	struct place_of_test *p = *state;

	fd_close(p->from);
	fd_close(p->to);
	fd_close(p->root);
	return unit_dir_remove(p->dir);
}

struct unit_fixture unit_fixture = { set_up, tear_down };

static void write_file(int dir, const char *name, const char *text, size_t len, mode_t mode)
{
	_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, len), 0);
}

static void pack_all(const char *dir, struct buf *out, size_t step)
{
	struct err e = { 0 };
	struct pack p;
	char data[4096];
	int64_t n;

	assert_int_equal(pack_open(&p, dir, &e), 0);
	while ((n = pack_read(&p, data, step, &e)) > 0)
		assert_int_equal(buf_append(out, data, (size_t)n), 0);
	assert_int_equal(n, 0);
	pack_close(&p);
}

static int unpack_all(int dir, const struct buf *b, size_t step, uint64_t *skipped)
{
	struct err e = { 0 };
	struct unpack u;
	int r = 0;

	unpack_open(&u, dir);
	for (size_t at = 0; r == 0 && at < b->len; at += step)
		r = unpack_feed(&u, buf_str(b) + at, b->len - at < step ? b->len - at : step, &e);
	if (r == 0)
		r = unpack_end(&u, &e);
	*skipped = u.reader.skipped;
	unpack_close(&u);
	return r;
}

TEST(there_and_back)
{
	struct place_of_test *p = *test_state;
	char path[128], deep[300], text[64], big[3000];
	struct stat st;
	uint64_t skipped;

	memset(big, 'x', sizeof(big));
	write_file(p->from, "empty", "", 0, 0600);
	write_file(p->from, "exact", big, 1024, 0644);
	write_file(p->from, "script", big, sizeof(big), 0755);
	assert_int_equal(mkdirat(p->from, "sub", 0700), 0);
	memset(deep, 'n', sizeof(deep));
	memcpy(deep, "sub/", 4);
	deep[200] = '\0';
	write_file(p->from, deep, "long name", 9, 0644);
	assert_int_equal(symlinkat("../script", p->from, "sub/link"), 0);
	assert_int_equal(mkfifoat(p->from, "pipe", 0600), 0);
	(void)snprintf(path, sizeof(path), "%s/from", p->dir);
	for (size_t step = 1; step <= 4096; step = step * 7 + 3) {
		_buf_ struct buf archive = BUF_INIT(1u << 20);

		pack_all(path, &archive, step > 4096 ? 4096 : step);
		assert_int_equal(archive.len % TAR_BLOCK, 0);
		assert_int_equal(unpack_all(p->to, &archive, step, &skipped), 0);
		assert_int_equal(skipped, 0);
	}
	assert_int_equal(fstatat(p->to, "script", &st, 0), 0);
	assert_int_equal(st.st_size, sizeof(big));
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(fstatat(p->to, "empty", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
	assert_true(fd_read_file(p->to, deep, text, sizeof(text)) == 9);
	assert_true(readlinkat(p->to, "sub/link", text, sizeof(text)) == 9);
	assert_int_equal(fstatat(p->to, "pipe", &st, AT_SYMLINK_NOFOLLOW), -1);
}

static int append(void *arg, const void *data, size_t len)
{
	return buf_append(arg, data, len);
}

static void put(struct buf *b, char type, const char *name, const char *link, const char *data)
{
	const struct tar_writer w = { append, b };
	struct tar_entry en = {
		.type = type, .mode = 04755, .size = strlen(data), .path = name, .link = link
	};

	assert_int_equal(tar_put_head(&w, &en), 0);
	assert_int_equal(buf_append(b, data, strlen(data)), 0);
	assert_int_equal(tar_put_padding(&w, strlen(data)), 0);
}

static void end(struct buf *b)
{
	assert_int_equal(tar_put_end(&(struct tar_writer){ append, b }), 0);
}

TEST(bad_names)
{
	static const char *const names[] = { "/abs", "../up", "a/../../up", "a/.." };
	struct place_of_test *p = *test_state;
	struct stat st;
	uint64_t skipped;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		_buf_ struct buf b = BUF_INIT(1u << 20);

		put(&b, '0', names[i], "", "evil");
		end(&b);
		assert_int_equal(unpack_all(p->to, &b, 100, &skipped), -EBADMSG);
	}
	assert_int_equal(fstatat(p->root, "up", &st, 0), -1);
}

TEST(through_links)
{
	struct place_of_test *p = *test_state;
	_buf_ struct buf b = BUF_INIT(1u << 20), c = BUF_INIT(1u << 20), d = BUF_INIT(1u << 20);
	uint64_t skipped;
	char text[64];
	struct stat st;

	write_file(p->root, "victim", "good", 4, 0644);
	/* Links that lead out are not made. */
	put(&b, '2', "out", "../victim", "");
	put(&b, '2', "abs", "/etc/passwd", "");
	put(&b, '2', "dot", ".", "");
	put(&b, '2', "sly", "dot/dot/../../victim", "");
	put(&b, '1', "hard", "out", "");
	put(&b, '3', "device", "", "");
	end(&b);
	assert_int_equal(unpack_all(p->to, &b, 512, &skipped), 0);
	assert_int_equal(skipped, 5);
	/* Nor is anything written through one that is there already. */
	assert_int_equal(symlinkat("..", p->to, "door"), 0);
	put(&c, '0', "door/victim", "", "evil");
	end(&c);
	assert_true(unpack_all(p->to, &c, 512, &skipped) < 0);
	assert_int_equal(symlinkat("../victim", p->to, "file"), 0);
	put(&d, '0', "file", "", "evil");
	end(&d);
	assert_int_equal(unpack_all(p->to, &d, 512, &skipped), 0);
	assert_true(fd_read_file(p->root, "victim", text, sizeof(text)) == 4);
	assert_string_equal(text, "good");
	assert_int_equal(fstatat(p->to, "file", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07000, 0); /* no bits that give rights */
}

TEST(damaged)
{
	struct place_of_test *p = *test_state;
	_buf_ struct buf b = BUF_INIT(1u << 20);
	uint64_t skipped;

	put(&b, '0', "whole", "", "content");
	assert_int_equal(unpack_all(p->to, &b, 100, &skipped), -EBADMSG); /* no end */
	b.data[5] ^= 1;
	assert_int_equal(unpack_all(p->to, &b, 100, &skipped), -EBADMSG); /* checksum */
}
