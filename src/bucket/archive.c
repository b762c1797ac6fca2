/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c - See archive.h. */
#include "bucket/archive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "init/tar.h"

#define PAX_MAX (64u << 10)

static uint64_t padding(uint64_t size)
{
	return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}

/* ---- out ------------------------------------------------------------------------------------------------------- */

int archive_data(int fd, const void *data, size_t len)
{
	return fd_write_all(fd, data, len);
}

int archive_pad(int fd, uint64_t size)
{
	static const char zeros[TAR_BLOCK];

	return fd_write_all(fd, zeros, (size_t)padding(size));
}

int archive_end(int fd)
{
	static const char zeros[2 * TAR_BLOCK];

	return fd_write_all(fd, zeros, sizeof(zeros));
}

static int put_records(int fd, const char *path, uint64_t size)
{
	char data[4 * S3_KEY_MAX], number[24];
	uint8_t block[TAR_BLOCK];
	struct tar_head h = { .type = 'x', .name = "pax", .mode = 0644 };
	size_t len = tar_record_put(data, sizeof(data), "path", path, strlen(path));

	if (len == 0)
		return -ENAMETOOLONG;
	if (size > TAR_SIZE_MAX) {
		(void)snprintf(number, sizeof(number), "%" PRIu64, size);
		len += tar_record_put(data + len, sizeof(data) - len, "size", number,
				      strlen(number));
	}
	h.size = len;
	tar_format(block, &h);
	int r = fd_write_all(fd, block, sizeof(block));

	if (r == 0)
		r = fd_write_all(fd, data, len);
	return r == 0 ? archive_pad(fd, len) : r;
}

int archive_head(int fd, const char *path, bool dir, uint64_t size, int64_t mtime)
{
	uint8_t block[TAR_BLOCK];
	struct tar_head h = { .type = dir ? '5' : '0',
			      .mode = dir ? 0755 : 0644,
			      .size = size <= TAR_SIZE_MAX ? size : 0,
			      .mtime = mtime > 0 ? mtime : 0 };
	int r = 0;

	if (strlen(path) > TAR_NAME_MAX || size > TAR_SIZE_MAX)
		r = put_records(fd, path, size);
	(void)snprintf(h.name, sizeof(h.name), "%.*s", (int)TAR_NAME_MAX, path);
	tar_format(block, &h);
	return r < 0 ? r : fd_write_all(fd, block, sizeof(block));
}

/* ---- in -------------------------------------------------------------------------------------------------------- */

int archive_read(int fd, void *data, size_t len)
{
	char *at = data;

	while (len > 0) {
		ssize_t n = read(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int archive_skip(int fd, uint64_t size, bool padding_only)
{
	char room[16u << 10];
	uint64_t left = (padding_only ? 0 : size) + padding(size);
	int r = 0;

	while (r == 0 && left > 0) {
		size_t n = left < sizeof(room) ? (size_t)left : sizeof(room);

		r = archive_read(fd, room, n);
		left -= n;
	}
	return r;
}

/* "path" and "size" for the entry that follows. */
static int take_records(int fd, uint64_t size, struct archive_entry *ret, bool *has_path,
			int64_t *sized)
{
	char data[PAX_MAX];
	struct tar_record rec;
	size_t at = 0;
	int r = size <= sizeof(data) ? archive_read(fd, data, (size_t)size) : -EFBIG;

	if (r == 0)
		r = archive_skip(fd, size, true);
	if (r < 0)
		return r;
	while ((r = tar_record_next(data, (size_t)size, &at, &rec)) > 0) {
		if (tar_record_is(&rec, "size") && tar_record_number(&rec, sized) < 0)
			return -EBADMSG;
		if (!tar_record_is(&rec, "path"))
			continue;
		if (rec.value_len >= sizeof(ret->path) || memchr(rec.value, '\0', rec.value_len))
			return -ENAMETOOLONG;
		memcpy(ret->path, rec.value, rec.value_len);
		ret->path[rec.value_len] = '\0';
		*has_path = true;
	}
	return r;
}

static void tidy(char *path)
{
	size_t skip = 0, len;

	while (path[skip] == '.' && path[skip + 1] == '/')
		skip += 2;
	len = strlen(path + skip);
	memmove(path, path + skip, len + 1);
	while (len > 0 && path[len - 1] == '/')
		path[--len] = '\0';
}

int archive_next(int fd, struct archive_entry *ret, struct err *e)
{
	uint8_t block[TAR_BLOCK];
	struct tar_head h;
	bool has_path = false;
	int64_t sized = -1;

	for (;;) {
		int r = archive_read(fd, block, sizeof(block));

		if (r == 0)
			r = tar_parse(block, &h);
		if (r == 0)
			return 0;
		if (r < 0)
			return err_set(e, r, "the archive of what changed");
		if (h.type == 'x') {
			r = take_records(fd, h.size, ret, &has_path, &sized);
		} else if (h.type == 'g') {
			r = archive_skip(fd, h.size, false);
		} else {
			if (!has_path)
				memcpy(ret->path, h.name, sizeof(h.name));
			ret->type = h.type;
			ret->size = sized >= 0 ? (uint64_t)sized : h.size;
			tidy(ret->path);
			return 1;
		}
		if (r < 0)
			return err_set(e, r, "the archive of what changed");
	}
}
