/* SPDX-License-Identifier: Apache-2.0 */
/* image_digest.c - Hashes with the name of their algorithm before them. */
#include "image/image_digest.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define PREFIX "sha256:"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

int digest_end(struct hash *h, char ret[IMAGE_DIGEST_MAX])
{
	if (!hash_end(h, ret + PREFIX_LEN))
		return -EIO;
	memcpy(ret, PREFIX, PREFIX_LEN);
	return 0;
}

int digest_of(const void *data, size_t len, char ret[IMAGE_DIGEST_MAX])
{
	if (!hash_sha256_hex(data, len, ret + PREFIX_LEN))
		return -EIO;
	memcpy(ret, PREFIX, PREFIX_LEN);
	return 0;
}

int digest_fd(int fd, int copy, char ret[IMAGE_DIGEST_MAX])
{
	static char piece[256u << 10];
	_hash_ struct hash h = { 0 };
	ssize_t n;

	hash_begin(&h);
	while ((n = read(fd, piece, sizeof(piece))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		int r = n < 0 ? -errno : copy < 0 ? 0 : fd_write_all(copy, piece, (size_t)n);

		if (r < 0)
			return r;
		hash_add(&h, piece, (size_t)n);
	}
	return digest_end(&h, ret);
}

bool digest_is(const char *want, const void *data, size_t len)
{
	char have[IMAGE_DIGEST_MAX];

	return digest_of(data, len, have) == 0 && strcmp(have, want) == 0;
}
